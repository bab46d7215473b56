"""Reductions to one number or one row, in parallel: each block of the outermost one has partial results of its own.

The number of blocks depends on the sizes, not on the number of threads, and neither does the result. Long reductions
have more blocks: the error of a sum grows with the length of a block and with their number, not with all the terms.
The only block of a short reduction stores what it has found, and there is nothing to join.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer, neutral_constant, plain_read, product_of
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Constant, Expr, Local, Read
from tcdsl.ir.program import Statement
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Buffer, Define, Loop, Node, Store, Update
from tcdsl.lowering.loopir.point_code import Action, combined, start_value, sum_up
from tcdsl.lowering.loopir.scalars import Scalars
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.loopir.traversal import buffers_read
from tcdsl.lowering.nests.blocks import Block, block_context, in_block, with_locals
from tcdsl.lowering.nests.bodies import NestContext, StatementLoops
from tcdsl.lowering.program_passes.effort import lengths_of
from tcdsl.lowering.program_passes.schedule import LoopOrder, is_short
from tcdsl.polyhedra.affine import expression_of
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.spaces import arranged, has_end

__all__ = ["COLUMNS", "STEPS", "PartialResults", "PartialRows", "ReducedSpan", "apart_from_parts", "partial_results"]

# Blocks of a reduction to one number: at most so many, each of at least so many terms.
_BLOCKS, _TERMS = 64, 128
# Blocks of a reduction to a row: at most so many, more only if each would sum more terms than the longest, as long as
# they are few cells.
_ROWS, _LONGEST, _CELLS = 16, 512, 1 << 17
STEPS, COLUMNS = 64, 4096
"""A block of a reduction to a row has at least so many steps, so that the partial rows stay small beside what is
reduced, and so many columns, so that a partial row stays in the first cache."""

# Partial rows that are added up before they are added to the others.
_TOGETHER = 64
# Partial results of -= are negative already.
_JOINED = {"subtract": "add"}


def apart_from_parts(plan: LoopOrder) -> Declined | None:
    """Why parts of the terms have no results of their own; None if the statement reduces, in any order, and no loop
    over cells can run outside in parallel.
    """
    statement = plan.statement
    reduced = plan.inner[:-1] if plan.row is not None else plan.inner
    if plan.scan:
        return Declined("each cell goes on from the one before")
    if not plan.plain or plan.outer or not reduced or plan.window or statement.unique:
        return Declined("no loop over cells or terms can run in any order")
    if plan.row_of_data:
        # Each of its parts is written by few points.
        return Declined("data say where the loop over {} begins and ends", (index(reduced[0]),))
    if plan.extents:
        # Partial rows are indexed by the cells of the target, of which a phase has some only.
        return Declined("its cells go in steps")
    if ACCUMULATORS[statement.accumulate].ordered or statement.accumulate == "assign":
        return Declined("{} joins terms in their order", (ACCUMULATORS[statement.accumulate].symbol,))
    if statement.domain.set.is_empty() or not _is_long(statement, reduced[0]):
        return Declined("the loop over {} is short", (index(reduced[0]),))
    if plan.row is None or _is_product(statement, reduced[0], plan.row):
        return None
    return Declined("not every step of {} adds to the whole row of {}", (index(reduced[0]), index(plan.row)))


def _is_long(statement: Statement, name: str) -> bool:
    line = arranged(statement.domain.set, (name,))
    return has_end(line, 0, largest=False) and has_end(line, 0, largest=True) and not is_short(statement, name)


def _is_product(statement: Statement, reduced: str, row: str) -> bool:
    # Whether every step writes the whole row: otherwise clearing the partial rows could be most of the work.
    points = arranged(statement.domain.set, (reduced, row))
    around = arranged(arranged(points, (reduced,)), (reduced, row)).intersect(
        arranged(arranged(points, (row,)), (reduced, row))
    )
    return bool(around.is_subset(points))


def partial_results(plan: LoopOrder, setting: NestContext) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Two nests: the partial results, in parallel, and what they make together, which is stored."""
    parts = PartialResults.of(plan, setting)
    return parts.of_row() if plan.row is not None else parts.of_number()


