"""Local definitions in which nothing stands outside of reductions: ``n = sqrt(sum(g[i] * g[i]))``.

In a tensor statement such a name is its text, as every local definition is: ``O[i, j] = E[i, j] / z`` with
``z = sum(E[i, l])`` divides by the sums of rows. Where that text would leave a reduction nothing to bind, and wherever
whole arrays are computed with, it is a tensor of rank 0: ``g * (1 / n)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcdsl.frontend.points.point_scalars import PointValue
from tcdsl.frontend.symbols.operators import OperatorHost
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicTensor
from tcdsl.frontend.symbols.values import Value, stored_dtype
from tcdsl.ir.expressions import Expr, Reduction, transform
from tcdsl.rows.ranks import RowRanks

__all__ = ["BareReduction", "point_of", "standing_alone"]


class BareReduction(PendingArray):
    """A bare reduction that has a name: ``point`` in tensor statements, a tensor of rank 0 elsewhere.

    ``record(point, label)`` records the statement that computes it.
    """

    __slots__ = ("_record", "label", "point")

    def __init__(
        self, builder: OperatorHost, label: str, point: PointValue, record: Callable[[PointValue, str], SymbolicTensor]
    ) -> None:
        self.builder = builder
        self._element_type = stored_dtype(point.value)
        self.extents = ()
        self.rows = RowRanks()
        self.label = label
        self.point = point
        self._record = record
        self._made = None
        self.uses = 0

    @property
    def element(self) -> Value:
        """The cell of the tensor."""
        return self.materialize().cell((), self.point.span)

    def materialize(self, label: str = "") -> SymbolicTensor:
        """The tensor; the statement that computes it is recorded at the first call."""
        if self._made is None or not self.builder.knows(self._made.name):
            self._made = self._record(self.point, self.label)
        return self._made


def point_of(given: object) -> PointValue | None:
    """The scalar at a point that an object is in a tensor statement, if it is one."""
    if isinstance(given, BareReduction):
        return given.point
    return given if isinstance(given, PointValue) else None


def standing_alone(value: Value) -> Value:
    """``value`` with reductions that bind all of their variables where there is nothing else for them to bind."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Reduction) and not node.variables:
            return replace(node, alone=True)
        return node

    return value.mapped(lambda expr: transform(expr, rule))
