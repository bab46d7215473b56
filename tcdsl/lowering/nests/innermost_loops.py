"""Loops over all cells of a plain target; innermost along a row: start values, interior and border.

A cell that one point writes, or a window of a constant number of points, is computed in one go. If the row has an
interior, it is one loop without tests, and a loop with them runs over both ends before; in rows of the border that one
does it all::

    for j before first and from last on: any cell: start, the points that there are, store
    for j in first .. last:              interior: all points, written out

Everything else accumulates along the row in memory, after a loop that stores the start values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import islpy as isl

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr, Local, Read
from tcdsl.lowering.loopir.loops import Branch, Check, Define, Loop, Node, loops_over
from tcdsl.lowering.loopir.point_code import first, update
from tcdsl.lowering.loopir.tiles import unrolled
from tcdsl.lowering.loopir.traversal import renamed, walk_nodes
from tcdsl.lowering.nests.blocks import Block, block_context, in_block, inside_block, with_locals, with_parameters
from tcdsl.lowering.nests.bodies import StatementLoops
from tcdsl.lowering.nests.chunks import in_chunks
from tcdsl.lowering.nests.interleaving import skipping
from tcdsl.lowering.nests.long_rows import in_row_blocks
from tcdsl.lowering.nests.polyhedron_scanning import scan
from tcdsl.lowering.nests.scans import scan_loops
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.linear import has_cases
from tcdsl.polyhedra.spaces import arranged
from tcdsl.simplification.scans import scan_of

__all__ = ["cell_loops", "rows_of_phases"]

# Pieces of a row beyond which all of its cells get a start value, those included that are stored again.
_MOST_PIECES = 6


def cell_loops(body: StatementLoops, depth: int = 0, block: Block | None = None) -> tuple[Node, ...]:
    """The loops of a plain target inside the first ``depth`` outer ones; of a ``block`` of its rows, if given."""
    plan = body.plan
    scan = scan_of(plan.statement, plan.tensor.shape) if plan.scan else None
    if scan is not None:
        nodes = scan_loops(body, scan)
    elif plan.full:
        nodes = body.full()
    elif block is None and (chunks := in_chunks(body, depth)):
        return chunks
    elif plan.scalar:
        nodes = body.cell(body.points, plan.inner, body.inside_cells(plan.outer), plan.outer)
    else:
        nodes = row_loops(body, block)
    return loops_over(plan.spans(plan.outer[depth:]), nodes)


def row_loops(body: StatementLoops, block: Block | None) -> tuple[Node, ...]:
    """The loops along the row of ``body``'s plan, or along a block of it, inside those over its other cells."""
    row = _Row(body, block)
    return with_locals(row.loops(), block)


def rows_of_phases(bodies: Sequence[StatementLoops], whole: StatementLoops) -> list[Node] | None:
    """The rows of all phases: the cells near the ends by ``whole``, those between in one loop; None if there are none.

    What is near an end in one phase is so in all, so that code for the border is written once.
    """
    rows = [_Row(body, None) for body in bodies]
    found: list[tuple[Loop, Expr | None]] = []
    for row in rows:
        # Where every cell has all of its points, they are the interior.
        inside = row.body.parts(row.points, row.window)[0]
        loop, condition = _single(row.stores(inside)) if _convex(inside) else (None, None)
        if loop is None:
            return None
        found.append((loop, condition))
    border = _Row(whole, None)
    context = with_parameters(border.context, (border.variable,)).intersect(
        whole.inside_cells((*border.plan.outer, border.variable))
    )
    names, step, least = whole.setting.names, len(rows), rows[-1].high
    first: Expr = integer(0)
    last = least
    for loop, condition in found:
        start, stop = loop.start, loop.stop
        if condition is not None:
            start, stop = apply("where", condition, start, least), apply("where", condition, stop, least)
        first, last = apply("max", first, start), apply("min", last, stop)
    low, high = Local(names.fresh("first"), "int64"), Local(names.fresh("last"), "int64")
    scale = integer(step)
    ends = (apply("mul", scale, low), apply("mul", scale, high))
    cell = border.cell(border.points, border.points, context)
    return [
        Define(low.name, apply("min", first, least), index=True),
        Define(high.name, apply("max", last, low), index=True),
        *border.around(*ends, cell),
        Loop(rows[0].variable, low, high, 1, tuple(node for loop, _ in found for node in loop.body)),
    ]