@dataclass(frozen=True, slots=True)
class ReducedSpan:
    """The blocks of ``first <= variable < stop``, a reduction."""

    block: Block
    first: Expr
    stop: Expr

    @staticmethod
    def of(body: StatementLoops, variable: str) -> ReducedSpan:
        """Of all its steps."""
        line = arranged(body.points, (variable,))
        first, last = expression_of(line.dim_min(0)), expression_of(line.dim_max(0))
        block = Block.of(variable, body.setting.names)
        return ReducedSpan(block, first, normalized(apply("add", last, integer(1))))

    @property
    def steps(self) -> Expr:
        """How many there are."""
        return normalized(apply("sub", self.stop, self.first))

    def ends(self, number: Expr, count: Expr) -> tuple[Node, ...]:
        """The scalars for the ends of block ``number`` of ``count``."""
        length = quotient_up(self.steps, count)
        return self.block.defined(apply("add", self.first, apply("mul", number, length)), length, self.stop)


@dataclass(slots=True)
class PartialResults:
    """The blocks of the outermost reduction, and with a row of the next one, if that may be long."""

    body: StatementLoops
    spans: tuple[ReducedSpan, ...]
    dtype: str

    @staticmethod
    def of(plan: LoopOrder, setting: NestContext) -> PartialResults:
        """Of a plan that can be in parts (`apart_from_parts`)."""
        body = StatementLoops(plan, setting)
        further = [name for name in plan.inner[1:-1] if plan.row is not None and _is_long(plan.statement, name)]
        spans = tuple(ReducedSpan.of(body, name) for name in (plan.inner[0], *further[:1]))
        return PartialResults(body, spans, compute_dtype(plan.tensor.dtype))

    def neutral(self) -> Constant:
        """What changes nothing."""
        return neutral_constant(self.body.plan.statement.accumulate, self.dtype)

    def buffer(self, *shape: Expr) -> Buffer:
        """Memory for partial results."""
        name = self.body.setting.names.fresh(f"parts_{self.body.plan.tensor.name}")
        made = Buffer(name, self.dtype, shape, "temporary", ())
        self.body.setting.extra.append(made)
        return made

    def visits(self, act: Action, spans: Sequence[ReducedSpan], row: Block | None = None) -> tuple[Node, ...]:
        """The points of the blocks of ``spans``, and of the block ``row`` of the row."""
        points, context = self.body.points, self.body.setting.context
        ends = [(span.block, span.first, span.stop) for span in spans]
        if row is not None:
            ends.append((row, integer(0), self.body.plan.extent(row.variable)))
        given: list[str] = []
        for block, first, stop in ends:
            points = in_block(points, block)
            context = block_context(context, block, first, stop)
            given += (block.low, block.high)
        nodes: Sequence[Node] = self.body.visits(points, self.body.plan.inner, act, context, tuple(given))
        for block, _, _ in ends:
            nodes = with_locals(nodes, block)
        return tuple(nodes)

    def of_number(self) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """Blocks of a reduction to one number."""
        body, names = self.body, self.body.setting.names
        statement = body.plan.statement
        wanted = apply("floor_div", self.terms(body.plan.inner[1:]), integer(_TERMS))
        number, count = names.fresh("block"), apply("min", apply("max", wanted, integer(1)), integer(_BLOCKS))
        parts, partial = self.buffer(count), names.fresh("acc")
        result = Local(partial, self.dtype)
        inner = (
            *self.spans[0].ends(index(number), count),
            Define(partial, self.neutral()),
            *self.visits(sum_up(statement, partial), self.spans),
        )
        kept = Store(parts.name, (index(number),), result)
        alone = self.alone(inner, (), result)
        total, number2 = names.fresh("acc"), names.fresh("block")
        out: list[Node] = []
        start = start_value(statement, body.place, (), body.scalars(body.points), out)
        together = (
            *out,
            Define(total, start),
            Loop(number2, integer(0), count, 1, (Accumulate(total, self.accumulate, self.part(parts, number2)),)),
            Store(body.place.buffer, (), Local(total, self.dtype)),
        )
        if alone:
            inner = (*inner, Branch(apply("eq", count, integer(1)), alone, (kept,)))
            together = (Branch(apply("gt", count, integer(1)), together),)
        else:
            inner = (*inner, kept)
        return (Loop(number, integer(0), count, 1, inner, "parallel"),), together

    def alone(self, nodes: Sequence[Node], cell: tuple[Expr, ...], part: Expr) -> tuple[Node, ...]:
        """Store the only partial result of a cell, unless ``nodes``, which found it, see the memory of the target."""
        body, out = self.body, list[Node]()
        if body.place.buffer in buffers_read(nodes):
            return ()
        statement = replace(body.plan.statement, accumulate=self.accumulate)
        start = start_value(statement, body.place, cell, body.scalars(body.points), out)
        return (*out, Store(body.place.buffer, cell, combined(statement, start, part)))

    @property
    def accumulate(self) -> str:
        """How partial results are joined."""
        own = self.body.plan.statement.accumulate
        return _JOINED.get(own, own)

    def part(self, parts: Buffer, number: str, *cell: Expr) -> Read:
        """What part ``number`` has found for a cell."""
        return plain_read(parts.name, (index(number), *cell), self.dtype)

    def of_row(self) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        """Blocks of the reduction times blocks of the row."""
        rows = self.partial_rows(product_of(self.counts()), integer(COLUMNS))
        inner = (*self.ends(rows.row), rows.cleared(), *rows.added(self.spans), *rows.kept())
        return (rows.over(inner),), rows.together()

    def partial_rows(self, count: Expr, columns: Expr | None) -> PartialRows:
        """As many rows of partial results, made in blocks of so many columns, or as a whole."""
        names, column = self.body.setting.names, self.body.plan.inner[-1]
        extent = self.body.plan.extent(column)
        buffer = self.buffer(count, extent)
        row = Local(names.fresh("part"), "int64")
        return PartialRows(self, buffer, count, columns, row, Block.of(column, names), names.fresh("block"))

    def terms(self, inner: Sequence[str]) -> Expr:
        """What a cell sums in all steps of the outermost reduction and of those ``inner``."""
        lengths = lengths_of(self.body.plan.statement, inner, self.body.setting.tensors)
        return product_of((self.spans[0].steps, *lengths))

    def counts(self, outermost: Expr | None = None, least: int = STEPS) -> list[Expr]:
        """How many blocks of ``least`` steps each span has; ``outermost`` holds how many the first one has."""
        plan, (outer, *further) = self.body.plan, self.spans
        terms = self.terms(plan.inner[1:-1])
        few = apply("min", apply("max", apply("floor_div", outer.steps, integer(least)), integer(1)), integer(_ROWS))
        room = apply("floor_div", integer(_CELLS), apply("max", plan.extent(plan.inner[-1]), integer(1)))
        many = apply("min", outer.steps, apply("floor_div", terms, integer(_LONGEST)))
        counts = [outermost or apply("max", few, apply("min", many, room))]
        for span in further:
            longest = apply("mul", counts[0], integer(_LONGEST))
            wanted = apply("min", apply("floor_div", terms, longest), apply("floor_div", room, counts[0]))
            counts.append(apply("max", apply("min", span.steps, wanted), integer(1)))
        return counts

    def ends(self, row: Expr) -> tuple[Node, ...]:
        """The ends of all blocks of a partial row."""
        if len(self.spans) == 1:
            return self.spans[0].ends(row, *self.counts())
        # Each number is part of the next: without names for them there would be thousands of operations.
        named = [Local(self.body.setting.names.fresh("blocks"), "int64") for _ in self.spans]
        values = self.counts()[0], self.counts(named[0])[1]
        defined = [Define(name.name, value, index=True) for name, value in zip(named, values, strict=True)]
        outer = self.spans[0].ends(apply("floor_div", row, named[1]), named[0])
        return (*defined, *outer, *self.spans[1].ends(apply("mod", row, named[1]), named[1]))


