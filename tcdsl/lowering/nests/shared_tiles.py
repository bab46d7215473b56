"""Sums of what is read across rows and is the same for many of the target's rows: these rows go inside.

A tile of what is read across rows (`tcdsl.lowering.loop_passes.square_tiles`) then serves all of them::

    for c in 0 .. C:                                   for block of columns:
        for i in 0 .. N:                                   for tile of i:
            for j in 0 .. M:                                   tile = r[columns, tile of i]
                s[c, j] += x[c, i] * r[j, i]                   for c in 0 .. C:
                                                                   for i in the tile:
                                                                       for j in the columns:
                                                                           s[c, j] += x[c, i] * tile[i, j]

Blocks of rows times blocks of columns run in parallel: there may be few rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import Boundary, IndexValue, Local, Read, index_variables, reads
from tcdsl.lowering.loopir.loops import Define, Loop, Node, loops_over
from tcdsl.lowering.loopir.point_code import update
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.nests.blocks import Block, block_context, in_block, with_locals
from tcdsl.lowering.nests.bodies import NestContext, StatementLoops
from tcdsl.lowering.nests.long_rows import in_row_blocks
from tcdsl.lowering.program_passes.schedule import LoopOrder, is_short
from tcdsl.lowering.program_passes.touched_tensors import can_fail

__all__ = ["in_shared_tiles"]

# Rows and columns of a block, as many as a tile has.
_SIDE = 64


def in_shared_tiles(plan: LoopOrder, setting: NestContext) -> tuple[Node, ...]:
    """The loops of a plain target as described above; nothing unless it is such a sum."""
    summed, inside = _shared(plan)
    if not inside:
        return ()
    around = tuple(name for name in plan.outer if name not in inside)
    plan = replace(plan, outer=(*around, *inside), inner=(*summed, plan.inner[-1]))
    body, names = StatementLoops(plan, setting), setting.names
    row, column = (Block.of(name, names) for name in (inside[0], plan.inner[-1]))
    number, across, side = names.fresh("block"), names.fresh("blocks"), integer(_SIDE)
    low = apply("floor_div", index(number), Local(across, "int64")), apply("mod", index(number), Local(across, "int64"))
    points, context = body.points, body.inside_cells(around)
    ends: list[Node] = []
    for block, place in zip((row, column), low, strict=True):
        extent = plan.extent(block.variable)
        points, context = in_block(points, block), block_context(context, block, integer(0), extent)
        ends += block.defined(apply("mul", place, side), side, extent)
    cells = [(row.variable, *row.ends), *plan.spans(inside[1:]), (column.variable, *column.ends)]
    given = (*around, row.low, row.high, column.low, column.high)
    order = (*summed, *inside, column.variable)
    sums: Sequence[Node] = body.visits(points, order, update(plan.statement, body.place), context, given)
    starts = () if body.started else loops_over(cells, tuple(body.start_of()))
    nodes = with_locals(with_locals((*starts, *in_row_blocks(sums, body, cells)), row), column)
    rows, columns = (quotient_up(plan.extent(block.variable), side) for block in (row, column))
    body_of_block = (Define(across, columns, index=True), *ends, *nodes)
    blocks = Loop(number, integer(0), apply("mul", rows, columns), 1, body_of_block)
    made = loops_over(plan.spans(around), (blocks,))
    return tuple(replace(loop, kind="parallel") if isinstance(loop, Loop) else loop for loop in made)


def _shared(plan: LoopOrder) -> tuple[tuple[str, ...], tuple[str, ...]]:
    # The variables that are summed, the one along rows of what is read across them last; and the cells to go inside.
    statement, nothing = plan.statement, ((), ())
    if not plan.plain or plan.row is None or plan.single or plan.window or plan.extents or len(plan.inner) < 2:
        return nothing
    if ACCUMULATORS[statement.accumulate].ordered or statement.unique or can_fail(statement):
        return nothing
    *summed, row = plan.inner
    if plan.tensor.dtype == "float16" or is_short(statement, row):
        return nothing
    for name in reversed(summed):
        found = [read for read in reads(statement.value) if _is_across(read, row, name)]
        held = frozenset[str]().union(*(index_variables(axis) for read in found for axis in read.indices))
        inside = tuple(each for each in plan.outer if each not in held)
        if found and inside and not is_short(statement, name):
            return (*(each for each in summed if each != name), name), inside
    return nothing


def _is_across(read: Read, row: str, name: str) -> bool:
    *rows, last = read.indices or (integer(0),)
    return (
        last == IndexValue(name)
        and any(row in index_variables(axis) for axis in rows)
        and set(read.boundaries) == {Boundary.SKIP}
    )
