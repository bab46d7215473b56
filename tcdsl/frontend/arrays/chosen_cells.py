"""``x[x > 0]``: the cells of an array where a mask is true. How many there are only the call knows.

They have no shape, but cell by cell they can be computed with, be summed, and be stored where the same mask chooses::

    a[a > b] -= 2 * b[a > b]        mean(x[x > 0])
"""

from __future__ import annotations

from typing import Any, NoReturn

from tcdsl.errors import DtypeError
from tcdsl.frontend.symbols.symbols import OpenArray, PendingArray, SymbolicArray, SymbolicTensor, View
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.expressions import Expr
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span

__all__ = ["MASK_AS_INDEX", "ChosenCells", "held_now"]


MASK_AS_INDEX = (
    "a mask as an index: how many cells it leaves only the call knows",
    "write `where(mask, x, 0.0)`, or a condition: `sum(x[i] for i in range(N) if mask[i])`",
)


class ChosenCells(OpenArray):
    """The cells of ``array`` where ``mask``, which is as large, is true. What asks for their shape is an error."""

    __slots__ = ("array", "mask", "span")

    def __init__(self, array: SymbolicArray, mask: PendingArray, span: Span | None) -> None:
        self.builder = array.builder
        self.array = array
        self.mask = mask
        self.span = span
        self._element_type = array.element_type
        self._made = None
        self.uses = 0

    def operand(self, other: Any) -> Any:
        """``other`` as what is computed with these cells: all cells of what the same mask chooses, or a number."""
        if isinstance(other, ChosenCells) and other.mask.element.expr == self.mask.element.expr:
            return other.array
        if isinstance(other, ChosenCells) or getattr(other, "ndim", 0) > 0:
            self._refuse()
        return other

    def _refuse(self) -> NoReturn:
        raise DtypeError.at(MASK_AS_INDEX[0], self.span, MASK_AS_INDEX[1])

    @property
    def element(self) -> Value:
        """None has a place."""
        self._refuse()

    @property
    def extents(self) -> tuple[Expr, ...]:  # type: ignore[override]
        """Not known."""
        self._refuse()

    @property
    def rows(self) -> RowRanks:  # type: ignore[override]
        """Not known."""
        self._refuse()

    def materialize(self, label: str = "t") -> SymbolicTensor:
        """Not possible."""
        self._refuse()

    def __repr__(self) -> str:
        return f"<the {self.dtype} cells that a mask chooses>"


def held_now(array: SymbolicArray) -> SymbolicArray:
    """``array`` with the cells that its memory holds now."""
    return array.held() if isinstance(array, SymbolicTensor | View) else array
