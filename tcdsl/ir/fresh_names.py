"""Names that are still free, for all that is added to a program, to its loops and to its code."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tcdsl.ir.program import Program

__all__ = ["FreshNames", "cell_names", "names_of"]


class FreshNames:
    """The names in use: ``FreshNames(["x"]).fresh("x")`` is ``"x_2"``, the next one ``"x_3"``.

    In loops, which have many scalars, names are ``short``: ``x1``, ``x2``. Names for which ``elsewhere``
    holds are in use too.
    """

    def __init__(
        self, used: Iterable[str] = (), *, short: bool = False, elsewhere: Callable[[str], bool] | None = None
    ) -> None:
        self._used = set(used)
        self._elsewhere = elsewhere
        self._short = short
        self._numbers: dict[str, int] = {}
        self._shared: dict[str, str] = {}

    def fresh(self, hint: str) -> str:
        """``hint``, or ``hint`` with the next number that makes it new; the result counts as used."""
        name = self.free(hint)
        self._used.add(name)
        return name

    def free(self, hint: str) -> str:
        """What `fresh` would give, which does not count as used yet."""
        name, stem = hint, hint + "_"
        if self._short:
            stem = hint.rstrip("0123456789") or hint
        number = self._numbers.get(stem, 1 if self._short else 2)
        while name in self:
            name = f"{stem}{number}"
            number += 1
        # The last number is not used yet.
        self._numbers[stem] = number if name == hint else number - 1
        return name

    def shared(self, hint: str) -> str:
        """A name that is new the first time, and the same each time after: for an index variable of many statements.

        Statements that differ in the names of tensors alone are looked at once.
        """
        if hint not in self._shared:
            self._shared[hint] = self.fresh(hint)
        return self._shared[hint]

    def cells(self, rank: int, hint: str = "c") -> tuple[str, ...]:
        """Such names for the cells of a tensor, each of which a statement of its own makes: c, c1, c2."""
        return tuple(self.shared(f"{hint}{axis}" if axis else hint) for axis in range(rank))

    def take(self, names: Iterable[str]) -> None:
        """These names are in use from here on."""
        self._used.update(names)

    def given_up(self, names: Iterable[str]) -> None:
        """These names may be free again; what was there before numbers were counted is looked at anew."""
        for name in names:
            stem, mark, number = name.rpartition("_")
            if mark and number.isdecimal():
                known = self._numbers.get(stem + mark, 0)
                self._numbers[stem + mark] = max(min(known, int(number)), 2)

    def copy(self) -> FreshNames:
        """The same names in use, to which others can be added."""
        return FreshNames(self._used, short=self._short, elsewhere=self._elsewhere)

    def __contains__(self, name: str) -> bool:
        return name in self._used or (self._elsewhere is not None and self._elsewhere(name))


def names_of(program: Program, *, short: bool = False) -> FreshNames:
    """The names of a program's tensors, sizes and index variables: one name space, so that its text stays clear."""
    used = {tensor.name for tensor in (*program.inputs, *program.tensors)}
    used.update(size.name for size in program.sizes)
    for statement in program.statements:
        used.update(statement.domain.variables)
    return FreshNames(used, short=short)


def cell_names(rank: int, sizes: Iterable[str]) -> tuple[str, ...]:
    """Names of index variables for the cells of a tensor, none of them one of ``sizes``."""
    taken = set(sizes)
    candidates = (f"z{k}" for k in range(rank + len(taken)))
    return tuple(name for name in candidates if name not in taken)[:rank]
