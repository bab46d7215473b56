"""Reductions of rows into one row go through these rows together with what else does, while they are near.

Where columns are summed, the loop over the rows is cut into blocks that have partial results of their own
(`tcdsl.lowering.nests.parallel_reductions`). Other statements that do the same rows one by one, and share memory with
it, join these blocks, and go through a few rows at a time::

    parallel for i: row i of E                     parallel for block:
    parallel for block:                                parts[block, :] = 0
        parts[block, :] = 0                            for first in block by steps:
        for i in block:                                    for i in first .. first + steps:
            for j: parts[block, j] += E[i, j]                  row i of E
    s[:] = all parts                                       for i in first .. first + steps:
                                                               for j: parts[block, j] += E[i, j]
                                                   s[:] = all parts

Of memory that one of them writes, all must touch the same row in the same step, so that nothing waits for another
block. Where they touch the same column too, blocks of columns run in parallel as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import islpy as isl

from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.expressions import Expr, Local
from tcdsl.ir.program import statement_reads
from tcdsl.lowering.loopir.loops import Define, Loop, Node
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.nests.blocks import Block
from tcdsl.lowering.nests.bodies import NestContext, StatementLoops
from tcdsl.lowering.nests.parallel_reductions import COLUMNS, STEPS, PartialResults, ReducedSpan, apart_from_parts
from tcdsl.lowering.program_passes.merging import LARGEST, REACH, Group, Touched, Ways, aligned, reads_own_cells
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.affine import expression_of, holds
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.spaces import arranged

__all__ = ["swept", "swept_nests"]

_FEWER_STEPS = 16
"""A block has at least so many rows where each of them is done as a whole."""

_LEAST_STEPS, _MOST_STEPS = 8, 64
"""Rows that are done together: partial results are loaded and stored once for several of them."""


@dataclass(frozen=True, slots=True)
class _Item:
    """A group that may be part of a sweep over ``rows``; ``columns`` are those of the cells that it does one by one,
    unless it does rows as a whole. ``work`` and ``ways`` are those of all its plans.
    """

    group: Group
    rows: Expr
    columns: Expr | None
    reduces: bool
    work: int
    ways: Ways


def swept(groups: Sequence[Group], touched: Touched, context: isl.Set, thin: frozenset[str]) -> list[Group]:
    """``groups``, reductions to rows with what they share rows with, in an order that respects what depends on what."""
    out: list[tuple[_Item, ...] | Group] = []
    for group in groups:
        item = _item(group, touched, thin)
        for other in reversed(range(max(0, len(out) - REACH), len(out))):
            before = out[other]
            if item is not None and not isinstance(before, Group) and _fits(before, item, context):
                out[other] = (*before, item)
                break
            if touched.conflict_between(_plans(before), group.plans):
                out.append(group if item is None else (item,))
                break
        else:
            out.append(group if item is None else (item,))
    return [each if isinstance(each, Group) else _together(each) for each in out]


def _plans(items: tuple[_Item, ...] | Group) -> list[LoopOrder]:
    groups = (items,) if isinstance(items, Group) else tuple(item.group for item in items)
    return [plan for group in groups for plan in group.plans]


def _together(items: tuple[_Item, ...]) -> Group:
    if len(items) == 1:
        return items[0].group
    groups = tuple(item.group for item in items)
    cells = all(item.columns == items[0].columns and item.columns is not None for item in items)
    cells = cells and all(
        aligned(one.ways, other.ways, 2) for position, one in enumerate(items) for other in items[:position]
    )
    return Group(tuple(_plans(items)), 2 if cells else 1, groups)


def _item(group: Group, touched: Touched, thin: frozenset[str]) -> _Item | None:
    first, plans = group.plans[0], group.plans
    if not all(_goes_by_rows(plan, thin) for plan in plans):
        return None
    reduces = len(plans) == 1 and apart_from_parts(first) is None and first.row is not None and len(first.inner) == 2
    if reduces:
        variable, row = first.inner
        line = arranged(first.statement.domain.set, (variable,))
        if expression_of(line.dim_min(0)) != integer(0):
            return None
        rows: Expr = normalized(apply("add", expression_of(line.dim_max(0)), integer(1)))
        columns: Expr | None = first.extent(row)
        outer: tuple[str, ...] | None = (variable, row)
    else:
        if not group.depth:
            return None
        rows = first.extent(first.outer[0])
        cells = group.depth == 2 and all(plan.full and len(plan.outer) == 2 for plan in plans)
        columns = first.extent(first.outer[1]) if cells else None
        outer = None
    ways: Ways = {}
    for plan in plans:
        for name, found in touched.ways(plan, outer).items():
            ways.setdefault(name, set()).update(found)
    return _Item(group, rows, columns, reduces, sum(touched.of(plan).work for plan in plans), ways)


def _goes_by_rows(plan: LoopOrder, thin: frozenset[str]) -> bool:
    statement = plan.statement
    if not plan.plain or plan.extents or plan.fixed is not None or plan.contraction is not None or plan.scan:
        return False
    if can_fail(statement) or statement.target.tensor in thin:
        return False
    return plan.single or reads_own_cells(statement)


def _fits(items: tuple[_Item, ...], item: _Item, context: isl.Set) -> bool:
    every = (*items, item)
    reducing = [each for each in every if each.reduces]
    if not reducing or sum(each.work for each in every) > LARGEST:
        return False
    if any(each.columns != reducing[0].columns for each in reducing):
        return False
    other = items[0].rows
    if item.rows != other and not holds(apply("eq", item.rows, other), context):
        return False
    related = any(_same_rows(each.ways, item.ways) for each in items)
    return related and all(aligned(each.ways, item.ways, 1) for each in items)


def _same_rows(mine: Ways, its: Ways) -> bool:
    # Whether both touch the same row of some memory.
    return any(
        one[0] and not one[0].isdisjoint(other[0])
        for name in mine.keys() & its.keys()
        for one, _ in mine[name]
        for other, _ in its[name]
    )


def swept_nests(
    group: Group, setting: NestContext, inside: Callable[[Group], tuple[Node, ...]]
) -> Iterator[tuple[str, tuple[LoopOrder, ...], tuple[Node, ...]]]:
    """The nests of a sweep; ``inside`` gives the loops of a group inside the one over rows."""
    names, by_cells = setting.names, group.depth == 2
    reducing = [each for each in group.swept if not each.depth]
    parts = [PartialResults.of(each.plans[0], setting) for each in reducing]
    count = parts[0].counts(least=STEPS if by_cells else _FEWER_STEPS)[0]
    lead = parts[0].partial_rows(count, integer(COLUMNS) if by_cells else None)
    partial = [lead, *(lead.beside(each) for each in parts[1:])]
    low, high = parts[0].spans[0].block.ends
    steps, first, last = (Local(names.fresh(name), "int64") for name in ("steps", "first", "last"))
    body: list[Node] = []
    for each in group.swept:
        plan = each.plans[0]
        if not each.depth:
            own = next(found for found in partial if found.parts.body.plan is plan)
            span = own.parts.spans[0]
            body += own.added((ReducedSpan(Block(span.block.variable, first.name, last.name), span.first, span.stop),))
        else:
            nodes = _cells(each, lead.column, setting) if by_cells else inside(each)
            body.append(Loop(plan.outer[0], first, last, 1, nodes))
    tile = names.fresh("tile")
    ends = (
        Define(first.name, apply("add", low, apply("mul", index(tile), steps)), index=True),
        Define(last.name, apply("min", high, apply("add", first, steps)), index=True),
    )
    tiles = Loop(tile, integer(0), quotient_up(apply("sub", high, low), steps), 1, (*ends, *body))
    for found in partial:
        found.found = tuple(body)
    inner = (
        *parts[0].spans[0].ends(lead.row, count),
        *(found.cleared() for found in partial),
        Define(steps.name, _steps(group, lead.width, setting), index=True),
        tiles,
        *(node for found in partial for node in found.kept()),
    )
    yield "nest_", group.plans, (lead.over(inner),)
    for found in partial:
        yield "join_", (found.parts.body.plan,), found.together()


def _cells(group: Group, column: Block, setting: NestContext) -> tuple[Node, ...]:
    # The cells of a row, in a block of the columns.
    nodes = tuple(node for plan in group.plans for node in StatementLoops(plan, setting).full())
    return (Loop(group.plans[0].outer[1], *column.ends, 1, nodes),)


def _steps(group: Group, width: Expr, setting: NestContext) -> Expr:
    # As many rows as stay near, of all that is touched along them.
    touched: dict[str, int] = {}
    for plan in group.plans:
        for name in (plan.statement.target.tensor, *(read.tensor for read in statement_reads(plan.statement))):
            if len(setting.tensors[name].shape) > 1:
                touched[setting.buffers[name]] = numpy_dtype(setting.tensors[name].dtype).itemsize
    cells = setting.machine.near_bytes // max(1, sum(touched.values()))
    room = apply("floor_div", integer(cells), apply("max", width, integer(1)))
    return apply("min", apply("max", room, integer(_LEAST_STEPS)), integer(_MOST_STEPS))
