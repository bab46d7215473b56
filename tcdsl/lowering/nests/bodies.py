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
from tcdsl.ir.build import constant, index, integer, plain_read, truth
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Local
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Statement, Tensor, Unset
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.boundary_reads import Declarations, interior, specialized
from tcdsl.lowering.loopir.loops import Buffer, Define, Loop, Node, Store, loops_over
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.loopir.point_code import Action, TargetCell, first, point, start_value, sum_up, update
from tcdsl.lowering.loopir.scalars import Scalars
from tcdsl.lowering.loopir.traversal import renamed
from tcdsl.lowering.nests.blocks import Block, block_context, in_block, with_locals, with_parameters
from tcdsl.lowering.nests.polyhedron_scanning import Leaf, scan
from tcdsl.lowering.nests.scattered_sums import in_scattered_blocks
from tcdsl.lowering.program_passes.schedule import FixedOrder, LoopOrder
from tcdsl.lowering.program_passes.touched_tensors import evaluated, others_in_each_round
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.linear import has_cases
from tcdsl.polyhedra.spaces import arranged

__all__ = ["NestContext", "StatementLoops", "every_cell"]


@dataclass(frozen=True, slots=True)
class NestContext:
    """What the loops of all statements of a program share.

    ``buffers`` says which memory holds a tensor, ``types`` what a memory stores, ``in_place`` which statements' targets
    already hold their start, ``marks`` the memory of a unique target's marks, ``context`` what is known of the sizes,
    ``thin`` the targets whose statements are little work beside another one that writes the same memory, ``long_sums``
    whether sums of many terms may be added up a block at a time, ``machine`` what the loops are for, ``alone`` whether
    one thread does it all, ``repeated`` whether rounds may run them again.
    Memory that the loops need besides is added to ``extra``, and what could not be done with them to ``declined``.
    """

    tensors: Declarations
    buffers: Mapping[str, str]
    types: Mapping[str, str]
    in_place: frozenset[str]
    marks: Mapping[str, str]
    context: isl.Set
    names: FreshNames
    thin: frozenset[str] = frozenset()
    long_sums: bool = False
    machine: Machine = field(default_factory=Machine)
    alone: bool = False
    repeated: bool = False
    extra: list[Buffer] = field(default_factory=list)
    declined: list[Declined] = field(default_factory=list)


