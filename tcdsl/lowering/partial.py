"""Reductions to one number or one row, in parallel: each block of the outermost one has partial results of its own.

The number of blocks depends on the sizes, not on the number of threads, and neither does the result.
"""

from __future__ import annotations

from dataclasses import dataclass

from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.build import apply, constant, index, integer
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Constant, Expr, Local, Read
from tcdsl.ir.program import Statement
from tcdsl.lowering.blocks import Block, block_context, in_block, with_locals
from tcdsl.lowering.bodies import Body, Setting
from tcdsl.lowering.loops import Accumulate, Buffer, Define, Loop, Node, Store, Update
from tcdsl.lowering.points import Action, start_value, sum_up
from tcdsl.lowering.scalars import Scalars
from tcdsl.lowering.schedule import Plan, is_short
from tcdsl.shapes.affine import expression_of
from tcdsl.shapes.linear import normalized
from tcdsl.shapes.spaces import arranged, has_end

__all__ = ["in_parts", "partial_results"]

# Blocks of a reduction to one number.
_BLOCKS = 64
# Blocks of a reduction to a row: at most so many, each of at least so many steps, so that the partial rows stay small
# beside what is reduced; and columns per block, so that a partial row stays in the first cache.
_ROWS, _STEPS, _COLUMNS = 16, 64, 4096
# Partial results of -= are negative already.
_JOINED = {"subtract": "add"}


def in_parts(plan: Plan) -> bool:
    """Whether the statement reduces, in any order, and no loop over cells can run outside in parallel."""
    statement = plan.statement
    reduced = plan.inner[:-1] if plan.row is not None else plan.inner
    if not plan.plain or plan.outer or not reduced or plan.window or statement.unique:
        return False
    if plan.extents:
        # Partial rows are indexed by the cells of the target, of which a phase has some only.
        return False
    if ACCUMULATORS[statement.accumulate].ordered or statement.accumulate == "assign":
        return False
    line = arranged(statement.domain.set, (reduced[0],))
    bounded = has_end(line, 0, largest=False) and has_end(line, 0, largest=True)
    if not bounded or line.is_empty() or is_short(statement, reduced[0]):
        return False
    return plan.row is None or _is_product(statement, reduced[0], plan.row)


def _is_product(statement: Statement, reduced: str, row: str) -> bool:
    # Whether every step writes the whole row: otherwise clearing the partial rows could be most of the work.
    points = arranged(statement.domain.set, (reduced, row))
    around = arranged(arranged(points, (reduced,)), (reduced, row)).intersect(
        arranged(arranged(points, (row,)), (reduced, row))
    )
    return bool(around.is_subset(points))