class _Row:
    """A row, what is known inside the loops around it, and the names that they set."""

    def __init__(self, body: StatementLoops, block: Block | None) -> None:
        self.body = body
        self.plan = body.plan
        self.block = block
        *window, self.variable = self.plan.inner
        self.window = tuple(window)
        self.given = self.plan.outer
        self.context = body.inside_cells(self.plan.outer)
        self.points = body.points
        self.low: Expr = integer(0)
        self.high: Expr = self.plan.extent(self.variable)
        if block is not None:
            self.given = (*self.given, block.low, block.high)
            self.context = block_context(self.context, block, integer(0), self.high)
            self.points = in_block(self.points, block)
            self.low, self.high = block.ends

    def loops(self) -> list[Node]:
        if not (self.plan.single or self.plan.window):
            return self.accumulated()
        parts = self.body.parts(self.points, self.window)
        if len(parts) == 1:
            return [*self.starts(self.points), *self.stores(self.points)]
        return self.split(*parts)

    def accumulated(self) -> list[Node]:
        """Start values; reductions, and in each of them along the row."""
        act = update(self.plan.statement, self.body.place)
        nodes = self.body.visits(self.points, self.plan.inner, act, self.context, self.given)
        return [*self.starts(None), *in_row_blocks(nodes, self.body, ((self.variable, self.low, self.high),))]

    def stores(self, points: isl.Set) -> list[Node]:
        """Loops over the cells of ``points``, a window written out for each."""
        statement = self.plan.statement
        if self.plan.single and statement.condition is None:
            act = first(statement, self.body.place)
            return self.body.visits(points, (self.variable,), act, self.context, self.given, known=points)
        shadow = arranged(points, (), (*self.given, self.variable)).params()
        inside = with_parameters(self.context, (self.variable,)).intersect(shadow).coalesce()

        def leaf(values: Mapping[Expr, Expr]) -> tuple[Node, ...]:
            return unrolled(renamed(self.cell(points, points, inside), values))

        return list(scan(points, (self.variable,), leaf, context=self.context, given=self.given))

    def cell(self, points: isl.Set, known: isl.Set, context: isl.Set) -> tuple[Node, ...]:
        return self.body.cell(points, self.window, context, (*self.given, self.variable), known)

    def split(self, inside: isl.Set, border: isl.Set) -> list[Node]:
        """Border, interior, border."""
        variable = self.variable
        context = with_parameters(self.context, (variable,)).intersect(
            self.body.inside_cells((*self.plan.outer, variable))
        )
        if self.block is not None:
            context = inside_block(context, self.block)
        loop, condition = _single(self.stores(inside)) if _convex(inside) else (None, None)
        if loop is None:
            return [Loop(variable, self.low, self.high, 1, self.cell(self.points, self.points, context))]
        cell = self.cell(self.points, border, context)
        names = self.body.setting.names
        start, stop = Local(names.fresh("first"), "int64"), Local(names.fresh("last"), "int64")
        low = apply("min", apply("max", loop.start, self.low), self.high)
        high = apply("min", apply("max", loop.stop, start), self.high)
        if condition is not None:
            low = apply("where", condition, low, self.high)
            high = apply("where", condition, high, self.high)
        return [
            Define(start.name, low, index=True),
            Define(stop.name, high, index=True),
            *self.around(start, stop, cell),
            Loop(variable, start, stop, 1, loop.body),
        ]

    def around(self, start: Expr, stop: Expr, cell: tuple[Node, ...]) -> list[Node]:
        """``cell`` for every position of the row before ``start`` and from ``stop`` on."""
        variable = self.variable
        if any(isinstance(node, Check) for node in walk_nodes(cell)):
            # Errors show the positions of loops.
            return [Loop(variable, self.low, start, 1, cell), Loop(variable, stop, self.high, 1, cell)]
        # One loop over both ends: code for borders is long, and takes long to compile. A copy is done in no time.
        whole = Loop(variable, self.low, self.high, 1, cell, seldom=isinstance(self.plan.statement.value, Read))
        return [skipping(whole, start, apply("sub", stop, start), "end", self.body.setting.names)]

    def starts(self, written: isl.Set | None) -> list[Node]:
        """Start values along the row, except of the cells of the points ``written`` and where memory holds them."""
        if self.body.started:
            return []
        plan, variable = self.plan, self.variable
        single = plan.single and plan.statement.condition is not None
        try:
            if written is None or single or any(map(has_cases, plan.tensor.shape)):
                raise NotAffine(variable)
            variables = (*plan.outer, variable)
            rest = box(variables, tuple(map(plan.extent, variables)), self.body.points)
        except NotAffine:
            return [Loop(variable, self.low, self.high, 1, tuple(self.body.start_of()))]
        rest = arranged(rest if self.block is None else in_block(rest, self.block), (variable,), plan.outer)
        # What holds around the row needs no pieces: else there were two for each size that is known.
        rest = rest.subtract(arranged(written, (variable,), plan.outer).gist_params(self.context)).coalesce()
        if rest.n_basic_set() > _MOST_PIECES:
            return [Loop(variable, self.low, self.high, 1, tuple(self.body.start_of()))]
        return list(scan(rest, (variable,), partial(self.body.start_of, None), context=self.context, given=self.given))


def _convex(points: isl.Set) -> bool:
    # Whether a loop over the last variable meets every value between its ends.
    return all(part.dim(isl.dim_type.div) == 0 for part in points.get_basic_sets()) and points.n_basic_set() == 1


def _single(nodes: list[Node]) -> tuple[Loop | None, Expr | None]:
    # The loop, and the condition around it, if there is nothing else.
    match nodes:
        case [Loop(step=1) as loop]:
            return loop, None
        case [Branch(condition=condition, body=(Loop(step=1) as loop,), otherwise=())]:
            return loop, condition
        case _:
            return None, None
