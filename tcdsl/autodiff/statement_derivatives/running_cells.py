"""Cells that go on from each other, as those of ``t[i] >>= x[j], j <= i``: sums over them, for derivatives.

What a term receives of such a reduction is what all cells receive from the one on where it joins, which is a running
total from the other end. Of a maximum it is that of the cells up to the next larger term: of its *run*, the cells that
hold the same. A total along a run starts anew where the run does, which data say, `tcdsl.simplification.scans`:

::

    low[i] >>= k, 0 < k <= i, t[k] != t[k - 1]        where the run of cell i begins
    high[i] <<= k, i <= k < N - 1, t[k] != t[k + 1]   and where it ends
    so_far[i] += u[k], low[i] <= k <= i
    onward[i] += g[k], i <= k <= high[i]
"""

from __future__ import annotations

from dataclasses import dataclass, field

import islpy as isl

from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, substitute
from tcdsl.ir.program import Access, Fill, Neutral, Start, Statement, Tensor
from tcdsl.polyhedra.affine import condition_set
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.writes import both, read_cell
from tcdsl.simplification.scans import Scan

__all__ = ["RunningCells"]


@dataclass(slots=True)
class RunningCells:
    """The cells z of a tensor of ``program``, which go on from each other along ``axis`` as a scan says.

    ``other`` is a variable for cells beside them. With ``level``, a tensor of their shape, they go on within a run of
    cells where that holds the same.
    """

    program: Derivative
    scan: Scan
    cells: tuple[str, ...]
    other: str
    axis: int
    shape: tuple[Expr, ...]
    level: str | None = None
    _ends: dict[bool, str] = field(default_factory=dict)

    @property
    def box(self) -> isl.Set:
        """All cells."""
        return box(self.cells, self.shape)

    def sums_so_far(self, source: str, hint: str, condition: Expr | None = None) -> str:
        """For each cell the sum of ``source`` over the cells that it goes on from, and its own, under a condition."""
        return self._sums(source, hint, self.scan.descending, condition)

    def sums_onward(self, source: str, hint: str, condition: Expr | None = None) -> str:
        """For each cell the sum of ``source`` over the cells that go on from it, and its own, under a condition."""
        return self._sums(source, hint, not self.scan.descending, condition)

    def _sums(self, source: str, hint: str, upward: bool, condition: Expr | None) -> str:
        # Over the cells from this one up to the last one, or down to the first one.
        given = self.program.tensor(source)
        made = self.program.declare(hint, given.dtype, self.shape)
        ended = None
        if self.level is not None:
            end = read_cell(self.program.tensor(self._end(upward)), self.cells, "int64")
            ended = apply("le" if upward else "ge", index(self.other), end)
        at_other = None if condition is None else substitute(condition, {index(self._own): index(self.other)})
        value = self._at(given, index(self.other))
        self._append(made, "add", Neutral(), value, self._points(upward), both(ended, at_other))
        return made

    def _end(self, upward: bool) -> str:
        """The tensor that says where the run of each cell ends."""
        if upward in self._ends:
            return self._ends[upward]
        assert self.level is not None
        level, last = self.program.tensor(self.level), apply("sub", self.shape[self.axis], integer(1))
        made = self.program.declare(f"{self.level}_{'last' if upward else 'first'}", "int64", self.shape)
        other = index(self.other)
        beside = apply("add" if upward else "sub", other, integer(1))
        inside = apply("lt", other, last) if upward else apply("gt", other, integer(0))
        points = self._points(upward)
        points = points.intersect(condition_set(inside, points))
        ends = apply("ne", self._at(level, other), self._at(level, beside))
        start = Fill(last if upward else integer(0))
        self._append(made, "min" if upward else "max", start, other, points, ends)
        self._ends[upward] = made
        return made

    @property
    def _own(self) -> str:
        return self.cells[self.axis]

    def _at(self, tensor: Tensor, position: Expr) -> Expr:
        # A tensor of this shape at another place along the axis.
        read = read_cell(tensor, self.cells, compute_dtype(tensor.dtype))
        return substitute(read, {index(self._own): position})

    def _points(self, upward: bool) -> isl.Set:
        points = box((*self.cells, self.other), (*self.shape, self.shape[self.axis]))
        order = apply("ge" if upward else "le", index(self.other), index(self._own))
        return points.intersect(condition_set(order, points))

    def _append(
        self, made: str, accumulate: str, start: Start, value: Expr, points: isl.Set, condition: Expr | None
    ) -> None:
        target = Access(made, tuple(map(index, self.cells)))
        self.program.append(Statement(target, accumulate, start, value, Domain.from_set(points), condition))