class StatementLoops:
    """Makes the loops of one statement."""

    def __init__(self, plan: LoopOrder, setting: NestContext) -> None:
        self.plan = plan
        self.setting = setting
        statement = plan.statement
        name = statement.target.tensor
        self.place = TargetCell(plan.tensor, setting.buffers[name], setting.marks.get(name))
        points = statement.domain.set.align_params(setting.context.get_space())
        self.points = points.intersect_params(setting.context)
        #: Whether the memory holds at first what it is to hold.
        self.started = name in setting.in_place or isinstance(statement.start, Unset)

    # Plain targets: what happens in one cell.

    def full(self) -> tuple[Node, ...]:
        """The only point of a cell, for a plan in which every cell has one."""
        return tuple(self._leaf(self.points, first(self.plan.statement, self.place))({}))

    def cell(
        self,
        points: isl.Set,
        order: Sequence[str],
        context: isl.Set,
        given: tuple[str, ...],
        known: isl.Set | None = None,
    ) -> tuple[Node, ...]:
        """One cell of a plain target: start; reductions; store. ``known`` are the points of the cells in question."""
        statement = self.plan.statement
        cell = statement.target.indices
        name = self.setting.names.fresh("acc")
        out: list[Node] = []
        out.append(Define(name, start_value(statement, self.place, cell, self.scalars(self.points), out)))
        out.extend(self.visits(points, order, sum_up(statement, name), context, given, known=known))
        out.append(Store(self.place.buffer, cell, Local(name, compute_dtype(self.plan.tensor.dtype))))
        return tuple(out)

    # Other targets: a start of their own, then all loops by isl.

    def start(self) -> tuple[Node, ...]:
        """A nest that writes every cell's start value; empty where the memory holds it already."""
        return () if self.started else every_cell(self.plan.tensor, self.setting.names, self.start_of)

    def start_of(self, cell: tuple[Expr, ...] | None = None, values: Mapping[Expr, Expr] | None = None) -> list[Node]:
        """Nodes that write the start value of a cell, or of the one that a point writes.

        ``values`` are those of variables without loops.
        """
        statement, out, scalars = self.plan.statement, list[Node](), self.scalars(self.points, values)
        if cell is None:
            cell = tuple(scalars.position(axis, out) for axis in statement.target.indices)
        value = start_value(statement, self.place, cell, scalars, out)
        return [*out, Store(self.place.buffer, cell, value)]

    def clear_marks(self) -> tuple[Node, ...]:
        """A nest that clears the marks of a unique target; empty for others."""
        marks = self.place.marks
        statement = self.plan.statement
        if marks is None:
            return ()
        if statement.oob == "check" and others_in_each_round(statement.target.indices):
            zero = constant(0, compute_dtype(self.plan.tensor.dtype))
            cleared = replace(statement, value=zero, condition=None, oob="clamp", unique=False)
            loops = StatementLoops(replace(self.plan, statement=cleared), self.setting)
            loops.place = replace(self.place, marks=None)

            def clear(_scalars: Scalars, cell: tuple[Expr, ...], _value: Expr, out: list[Node]) -> None:
                out.append(Store(marks, cell, truth(False)))

            return tuple(loops.visits(loops.points, statement.domain.variables, clear, self.setting.context))
        return every_cell(self.plan.tensor, self.setting.names, lambda cell: [Store(marks, cell, truth(False))])

    def scattered(self, block: Block | None = None) -> tuple[Node, ...]:
        """The loops of a target that is not plain; its start has been written."""
        plan, statement = self.plan, self.plan.statement
        context = self.setting.context
        act = update(statement, self.place)
        if block is not None:
            context = block_context(context, block, integer(0), plan.extent(block.variable))
            points = in_block(self.points, block)
            given = (block.low, block.high)
            return with_locals(self.summed(self.visits(points, plan.inner, act, context, given), block), block)
        parallel = plan.cells if not statement.unique else ()
        if not (plan.scalar and plan.inner):
            order = (*plan.outer, *plan.inner)
            return self.summed(self.visits(self.points, order, act, context, (), parallel), None)

        def leaf(values: Mapping[Expr, Expr]) -> tuple[Node, ...]:
            scalars = self.scalars(self.points)
            out: list[Node] = []
            cell = tuple(scalars.position(axis, out) for axis in statement.target.indices)
            dtype = compute_dtype(plan.tensor.dtype)
            name = self.setting.names.fresh("acc")
            out.append(Define(name, plain_read(self.place.buffer, cell, dtype)))
            inner = with_parameters(self.setting.context, plan.outer)
            inner = inner.intersect(arranged(self.points, (), plan.outer).params())
            out.extend(self.visits(self.points, plan.inner, sum_up(statement, name), inner, plan.outer))
            out.append(Store(self.place.buffer, cell, Local(name, dtype)))
            return renamed(out, values)

        return scan(self.points, plan.outer, leaf, context=context, parallel=parallel)

    def summed(self, nodes: Sequence[Node], block: Block | None) -> tuple[Node, ...]:
        """``nodes`` with scattered sums in blocks, where many terms may meet."""
        setting = self.setting
        made, extra = in_scattered_blocks(nodes, self.plan, self.place.buffer, setting.tensors, setting.names, block)
        setting.extra.extend(extra)
        return made

    def in_fixed_order(self, order: FixedOrder) -> tuple[Node, ...]:
        """The loops of a statement that reads cells before it writes them; its start is in memory or needs none."""
        return tuple(
            self.visits(
                self.points,
                order.variables,
                first(self.plan.statement, self.place),
                self.setting.context,
                parallel=order.variables[:1] if order.parallel else (),
                descending=order.descending,
                known=self.points,
            )
        )

    # Shared.

    def visits(
        self,
        points: isl.Set,
        order: Sequence[str],
        act: Action,
        context: isl.Set,
        given: tuple[str, ...] = (),
        parallel: tuple[str, ...] = (),
        descending: frozenset[str] = frozenset(),
        known: isl.Set | None = None,
    ) -> list[Node]:
        """Loops over ``points``, interior and border apart; together if loops outside keep to ``known`` ones."""
        out: list[Node] = []
        for part in self.parts(points) if known is None else (points,):
            leaf = self._leaf(part if known is None else known, act)
            made = scan(part, order, leaf, context=context, given=given, parallel=parallel, descending=descending)
            out.extend(made)
        return out

    def _leaf(self, known: isl.Set, act: Action) -> Leaf:
        statement = self._specialized(known)
        return lambda values: point(statement, self.place, self.scalars(known, values), act)

    def parts(self, points: isl.Set, window: Sequence[str] = ()) -> tuple[isl.Set, ...]:
        """``points`` of the interior and of the border, or all of them."""
        statement = self.plan.statement
        ordered = ACCUMULATORS[statement.accumulate].ordered or statement.accumulate == "assign"
        cells = self.plan.cells
        if not cells:
            if ordered:
                return (points,)
            # The points of one cell may come in any order.
            cells = statement.domain.variables
        return interior(evaluated(statement), points, cells, self.setting.tensors, window) or (points,)

    def _specialized(self, points: isl.Set) -> Statement:
        statement, tensors = self.plan.statement, self.setting.tensors
        condition = statement.condition
        return replace(
            statement,
            value=specialized(statement.value, points, tensors),
            condition=None if condition is None else specialized(condition, points, tensors),
        )

    def scalars(self, points: isl.Set, values: Mapping[Expr, Expr] | None = None) -> Scalars:
        """Scalar code for ``points``; ``values`` of variables without loops."""
        values = {} if values is None else values
        return Scalars(self.setting.tensors, self.setting.buffers, self.setting.names, points, values)

    def inside_cells(self, variables: tuple[str, ...]) -> isl.Set:
        """The context within the loops over all cells of the variables."""
        context = with_parameters(self.setting.context, variables)
        extents = {name: self.plan.extent(name) for name in variables}
        plain = [name for name in variables if not has_cases(extents[name])]
        try:
            cells = box(plain, [extents[name] for name in plain], self.points)
            return context.intersect(arranged(cells, (), variables).params())
        except NotAffine:
            return context


def every_cell(tensor: Tensor, names: FreshNames, write: Callable[[tuple[Expr, ...]], list[Node]]) -> tuple[Node, ...]:
    """Loops over all cells of ``tensor``, the outermost one parallel."""
    variables = [names.fresh(f"c{axis}") for axis in range(len(tensor.shape))]
    cells = zip(variables, [integer(0)] * len(variables), tensor.shape, strict=True)
    nodes = loops_over(cells, tuple(write(tuple(map(index, variables)))))
    return tuple(replace(node, kind="parallel") if isinstance(node, Loop) else node for node in nodes)