@dataclass(slots=True)
class PartialRows:
    """Rows of partial results in ``buffer``: the part ``row``, in the block ``column`` of the columns, if there are
    blocks; ``found`` is what makes them.
    """

    parts: PartialResults
    buffer: Buffer
    count: Expr
    columns: Expr | None
    row: Local
    column: Block
    number: str
    found: tuple[Node, ...] = ()

    def beside(self, parts: PartialResults) -> PartialRows:
        """Those of another reduction of the same rows, in the same loops."""
        column = replace(self.column, variable=parts.body.plan.inner[-1])
        extent = parts.body.plan.extent(column.variable)
        return replace(self, parts=parts, buffer=parts.buffer(self.count, extent), column=column)

    @property
    def extent(self) -> Expr:
        """The columns of the target."""
        return self.parts.body.plan.extent(self.column.variable)

    @property
    def width(self) -> Expr:
        """The columns of a block."""
        return self.extent if self.columns is None else apply("min", self.extent, self.columns)

    @property
    def cell(self) -> tuple[Expr, ...]:
        """Where a loop along the block writes the target."""
        return (index(self.column.variable),)

    def along(self, *body: Node) -> Loop:
        """A loop over the block of the columns."""
        return Loop(self.column.variable, *self.column.ends, 1, body)

    def over(self, inner: Sequence[Node]) -> Loop:
        """``inner`` for all parts and blocks of columns, in parallel."""
        number = index(self.number)
        if self.columns is None:
            ends = self.column.defined(integer(0), self.extent, self.extent)
            nodes = (Define(self.row.name, number, index=True), *ends, *inner)
            return Loop(self.number, integer(0), self.count, 1, nodes, "parallel")
        across = quotient_up(self.extent, self.columns)
        first = apply("mul", apply("mod", number, across), self.columns)
        ends = self.column.defined(first, self.columns, self.extent)
        nodes = (Define(self.row.name, apply("floor_div", number, across), index=True), *ends, *inner)
        return Loop(self.number, integer(0), apply("mul", self.count, across), 1, nodes, "parallel")

    def cleared(self) -> Loop:
        """Nothing is found yet."""
        return self.along(Store(self.buffer.name, (self.row, *self.cell), self.parts.neutral()))

    def added(self, spans: Sequence[ReducedSpan]) -> tuple[Node, ...]:
        """What the points of the blocks ``spans`` add."""
        accumulate = self.parts.body.plan.statement.accumulate

        def act(_scalars: Scalars, cell: tuple[Expr, ...], value: Expr, out: list[Node]) -> None:
            out.append(Update(self.buffer.name, (self.row, *cell), accumulate, value))

        self.found = self.parts.visits(act, spans, self.column)
        return self.found

    def alone(self) -> tuple[Node, ...]:
        """The only part's results become the target's cells, where that may be so."""
        part = plain_read(self.buffer.name, (self.row, *self.cell), self.parts.dtype)
        return self.parts.alone(self.found, self.cell, part)

    def kept(self) -> tuple[Node, ...]:
        """If there is one part, it has found the result."""
        alone = self.alone()
        return (Branch(apply("eq", self.count, integer(1)), (self.along(*alone),)),) if alone else ()

    def together(self) -> tuple[Node, ...]:
        """The nest that joins all parts."""
        parts, body, names = self.parts, self.parts.body, self.parts.body.setting.names
        made = replace(self, column=Block.of(self.column.variable, names), number=names.fresh("block"))
        columns = integer(COLUMNS)
        nodes = [*made.column.defined(apply("mul", index(made.number), columns), columns, self.extent)]
        if not body.started:
            nodes.append(made.along(*body.start_of(self.cell)))
        rows, row, first = self.count, names.fresh("part"), names.fresh("first")
        others = parts.part(self.buffer, row, *self.cell)
        others_added = Update(self.buffer.name, (index(first), *self.cell), parts.accumulate, others)
        found = parts.part(self.buffer, first, *self.cell)
        more = Update(body.place.buffer, self.cell, parts.accumulate, found)
        second = apply("add", index(first), integer(1))
        if len(parts.spans) > 1:
            total = Local(names.fresh("parts"), "int64")
            nodes.append(Define(total.name, rows, index=True))
            rows = total
        stop = apply("min", rows, apply("add", index(first), integer(_TOGETHER)))
        joined = Loop(row, second, stop, 1, (made.along(others_added),))
        nodes.append(Loop(first, integer(0), rows, _TOGETHER, (joined, made.along(more))))
        across = quotient_up(self.extent, columns)
        all_rows = (Loop(made.number, integer(0), across, 1, tuple(nodes), "parallel"),)
        return (Branch(apply("gt", self.count, integer(1)), all_rows),) if self.alone() else all_rows
