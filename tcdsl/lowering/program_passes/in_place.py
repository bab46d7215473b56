"""Statements that write the memory they read, without a copy of it.

``A[0, j] = A[1, j]`` reads no cell that it writes, ``x[i] = x[i + 1]`` reads each cell before it writes it if ``i``
counts up, and ``x[i + 1] = x[i]`` if it counts down. Only what may be read after it was written has to be saved: of
``x[i] = x[N - 1 - i], i < 3`` three cells at most, of ``D[i, j] <<= D[i, k] + D[k, j]`` a column and a row.

isl compares each point p with the other points q that write what p reads: p must come before q. A loop may run in
parallel only if p and q always lie in the same iteration of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

import islpy as isl

from tcdsl.ir.boundaries import moved_index
from tcdsl.ir.build import apply, in_range, index, integer, plain_read, truth
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Boundary, Constant, Expr, Read, substitute, transform
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Access, Keep, Neutral, Statement, Tensor, map_statement, statement_reads
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.program_passes.schedule import FixedOrder, LoopOrder, covers, plan
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.affine import NotAffine, condition_set, equated, expression_of, holds
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.limits import TooMuchWork, limited
from tcdsl.polyhedra.linear import has_cases, normalized
from tcdsl.polyhedra.spaces import arranged, dimension_names, has_end, twice

__all__ = ["InPlace"]


# More reads than these are saved together.
_MOST_BOXES = 4


@dataclass(frozen=True, slots=True)
class InPlace:
    """Makes plans that run in memory which their statements read. Tensors that they need besides are declared.

    Where memory is ``movable``, a tensor is not changed in place if nearly all of its cells would have to be saved: its
    new version is made elsewhere, and they change places.
    """

    tensors: Declarations
    context: isl.Set
    names: FreshNames
    movable: bool = False
    # What was found for equal points, cells and reads: equal layers ask the same.
    known: dict[object, isl.Set] = field(default_factory=dict)

    def plans(self, original: LoopOrder, memory: str) -> list[LoopOrder] | None:
        """Plans that together do what ``original`` does, whose target takes over the memory of the tensor ``memory``.

        None if the statement should not run there.
        """
        try:
            with limited():
                return self._plans(original, memory)
        except TooMuchWork:
            return None

    def _plans(self, original: LoopOrder, memory: str) -> list[LoopOrder] | None:
        statement = original.statement
        keeps = isinstance(statement.start, Keep)
        found = dict.fromkeys(read for read in statement_reads(statement) if read.tensor == memory)
        if not keeps and found and not self._is_whole(original):
            return None  # start values are written to all cells first
        if not statement.domain.variables:
            return [original]  # one point reads all before it writes
        conflicts = {read: self._conflict(original, read) for read in found}
        harmful = {read: pairs for read, pairs in conflicts.items() if not pairs.is_empty()}
        if not harmful:
            return [original]
        if original.extents or original.whole is not None or not (keeps or original.full):
            return None
        order = self._order(original, list(harmful.values())) if original.single else None
        if order is not None:
            return [replace(original, plain=False, fixed=order)]
        boxes = self._boxes(original, memory, list(harmful))
        if self.movable and any(self._is_nearly_all(memory, each.extents) for each in boxes):
            return None
        plans = self._saving(original, memory, boxes)
        return plans if keeps or plans[-1].full else None

    def _is_whole(self, plan: LoopOrder) -> bool:
        # Whether each cell is written once, and nothing but its value: near the ends of rows other loops do that.
        if plan.full:
            return True
        statement = plan.statement
        once = plan.plain and plan.single and statement.condition is None and not plan.extents
        return once and plan.whole is None and covers(statement, plan.tensor, self.context)

    def _points(self, statement: Statement) -> isl.Set:
        return statement.domain.set.align_params(self.context.get_space()).intersect_params(self.context)

    def _conflict(self, plan: LoopOrder, read: Read) -> isl.Set:
        """The pairs of points of which the second one writes a cell that the first one reads."""
        cell = self._cell(read)
        key = plan.statement.domain, plan.statement.target.indices, tuple(cell), plan.single
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._found_conflict(plan, cell)
        return found

    def _found_conflict(self, plan: LoopOrder, cell: Sequence[Expr]) -> isl.Set:
        statement = plan.statement
        pairs, others = twice(self._points(statement))
        renamed: dict[Expr, Expr] = {
            index(name): index(other) for name, other in zip(statement.domain.variables, others, strict=True)
        }
        for mine, its in zip(cell, statement.target.indices, strict=True):
            pairs = _where_equal(pairs, mine, substitute(its, renamed))
        if not plan.single:
            # A cell that takes several values is stored before all of them were computed.
            return pairs
        same = pairs
        for one, other in renamed.items():
            same = _where_equal(same, one, other)
        return pairs.subtract(same)

    def _cell(self, read: Read) -> list[Expr]:
        shape = self.tensors[read.tensor].shape
        axes = zip(read.indices, shape, read.boundaries, strict=True)
        return [moved_index(position, extent, boundary) for position, extent, boundary in axes]

    def _order(self, plan: LoopOrder, conflicts: Sequence[isl.Set]) -> FixedOrder | None:
        """Loops in which every cell is read before it is written; None if there are none."""
        waiting = [*plan.outer, *plan.inner]
        order: list[str] = []
        descending: set[str] = set()
        left = list(conflicts)
        parallel = False
        while waiting:
            for name in waiting:
                up = all(_never(pairs, "gt", name) for pairs in left)
                down = all(_never(pairs, "lt", name) for pairs in left)
                if up or down:
                    break
            else:
                return None
            parallel = parallel or (not order and up and down)
            if not up:
                descending.add(name)
            left = [_where_equal(pairs, index(name), index(f"{name}'")) for pairs in left]
            order.append(name)
            waiting.remove(name)
        if descending and can_fail(plan.statement):
            return None  # errors show the positions of loops
        return FixedOrder(tuple(order), frozenset(descending), parallel)

    # Saving.

    def _is_nearly_all(self, memory: str, extents: Sequence[Expr]) -> bool:
        # All but a few rows at the ends of each axis.
        shape = self.tensors[memory].shape
        left = [normalized(apply("sub", whole, _inside(extent))) for whole, extent in zip(shape, extents, strict=True)]
        return all(isinstance(each, Constant) for each in left)

    def _saving(self, original: LoopOrder, memory: str, boxes: Sequence[_Box]) -> list[LoopOrder]:
        statement = original.statement
        tensor = self.tensors[memory]
        label = tensor.label or tensor.name
        points = self._points(statement)
        moved: dict[Expr, Expr] = {}
        copies: list[Statement] = []
        for each in boxes:
            name = self.names.fresh(f"{memory}_saved")
            saved = Tensor(name, tensor.dtype, each.extents, label, statement.span)
            self.tensors[name] = saved
            copies.append(self._copying(tensor, saved, each.lows))
            moved.update((read, each.found(read, tensor, name, points)) for read in each.reads)
        changed = map_statement(statement, lambda expr: transform(expr, lambda node: moved.get(node, node)))
        return [plan(each, self.tensors, self.context) for each in (*copies, changed)]

    def _copying(self, tensor: Tensor, saved: Tensor, lows: Sequence[Expr]) -> Statement:
        variables = self.names.cells(len(lows))
        cell = tuple(map(index, variables))
        source = tuple(normalized(apply("add", low, axis)) for low, axis in zip(lows, cell, strict=True))
        points = box(variables, saved.shape)
        for position, whole in zip(source, tensor.shape, strict=True):
            points = points.intersect(condition_set(in_range(position, whole), points))
        points = points.align_params(self.context.get_space()).gist_params(self.context)
        value = plain_read(tensor.name, source, compute_dtype(tensor.dtype))
        domain = Domain.from_set(points)
        return Statement(Access(saved.name, cell), "assign", Neutral(), value, domain, span=saved.span)

    def _boxes(self, plan: LoopOrder, memory: str, harmful: Sequence[Read]) -> list[_Box]:
        """What is saved: a box for all reads, or one for each where these are thinner, as of a row and a column."""
        together = self._box(plan, memory, harmful)
        found: dict[tuple[tuple[Expr, ...], tuple[Expr, ...]], list[Read]] = {}
        for read in harmful if len(harmful) <= _MOST_BOXES else ():
            each = self._box(plan, memory, [read])
            found.setdefault((each.lows, each.extents), []).append(read)
        apart = [_Box(tuple(reads), *ends) for ends, reads in found.items()]
        thinner = len(apart) > 1 and max(each.long_axes for each in apart) < together.long_axes
        return apart if thinner else [together]

    def _box(self, plan: LoopOrder, memory: str, harmful: Sequence[Read]) -> _Box:
        """The first cell and the extents of a box around all cells that are read and written."""
        cells = self._overlap(plan, harmful)
        lows: list[Expr] = []
        extents: list[Expr] = []
        for axis, whole in enumerate(self.tensors[memory].shape):
            low: Expr = integer(0)
            extent = whole
            if all(read.boundaries[axis] is Boundary.SKIP for read in harmful):
                low = self._end(cells, axis, largest=False) or low
                last = self._end(cells, axis, largest=True)
                extent = extent if last is None else normalized(apply("add", last, integer(1)))
                extent = normalized(apply("sub", extent, low))
            if not holds(apply("ge", extent, integer(0)), self.context):
                extent = apply("max", extent, integer(0))
            lows.append(low)
            extents.append(extent)
        return _Box(tuple(harmful), tuple(lows), tuple(extents))

    def _overlap(self, plan: LoopOrder, harmful: Sequence[Read]) -> isl.Set:
        statement = plan.statement
        points = self._points(statement)
        variables = tuple(self.names.fresh("c") for _ in statement.target.indices)
        shape = plan.tensor.shape
        images = [self._image(points, self._cell(read), variables, shape) for read in harmful]
        written = self._image(points, statement.target.indices, variables, shape)
        cells = reduce(isl.Set.union, images).intersect(written)
        # A box is wanted, and isl finds the ends of one convex set without quotients soon.
        return isl.Set.from_basic_set(cells.remove_divs().simple_hull())

    @staticmethod
    def _image(points: isl.Set, cell: Sequence[Expr], variables: Sequence[str], shape: Sequence[Expr]) -> isl.Set:
        # The cells that points access; all along an axis that isl cannot speak of.
        pairs = arranged(points, (*dimension_names(points), *variables))
        for axis, name, extent in zip(cell, variables, shape, strict=True):
            pairs = _where_equal(pairs, index(name), axis)
            try:
                pairs = pairs.intersect(condition_set(in_range(index(name), extent), pairs))
            except NotAffine:
                continue
        return arranged(pairs, variables)

    def _end(self, cells: isl.Set, axis: int, largest: bool) -> Expr | None:
        # The first or last cell along an axis, or a constant bound where that takes cases.
        if not has_end(cells, axis, largest):
            return None
        end = expression_of(cells.dim_max(axis) if largest else cells.dim_min(axis), self.context)
        if not has_cases(end):
            return end
        cells = cells.project_out(isl.dim_type.param, 0, cells.dim(isl.dim_type.param))
        bound = cells.dim_max_val(axis) if largest else cells.dim_min_val(axis)
        return integer(bound.to_python()) if bound.is_int() else None


@dataclass(frozen=True, slots=True)
class _Box:
    """Cells that ``reads`` find saved: the first one, and how many there are along each axis."""

    reads: tuple[Read, ...]
    lows: tuple[Expr, ...]
    extents: tuple[Expr, ...]

    @property
    def long_axes(self) -> int:
        """How many axes have as many cells as sizes say."""
        return sum(not isinstance(_inside(extent), Constant) for extent in self.extents)

    def found(self, read: Read, tensor: Tensor, saved: str, points: isl.Set) -> Expr:
        """What ``read`` of ``tensor`` finds, which is ``saved`` inside of the box."""
        inside: Expr = truth(True)
        indices: list[Expr] = []
        for axis, low, extent, whole in zip(read.indices, self.lows, self.extents, tensor.shape, strict=True):
            indices.append(normalized(apply("sub", axis, low)))
            if (low, extent) != (integer(0), whole):
                inside = apply("and_", inside, in_range(indices[-1], extent))
        kept = replace(read, tensor=saved, indices=tuple(indices))
        if inside == truth(True) or holds(inside, points):
            return kept
        return apply("where", inside, kept, read)


def _inside(extent: Expr) -> Expr:
    # Of an extent that is at least 0.
    match extent:
        case Apply(primitive="max", arguments=(inside, Constant(value=0))):
            return inside
        case _:
            return extent


def _where_equal(pairs: isl.Set, left: Expr, right: Expr) -> isl.Set:
    # All pairs where isl cannot tell.
    try:
        return equated(pairs, left, right)
    except NotAffine:
        return pairs


def _never(pairs: isl.Set, comparison: str, name: str) -> bool:
    order = condition_set(apply(comparison, index(name), index(f"{name}'")), pairs)
    return bool(pairs.intersect(order).is_empty())
