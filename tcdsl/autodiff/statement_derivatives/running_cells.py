"""Cells that go on from each other, as those of ``t[i] >>= x[j], j <= i``: sums over them, for derivatives.

What a term receives of such a reduction is what all cells receive from the one on where it joins, which is a running
total from the other end. Of a maximum it is that of the cells up to the next larger term: of its *run*, the cells that
hold the same. A total along a run starts anew where the run does, which data say, `tcdsl.simplification.scans`:

::

    low[i] >>= k, 0 < k <= i, t[k] != t[k - 1]        where the run of cell i begins
    high[i] <<= k, i <= k < N - 1, t[k] != t[k + 1]   and where it ends
    so_far[i] += u[k], low[i] <= k <= i
    onward[i] += g[k], i <= k <= high[i]

A run ends too where cells take all terms anew. A term that has joined before is then one of the first cell of the new
run, and receives the total along that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import islpy as isl

from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, substitute
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Start, Statement, Tensor
from tcdsl.polyhedra.affine import condition_set, substituted
from tcdsl.polyhedra.boxes import bounds, box
from tcdsl.polyhedra.spaces import arranged, dimension_names, named
from tcdsl.polyhedra.writes import both, read_cell
from tcdsl.simplification.data_ranges import data_ends
from tcdsl.simplification.scans import Scan

__all__ = ["RunningCells"]


@dataclass(slots=True)
class RunningCells:
    """The cells z of a tensor of ``program``, which go on from each other along ``axis`` as a scan says.

    ``other`` is a variable for cells beside them. They go on within a run of cells none of which takes all terms of its
    ``statement`` anew; with ``level``, a tensor of their shape, of cells where that holds the same.
    """

    program: Derivative
    statement: Statement
    scan: Scan
    cells: tuple[str, ...]
    other: str
    axis: int
    shape: tuple[Expr, ...]
    level: str | None = None
    _ends: dict[bool, str] = field(default_factory=dict)

    def joined(self) -> list[tuple[isl.Set, Expr | None]]:
        """The points, and a test, at which terms are the first time, or again, among those of a run."""
        points = self.statement.domain.set
        again = [(each, self._again_at(test)) for each, test in self.scan.again(points) if not each.is_empty()]
        return [(self.scan.points, None), *again]

    def _again_at(self, test: Expr | None) -> Expr | None:
        # As an end, so that loops do not look for terms where nothing is taken anew.
        if test is None or self.statement.condition is None:
            return test
        points = self.statement.domain.set
        lows, extents = bounds(points, len(self.statement.domain.variables))
        for variable, low, extent in zip(self.statement.domain.variables, lows, extents, strict=True):
            for end in data_ends(self.statement.condition, variable):
                if end.value in self.scan.ends:
                    stop = apply("add", low, extent)
                    if end.first:
                        return apply("lt", index(variable), apply("where", test, stop, low))
                    return apply("ge", index(variable), apply("where", test, low, stop))
        return test

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
        ended, last = None, self._end(upward)
        if last is not None:
            end = read_cell(self.program.tensor(last), self.cells, "int64")
            ended = apply("le" if upward else "ge", index(self.other), end)
        at_other = None if condition is None else substitute(condition, {index(self._own): index(self.other)})
        value = self._at(given, index(self.other))
        self._append(made, "add", Neutral(), value, self._points(upward), both(ended, at_other))
        return made

    def _end(self, upward: bool) -> str | None:
        """The tensor that says where the run of each cell ends; None if all cells are one run."""
        if upward in self._ends:
            return self._ends[upward]
        last, other = apply("sub", self.shape[self.axis], integer(1)), index(self.other)
        beside = apply("add" if upward else "sub", other, integer(1))
        points = self._points(upward)
        inside = apply("lt", other, last) if upward else apply("gt", other, integer(0))
        points = points.intersect(condition_set(inside, points))
        hint = f"{self.level or 'cells'}_{'last' if upward else 'first'}"
        start: Start = Fill(last if upward else integer(0))
        for where, ends in self._breaks(points, other, beside, upward):
            made = self.program.declare(hint, "int64", self.shape)
            self._append(made, "min" if upward else "max", start, other, where, ends)
            start = Keep(made)
            self._ends[upward] = made
        return self._ends.get(upward)

    def _breaks(
        self, points: isl.Set, other: Expr, beside: Expr, upward: bool
    ) -> Iterator[tuple[isl.Set, Expr | None]]:
        # Where the run of the cell ``other`` does not go on to the one ``beside``.
        if self.level is not None:
            level = self.program.tensor(self.level)
            yield points, apply("ne", self._at(level, other), self._at(level, beside))
        # Of the two the one that comes later along the scan takes all terms anew.
        later: dict[Expr, Expr] = {index(self._own): other if upward == self.scan.descending else beside}
        variables = [axis.name for axis in self.statement.target.indices if isinstance(axis, IndexValue)]
        cells: dict[Expr, Expr] = dict(zip(map(index, variables), map(index, self.cells), strict=True))
        for again, test in self.scan.again(self.statement.domain.set):
            behind = self.scan.restarts if test is None else arranged(again, variables)
            places = [f"{each}'" if each == self._own else each for each in self.cells]
            moved: dict[Expr, Expr] = {index(f"{self._own}'"): later[index(self._own)]}
            where = points.intersect(substituted(named(behind, places), moved, dimension_names(points)))
            if not where.is_empty():
                yield where, None if test is None else substitute(substitute(test, cells), later)

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