def partial_results(plan: Plan, setting: Setting) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Two nests: the partial results, in parallel, and what they make together, which is stored."""
    parts = _Parts.of(plan, setting)
    return parts.of_row() if plan.row is not None else parts.of_number()


@dataclass(slots=True)
class _Parts:
    """The blocks of ``first <= variable < stop``, the outermost reduction."""

    body: Body
    block: Block
    first: Expr
    stop: Expr
    dtype: str

    @staticmethod
    def of(plan: Plan, setting: Setting) -> _Parts:
        body, variable = Body(plan, setting), plan.inner[0]
        line = arranged(body.points, (variable,))
        first, last = expression_of(line.dim_min(0)), expression_of(line.dim_max(0))
        stop = normalized(apply("add", last, integer(1)))
        block = Block(variable, setting.names.fresh("low"), setting.names.fresh("high"))
        return _Parts(body, block, first, stop, compute_dtype(plan.tensor.dtype))

    def neutral(self) -> Constant:
        return constant(neutral_element(self.body.plan.statement.accumulate, self.dtype), self.dtype)

    def buffer(self, *shape: Expr) -> Buffer:
        name = self.body.setting.names.fresh(f"parts_{self.body.plan.tensor.name}")
        made = Buffer(name, self.dtype, shape, "temporary", ())
        self.body.setting.extra.append(made)
        return made

    def ends(self, number: Expr, count: Expr) -> tuple[Node, ...]:
        """The scalars for the ends of block ``number`` of ``count``."""
        steps = apply("sub", self.stop, self.first)
        length = apply("floor_div", normalized(apply("add", steps, apply("sub", count, integer(1)))), count)
        low = apply("add", self.first, apply("mul", number, length))
        high = apply("min", self.stop, apply("add", Local(self.block.low, "int64"), length))
        return Define(self.block.low, low), Define(self.block.high, high)

    def visits(self, act: Action, row: Block | None = None) -> tuple[Node, ...]:
        """The points of the block, and of the block ``row`` of the row."""
        points = in_block(self.body.points, self.block)
        context = block_context(self.body.setting.context, self.block, self.first, self.stop)
        given: tuple[str, ...] = (self.block.low, self.block.high)
        if row is not None:
            points, given = in_block(points, row), (*given, row.low, row.high)
            context = block_context(context, row, integer(0), self.body.plan.extent(row.variable))
        nodes = self.body.visits(points, self.body.plan.inner, act, context, given)
        return with_locals(with_locals(nodes, self.block), row)

    def of_number(self) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        body, names = self.body, self.body.setting.names
        statement = body.plan.statement
        number, count = names.fresh("block"), integer(_BLOCKS)
        parts, partial = self.buffer(count), names.fresh("acc")
        inner = (
            *self.ends(index(number), count),
            Define(partial, self.neutral()),
            *self.visits(sum_up(statement, partial)),
            Store(parts.name, (index(number),), Local(partial, self.dtype)),
        )
        total, number2 = names.fresh("acc"), names.fresh("block")
        out: list[Node] = []
        start = start_value(statement, body.place, (), body.scalars(body.points), out)
        together = (
            *out,
            Define(total, start),
            Loop(number2, integer(0), count, 1, (Accumulate(total, self.accumulate, self.part(parts, number2)),)),
            Store(body.place.buffer, (), Local(total, self.dtype)),
        )
        return (Loop(number, integer(0), count, 1, inner, True),), together

    @property
    def accumulate(self) -> str:
        own = self.body.plan.statement.accumulate
        return _JOINED.get(own, own)

    def part(self, parts: Buffer, number: str, *cell: Expr) -> Read:
        indices = (index(number), *cell)
        return Read(parts.name, indices, (Boundary.SKIP,) * len(indices), self.dtype)

    def of_row(self) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """Blocks of the reduction times blocks of the row."""
        body, names = self.body, self.body.setting.names
        plan = body.plan
        column = plan.inner[-1]
        extent, columns = plan.extent(column), integer(_COLUMNS)
        steps = normalized(apply("sub", self.stop, self.first))
        rows = apply("min", apply("max", apply("floor_div", steps, integer(_STEPS)), integer(1)), integer(_ROWS))
        across = apply("floor_div", normalized(apply("add", extent, integer(_COLUMNS - 1))), columns)
        parts = self.buffer(rows, extent)
        number, row = names.fresh("block"), Local(names.fresh("part"), "int64")
        block = Block(column, names.fresh("low"), names.fresh("high"))

        def act(_scalars: Scalars, cell: tuple[Expr, ...], value: Expr, out: list[Node]) -> None:
            out.append(Update(parts.name, (row, *cell), plan.statement.accumulate, value))

        ends = (Local(block.low, "int64"), Local(block.high, "int64"))
        clear = Store(parts.name, (row, index(column)), self.neutral())
        inner = (
            Define(row.name, apply("floor_div", index(number), across)),
            *_column_ends(block, apply("mod", index(number), across), extent),
            *self.ends(row, rows),
            Loop(column, *ends, 1, (clear,)),
            *self.visits(act, block),
        )
        first = Loop(number, integer(0), apply("mul", rows, across), 1, inner, True)
        return (first,), self.rows_together(parts, rows, across)

    def rows_together(self, parts: Buffer, rows: Expr, across: Expr) -> tuple[Node, ...]:
        body, names = self.body, self.body.setting.names
        plan = body.plan
        column = plan.inner[-1]
        block = Block(column, names.fresh("low"), names.fresh("high"))
        number, row = names.fresh("block"), names.fresh("part")
        ends = (Local(block.low, "int64"), Local(block.high, "int64"))
        cell = (index(column),)
        nodes: list[Node] = [*_column_ends(block, index(number), plan.extent(column))]
        if not body.started:
            out: list[Node] = []
            start = start_value(plan.statement, body.place, cell, body.scalars(body.points), out)
            nodes.append(Loop(column, *ends, 1, (*out, Store(body.place.buffer, cell, start))))
        more = Update(body.place.buffer, cell, self.accumulate, self.part(parts, row, *cell))
        nodes.append(Loop(row, integer(0), rows, 1, (Loop(column, *ends, 1, (more,)),)))
        return (Loop(number, integer(0), across, 1, tuple(nodes), True),)


def _column_ends(block: Block, number: Expr, extent: Expr) -> tuple[Node, ...]:
    low = apply("mul", number, integer(_COLUMNS))
    high = apply("min", extent, apply("add", Local(block.low, "int64"), integer(_COLUMNS)))
    return Define(block.low, low), Define(block.high, high)
