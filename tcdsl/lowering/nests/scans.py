"""Cells that go on from the ones before: each term is taken once.

::

    t[i] += x[j], j <= i      total = 0.0
                              for first in 0 .. N by 512:
                                  part = 0.0
                                  for i in first .. min(N, first + 512):
                                      part += x[i]
                                      t[i] = total + part
                                  total = total + part

A sum is added up in blocks, so that its error grows with blocks and their number, as everywhere. Where data say where
the terms of a cell begin, the sum starts anew as often as they say something else:

::

    t[i] += x[j], first[i] <= j <= i      known = 0
                                          for i in 0 .. N:
                                              end = first[i]
                                              if end != known:
                                                  known = end
                                                  part = 0.0
                                                  for j in end .. i + 1:
                                                      part += x[j]
                                              else:
                                                  part += x[i]
                                              t[i] = part

So it does where a test of the cell says that all terms are other ones than before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, cast, index, integer, neutral_constant
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.expressions import Expr, Local
from tcdsl.ir.program import Neutral
from tcdsl.lowering.loopir.loops import Branch, Define, Loop, Node, Store
from tcdsl.lowering.loopir.point_code import start_value, sum_up
from tcdsl.lowering.loopir.traversal import renamed
from tcdsl.lowering.nests.blocks import with_parameters
from tcdsl.lowering.nests.bodies import StatementLoops
from tcdsl.lowering.nests.polyhedron_scanning import scan
from tcdsl.polyhedra.affine import expression_of_condition
from tcdsl.polyhedra.spaces import arranged
from tcdsl.simplification.scans import Scan

__all__ = ["scan_loops"]

_LENGTH = 512


def scan_loops(body: StatementLoops, along: Scan) -> tuple[Node, ...]:
    """The loop along the cells of a scan, inside those over its other cells."""
    plan, names = body.plan, body.setting.names
    statement = plan.statement
    dtype = compute_dtype(plan.tensor.dtype)
    joining = "add" if statement.accumulate == "subtract" else statement.accumulate
    primitive = ACCUMULATORS[joining].primitive
    neutral = neutral_constant(statement.accumulate, dtype)
    total, part = Local(names.fresh("total"), dtype), Local(names.fresh("part"), dtype)
    extent, cell = plan.extent(along.variable), statement.target.indices
    blocks = joining == "add" and is_floating(dtype) and body.setting.long_sums

    given = (*plan.outer, along.variable)
    context = with_parameters(body.inside_cells(plan.cells), given)
    points = along.points.align_params(body.setting.context.get_space()).intersect_params(body.setting.context)
    nodes: list[Node] = body.visits(points, plan.inner, sum_up(statement, part.name), context, given)
    known = tuple(Local(names.fresh("known"), "int64") for _ in along.ends)
    if known or not along.restarts.is_empty():
        anew = [Define(each.name, neutral) for each in ((total, part) if blocks else (part,))]
        every = body.visits(body.points, plan.inner, sum_up(statement, part.name), context, given)
        restarts = along.restarts.gist(arranged(body.points, plan.cells))
        test = None if along.restarts.is_empty() else expression_of_condition(restarts)
        going = _unless_anew(body, along.ends, known, test, (*anew, *every), tuple(nodes))
        # Ends are read where a cell has terms, which those before it have not.
        nodes = list(scan(body.points, (), lambda _: going, context=context, given=given))
    value: Expr = apply(primitive, total, part) if blocks else part
    if not isinstance(statement.start, Neutral):
        value = apply(primitive, start_value(statement, body.place, cell, body.scalars(body.points), nodes), value)
    nodes.append(Store(body.place.buffer, cell, value))

    number, first = names.fresh(along.variable), names.fresh("first")
    stop = apply("min", extent, apply("add", index(first), integer(_LENGTH)))
    low, high = (index(first), stop) if blocks else (integer(0), extent)
    position: Expr = index(number)
    if along.descending:
        position = apply("sub", apply("sub", extent, integer(1)), position)
    loop = Loop(number, low, high, 1, renamed(nodes, {index(along.variable): position}))
    # Of the first cell all terms join, whatever its ends are.
    begun = tuple(Define(each.name, integer(0), index=True) for each in known)
    if not blocks:
        return *begun, Define(part.name, neutral), loop
    joined = Define(total.name, apply(primitive, total, part))
    over = Loop(first, integer(0), extent, _LENGTH, (Define(part.name, neutral), loop, joined))
    return *begun, Define(total.name, neutral), over


def _unless_anew(
    body: StatementLoops,
    ends: Sequence[Expr],
    known: Sequence[Local],
    restarts: Expr | None,
    anew: Sequence[Node],
    joining: Sequence[Node],
) -> list[Node]:
    nodes: list[Node] = []
    scalars = body.scalars(body.points)
    now = [Local(body.setting.names.fresh("end"), "int64") for _ in ends]
    for end, held in zip(ends, now, strict=True):
        nodes.append(Define(held.name, cast(scalars.value(end, nodes), "int64"), index=True))
    tests = [] if restarts is None else [restarts]
    tests.extend(apply("ne", held, before) for held, before in zip(now, known, strict=True))
    kept = (Define(before.name, held, index=True) for held, before in zip(now, known, strict=True))
    return [*nodes, Branch(reduce(partial(apply, "or_"), tests), (*kept, *anew), tuple(joining))]
