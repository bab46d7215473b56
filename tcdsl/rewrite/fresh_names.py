"""Names that are still free, for what a derivative adds to a program."""

from __future__ import annotations

from collections.abc import Iterable

from tcdsl.ir.program import Program

__all__ = ["Names", "names_of"]


class Names:
    """The names in use: ``Names(["x"]).fresh("x")`` is ``"x_2"``, the next one ``"x_3"``."""

    def __init__(self, used: Iterable[str] = ()) -> None:
        self._used = set(used)
        self._numbers: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """``hint``, or ``hint`` with the next number that makes it new; the result counts as used."""
        name = hint
        number = self._numbers.get(hint, 2)
        while name in self._used:
            name = f"{hint}_{number}"
            number += 1
        self._used.add(name)
        self._numbers[hint] = number
        return name

    def __contains__(self, name: str) -> bool:
        return name in self._used


def names_of(program: Program) -> Names:
    """The names of a program's tensors, sizes and index variables: one name space, so that its text stays clear."""
    used = {tensor.name for tensor in (*program.inputs, *program.tensors)}
    used.update(size.name for size in program.sizes)
    for statement in program.statements:
        used.update(statement.domain.variables)
    return Names(used)
