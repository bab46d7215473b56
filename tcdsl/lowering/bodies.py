"""The loops of one statement, given its plan.

For a plain target ``C[i, j]`` the outer loops run over all cells, so the start values are written there and isl only
sees the rest: the reductions, and the row if there is one. For any other target the start is a nest of its own, and
isl generates all loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer, size, truth
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Expr, Local, Read, substitute
from tcdsl.ir.program import Statement, Tensor
from tcdsl.lowering.boundaries import Declarations, interior, specialized
from tcdsl.lowering.loops import Buffer, Define, Loop, Node, Store
from tcdsl.lowering.names import Names
from tcdsl.lowering.points import Action, Place, first, point, start_value, sum_up, update
from tcdsl.lowering.scalars import Scalars
from tcdsl.lowering.scan import scan
from tcdsl.lowering.schedule import Plan
from tcdsl.lowering.statements import box
from tcdsl.lowering.traversal import map_expressions, renamed
from tcdsl.shapes.affine import NotAffine, condition_set
from tcdsl.shapes.spaces import arranged

__all__ = ["Block", "Body", "Setting", "every_cell"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What the loops of all statements of a program share.

    ``buffers`` says which memory holds a tensor, ``types`` what a memory stores, ``in_place`` which statements' targets
    already hold their start, ``marks`` the memory of a unique target's marks, ``context`` what is known of the sizes.
    Memory that the loops need besides is added to ``extra``.
    """

    tensors: Declarations
    buffers: Mapping[str, str]
    types: Mapping[str, str]
    in_place: frozenset[str]
    marks: Mapping[str, str]
    context: isl.Set
    names: Names
    extra: list[Buffer] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Block:
    """A part ``low <= variable < high`` of the row, both names of loop-invariant scalars; for parallel loops along
    rows.
    """

    variable: str
    low: str
    high: str


