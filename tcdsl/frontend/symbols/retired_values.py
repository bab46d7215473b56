"""What must not be used any more: names of nested recordings that are over, and values that others have replaced.

Plain Python replaces values: ``a *= 2`` in a helper makes another value, and leaves the old one. Whoever has that under
another name, alone or as part of a view, would miss what NumPy does::

    def scaled(a):              @op
        a *= 2                  def f(x):
        return a                    y = scaled(x)
                                    return x + y        # an error: with NumPy `x` is what `y` is
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from tcdsl.errors import DifferentiationError, DslSyntaxError, TcdslError
from tcdsl.ir.program import Size, Statement, statement_sizes, tensors_read
from tcdsl.ir.sizes.spoken_sizes import in_words, spoken_sizes
from tcdsl.span import Span

__all__ = [
    "DIFFERENTIATED",
    "OF_A_ROUND",
    "Replaceable",
    "RetiredNames",
    "changed_in_place",
    "replace_value",
    "require_current",
    "restore_value",
]

DIFFERENTIATED, OF_A_ROUND = "a function that was differentiated", "a round of a loop"

_HINTS = {
    DIFFERENTIATED: "return it from that function, with has_aux=True if it is not to be differentiated",
    OF_A_ROUND: "bind it before the loop, so that rounds carry it",
}


class RetiredNames:
    """``names.check(statements, sizes)`` raises if one of ``statements`` reads a tensor or a size that is gone."""

    def __init__(self) -> None:
        self._tensors: dict[str, tuple[str, str]] = {}
        self.sizes: dict[str, Size] = {}
        #: What messages call numbers that count rounds, where the loop does not count from 0 by 1.
        self.words: dict[str, str] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._tensors

    def add(self, labels: Mapping[str, str], owner: str) -> None:
        """The tensors of these names, which users know by ``labels``, belonged to ``owner``."""
        self._tensors.update({name: (label, owner) for name, label in labels.items()})

    def spoken(self, sizes: Mapping[str, Size], labels: Mapping[str, str]) -> dict[str, str]:
        """What messages call those of ``sizes``, and of the sizes that are gone, whose names are made up."""
        found = spoken_sizes({**self.sizes, **sizes}.values(), lambda name: labels.get(name, ""))
        return {name: in_words(text, found) for name, text in self.words.items()} | found

    def check(self, statements: Sequence[Statement], sizes: Collection[str]) -> None:
        """Raise `DslSyntaxError` or `DifferentiationError`; ``sizes`` are those that are there."""
        if not self._tensors and not self.sizes:
            return
        for statement in statements:
            for name in tensors_read(statement) & self._tensors.keys():
                label, owner = self._tensors[name]
                kind = DifferentiationError if owner == DIFFERENTIATED else DslSyntaxError
                raise kind.at(f"`{label}` belongs to {owner}, but is used outside", statement.span, _HINTS[owner])
            for name in (statement_sizes(statement) & self.sizes.keys()).difference(sizes):
                raise DslSyntaxError.at(
                    f"a value of a round of a loop, in which `{name}` is a size, is used outside",
                    statement.span,
                    "the body is staged once: collect results by a statement, as in `ys[t, ...] = h`",
                )


class Replaceable(Protocol):
    """An array that is a value: what it is a view of, and the statement that has replaced it."""

    @property
    def base(self) -> Any:
        """What it is a view of."""

    replaced: Span | None


def replace_value(array: Replaceable, where: Span) -> None:
    """The operator in place ``where`` has made another value of this one."""
    each: Any = array
    while each is not None:
        each.replaced = where
        each = each.base


def restore_value(array: Replaceable) -> None:
    """Take back what `replace_value` has done."""
    each, where = array, array.replaced
    while each is not None:
        each.replaced = None if each.replaced is where else each.replaced
        each = each.base


def require_current(array: Replaceable, label: str = "") -> None:
    """An error if an array, or what it is a view of, has been replaced."""
    each: Any = array
    while each is not None:
        if each.replaced is not None:
            raise changed_in_place(each.replaced, label)
        each = each.base


def changed_in_place(where: Span, label: str) -> TcdslError:
    """The error where what is called ``label`` is read after the operator in place ``where`` has replaced it."""
    what = f"`{label}`" if label else "a value"
    return DslSyntaxError.at(
        f"this would change {what} in place, which is read afterwards, and values do not change",
        where,
        "write `a = a * 2` for `a *= 2`, return it, and bind it where the function is called, `x = f(x)`; "
        "what @cd functions are given, and bind to names, is memory, which changes",
    )
