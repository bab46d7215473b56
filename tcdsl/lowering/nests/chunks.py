"""Long sums into short rows, a few terms at a time.

A row that accumulates in memory is loaded and stored for every term. Where all extents are small constants, some terms
are added in one pass over the cells instead, which LLVM unrolls and computes in vector registers::

    d[k, j] += e[i, j] * h[i, k]   for i in 0 .. 100 by 10: for k: for j: acc = d[k, j]; acc += ten terms; d[k, j] = acc

The loop over the sum goes outside, so that neighbouring rows do not wait for each other. A cell's terms are added in
the order that they had.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Local
from tcdsl.lowering.loopir.loops import Define, Loop, Node, Store, loops_over
from tcdsl.lowering.loopir.point_code import point, sum_up
from tcdsl.lowering.loopir.tiles import unrolled
from tcdsl.lowering.nests.bodies import StatementLoops
from tcdsl.lowering.nests.long_rows import SummedCells, in_row_blocks
from tcdsl.lowering.program_passes.schedule import constant_count
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.spaces import constant_range

__all__ = ["in_chunks"]

# Terms of a pass at most, and the fewest that are worth it.
_MOST, _FEWEST = 16, 4
# Cells of a target that stays in a core's own caches.
_CELLS = 1 << 14


def in_chunks(body: StatementLoops, depth: int) -> tuple[Node, ...]:
    """The loops of a statement inside its first ``depth`` outer ones; nothing unless it is a sum as described above."""
    extents = _extents(body)
    if extents is None:
        return ()
    plan = body.plan
    *around, summed = plan.inner[:-1]
    cells = _whole((*plan.outer[depth:], plan.inner[-1]), extents)
    count = extents[summed]
    terms = _terms(count)
    whole = count - count % terms
    nodes: tuple[Node, ...] = ()
    if whole:
        chunk = loops_over(cells, _terms_from(body, summed, index(summed), terms))
        nodes = (Loop(summed, integer(0), integer(whole), terms, chunk),)
    if whole < count:
        nodes = (*nodes, *loops_over(cells, _terms_from(body, summed, integer(whole), count - whole)))
    nodes = in_row_blocks(loops_over(_whole(around, extents), nodes), body, cells)
    return nodes if body.started else (*loops_over(cells, tuple(body.start_of())), *nodes)


def _whole(names: Sequence[str], extents: Mapping[str, int]) -> SummedCells:
    return [(name, integer(0), integer(extents[name])) for name in names]


def _terms_from(body: StatementLoops, summed: str, first: Expr, count: int) -> tuple[Node, ...]:
    # ``count`` terms of one cell, added to what it holds.
    statement, dtype = body.plan.statement, compute_dtype(body.plan.tensor.dtype)
    cell = statement.target.indices
    name = body.setting.names.fresh("acc")
    nodes: list[Node] = [Define(name, plain_read(body.place.buffer, cell, dtype))]
    term = body.setting.names.fresh(summed)
    values: dict[Expr, Expr] = {index(summed): apply("add", first, index(term))}
    terms = point(statement, body.place, body.scalars(body.points, values), sum_up(statement, name))
    nodes += unrolled((Loop(term, integer(0), integer(count), 1, tuple(terms)),))
    return (*nodes, Store(body.place.buffer, cell, Local(name, dtype)))


def _extents(body: StatementLoops) -> dict[str, int] | None:
    # The extents of all variables, which begin at 0, if this is a sum over a box of constant extents.
    plan, statement = body.plan, body.plan.statement
    if plan.row is None or not plan.plain or plan.single or plan.window or plan.extents or len(plan.inner) < 2:
        return None
    if statement.accumulate == "assign" or statement.condition is not None or can_fail(statement):
        return None
    if plan.tensor.dtype == "float16" or body.points.is_empty() or body.points.dim(isl.dim_type.param):
        return None
    cells = constant_count(plan.tensor.shape)
    if cells is None:
        return None
    extents: dict[str, int] = {}
    for name in statement.domain.variables:
        values = constant_range(body.points, name)
        if values is None:
            return None
        extents[name] = values.stop
    everything = box(tuple(extents), tuple(map(integer, extents.values())), body.points)
    whole = [integer(extents[name]) for name in plan.cells] == [plan.extent(name) for name in plan.cells]
    suitable = whole and cells <= _CELLS and extents[plan.inner[-2]] >= _FEWEST
    if not suitable or not body.points.is_equal(everything) or len(body.parts(body.points)) > 1:
        return None
    return extents


def _terms(count: int) -> int:
    # The most terms that leave nothing over, or the most.
    return max((terms for terms in range(_FEWEST, _MOST + 1) if count % terms == 0), default=min(count, _MOST))