class Body:
    """Makes the loops of one statement."""

    def __init__(self, plan: Plan, setting: Setting) -> None:
        self.plan = plan
        self.setting = setting
        statement = plan.statement
        name = statement.target.tensor
        self.place = Place(plan.tensor, setting.buffers[name], setting.marks.get(name))
        points = statement.domain.set.align_params(setting.context.get_space())
        self.points = points.intersect_params(setting.context)
        self.started = name in setting.in_place

    # Plain targets: loops over all cells outside, the rest by isl.

    def cells(self, depth: int = 0, block: Block | None = None) -> tuple[Node, ...]:
        """The loops of a plain target inside the first ``depth`` outer ones."""
        plan = self.plan
        if plan.full:
            nodes = self._full()
        elif plan.scalar:
            nodes = self._scalar()
        else:
            nodes = self._row(block)
        for variable in reversed(plan.outer[depth:]):
            nodes = (Loop(variable, integer(0), plan.extent(variable), 1, nodes),)
        return nodes

    def _full(self) -> tuple[Node, ...]:
        statement = self._specialized(self.points)
        return tuple(point(statement, self.place, self._scalars(self.points, {}), first(statement, self.place)))

    def _scalar(self) -> tuple[Node, ...]:
        # start; reductions; store.
        statement = self.plan.statement
        cell = statement.target.indices
        name = self.setting.names.fresh("acc")
        out: list[Node] = []
        start = start_value(statement, self.place, cell, self._scalars(self.points, {}), out)
        out.append(Define(name, start))
        context, points = self._inside_cells(self.plan.outer)
        out.extend(self._visits(points, self.plan.inner, sum_up(statement, name), context, self.plan.outer))
        out.append(Store(self.place.buffer, cell, Local(name, compute_dtype(self.plan.tensor.dtype))))
        return tuple(out)

    def _row(self, block: Block | None) -> tuple[Node, ...]:
        # start of the row's cells; reductions, and in each of them along the row.
        plan, statement = self.plan, self.plan.statement
        row = plan.inner[-1]
        context, points = self._inside_cells(plan.outer)
        try:
            along = box(((row, plan.extent(row)),), points).intersect_params(context)
            inside = box(tuple((name, plan.extent(name)) for name in plan.outer), points)
            along = along.intersect(inside)
        except NotAffine:
            along = None
        given = plan.outer
        if block is not None:
            given = (*given, block.low, block.high)
            context = self._block_context(context, block, plan.extent(row))
            points = _in_block(points, block)
            along = None if along is None else _in_block(along, block)
        out: list[Node] = []
        act = first(statement, self.place) if plan.single else update(statement, self.place)
        if not self.started:
            out.extend(self._row_start(along, points, row, context, given, block))
        out.extend(self._visits(points, plan.inner, act, context, given))
        return _with_locals(out, block)

    def _row_start(
        self,
        along: isl.Set | None,
        points: isl.Set,
        row: str,
        context: isl.Set,
        given: tuple[str, ...],
        block: Block | None,
    ) -> list[Node]:
        statement = self.plan.statement
        if along is None or not (self.plan.single and statement.condition is None):
            nodes: list[Node] = []
            self._fill_cell(nodes, {})
            low, high = (
                (Local(block.low, "int64"), Local(block.high, "int64"))
                if block
                else (
                    integer(0),
                    self.plan.extent(row),
                )
            )
            return [Loop(row, low, high, 1, tuple(nodes))]
        # Cells that a point stores need no start.
        rest = along.subtract(points).coalesce()

        def leaf(values: Mapping[Expr, Expr]) -> list[Node]:
            nodes: list[Node] = []
            self._fill_cell(nodes, values)
            return nodes

        return list(scan(rest, (row,), leaf, context=context, given=given))

    def _fill_cell(self, out: list[Node], values: Mapping[Expr, Expr]) -> None:
        statement = self.plan.statement
        scalars = self._scalars(self.points, values)
        cell = tuple(scalars.position(axis, out) for axis in statement.target.indices)
        out.append(Store(self.place.buffer, cell, start_value(statement, self.place, cell, scalars, out)))

    def reduction(self, name: str, block: Block) -> tuple[Node, ...]:
        """All points of a block, accumulated in the scalar ``name``; for a statement with one cell."""
        context = _with_parameters(self.setting.context, (block.low, block.high))
        points = _in_block(self.points, block)
        act = sum_up(self.plan.statement, name)
        return _with_locals(self._visits(points, self.plan.inner, act, context, (block.low, block.high)), block)

    def scalars(self) -> Scalars:
        """Scalar code for all points of the statement."""
        return self._scalars(self.points, {})

    # Other targets: a start of their own, then all loops by isl.

    def start(self) -> tuple[Node, ...]:
        """A nest that writes every cell's start value; empty where the memory holds it already."""
        if self.started:
            return ()

        def write(cell: tuple[Expr, ...]) -> list[Node]:
            out: list[Node] = []
            value = start_value(self.plan.statement, self.place, cell, self._scalars(self.points, {}), out)
            return [*out, Store(self.place.buffer, cell, value)]

        return every_cell(self.plan.tensor, self.setting.names, write)

    def clear_marks(self) -> tuple[Node, ...]:
        """A nest that clears the marks of a unique target; empty for others."""
        marks = self.place.marks
        if marks is None:
            return ()
        return every_cell(self.plan.tensor, self.setting.names, lambda cell: [Store(marks, cell, truth(False))])

    def scattered(self, block: Block | None = None) -> tuple[Node, ...]:
        """The loops of a target that is not plain; its start has been written."""
        plan, statement = self.plan, self.plan.statement
        context = self.setting.context
        act = update(statement, self.place)
        if block is not None:
            context = self._block_context(context, block, plan.extent(block.variable))
            points = _in_block(self.points, block)
            return _with_locals(self._visits(points, plan.inner, act, context, (block.low, block.high)), block)
        parallel = plan.cells if not statement.unique else ()
        if not (plan.scalar and plan.inner):
            order = (*plan.outer, *plan.inner)
            return tuple(self._visits(self.points, order, act, context, (), parallel))

        def leaf(values: Mapping[Expr, Expr]) -> tuple[Node, ...]:
            scalars = self._scalars(self.points, {})
            out: list[Node] = []
            cell = tuple(scalars.position(axis, out) for axis in statement.target.indices)
            dtype = compute_dtype(plan.tensor.dtype)
            name = self.setting.names.fresh("acc")
            out.append(Define(name, Read(self.place.buffer, cell, (Boundary.SKIP,) * len(cell), dtype)))
            inner = _with_parameters(self.setting.context, plan.outer)
            out.extend(self._visits(self.points, plan.inner, sum_up(statement, name), inner, plan.outer))
            out.append(Store(self.place.buffer, cell, Local(name, dtype)))
            return renamed(out, values)

        return scan(self.points, plan.outer, leaf, context=context, parallel=parallel)

    # Shared.

    def _visits(
        self,
        points: isl.Set,
        order: Sequence[str],
        act: Action,
        context: isl.Set,
        given: tuple[str, ...],
        parallel: tuple[str, ...] = (),
    ) -> list[Node]:
        """Loops over ``points``, interior and border apart."""
        out: list[Node] = []
        for part in self._parts(points):
            statement = self._specialized(part)

            def leaf(values: Mapping[Expr, Expr], part: isl.Set = part, statement: Statement = statement) -> list[Node]:
                return point(statement, self.place, self._scalars(part, values), act)

            out.extend(scan(part, order, leaf, context=context, given=given, parallel=parallel))
        return out

    def _parts(self, points: isl.Set) -> tuple[isl.Set, ...]:
        statement = self.plan.statement
        ordered = ACCUMULATORS[statement.accumulate].ordered or statement.accumulate == "assign"
        cells = self.plan.cells
        if not cells:
            if ordered:
                return (points,)
            # The points of one cell may come in any order.
            cells = statement.domain.variables
        return interior(questions_of(statement), points, cells, self.setting.tensors) or (points,)

    def _specialized(self, points: isl.Set) -> Statement:
        statement, tensors = self.plan.statement, self.setting.tensors
        condition = statement.condition
        return replace(
            statement,
            value=specialized(statement.value, points, tensors),
            condition=None if condition is None else specialized(condition, points, tensors),
        )

    def _scalars(self, points: isl.Set, values: Mapping[Expr, Expr]) -> Scalars:
        return Scalars(self.setting.tensors, self.setting.buffers, self.setting.names, points, values)

    def _block_context(self, context: isl.Set, block: Block, extent: Expr) -> isl.Set:
        # 0 <= low, high <= extent.
        context = _with_parameters(context, (block.low, block.high))
        for left, right in ((integer(0), size(block.low)), (size(block.high), extent)):
            try:
                context = context.intersect(condition_set(apply("le", left, right), context).params())
            except NotAffine:
                continue
        return context

    def _inside_cells(self, variables: tuple[str, ...]) -> tuple[isl.Set, isl.Set]:
        # The context within the loops over all cells of the variables, and the statement's points.
        context = _with_parameters(self.setting.context, variables)
        pairs = tuple((name, self.plan.extent(name)) for name in variables)
        try:
            known = arranged(box(pairs, self.points), (), variables).params()
        except NotAffine:
            return context, self.points
        return context.intersect(known), self.points


def questions_of(statement: Statement) -> tuple[Expr, ...]:
    """The expressions whose boundaries and branches may be decided for whole parts of the domain."""
    return (statement.value,) if statement.condition is None else (statement.condition, statement.value)


def every_cell(tensor: Tensor, names: Names, write: Callable[[tuple[Expr, ...]], list[Node]]) -> tuple[Node, ...]:
    """Loops over all cells of ``tensor``, the outermost one parallel."""
    variables = tuple(names.fresh(f"c{axis}") for axis in range(len(tensor.shape)))
    nodes: tuple[Node, ...] = tuple(write(tuple(index(name) for name in variables)))
    for axis in reversed(range(len(variables))):
        nodes = (Loop(variables[axis], integer(0), tensor.shape[axis], 1, nodes, parallel=axis == 0),)
    return nodes


def _with_parameters(context: isl.Set, names: Sequence[str]) -> isl.Set:
    for name in names:
        if context.find_dim_by_name(isl.dim_type.param, name) < 0:
            position = context.dim(isl.dim_type.param)
            context = context.add_dims(isl.dim_type.param, 1).set_dim_name(isl.dim_type.param, position, name)
    return context


def _in_block(points: isl.Set, block: Block) -> isl.Set:
    row = index(block.variable)
    points = points.intersect(condition_set(apply("ge", row, size(block.low)), points))
    return points.intersect(condition_set(apply("lt", row, size(block.high)), points))


def _with_locals(nodes: Sequence[Node], block: Block | None) -> tuple[Node, ...]:
    # isl knows the ends of a block by name only.
    if block is None:
        return tuple(nodes)
    ends: dict[Expr, Expr] = {index(name): Local(name, "int64") for name in (block.low, block.high)}
    return map_expressions(nodes, lambda expr: substitute(expr, ends))
