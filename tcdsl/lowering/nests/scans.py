"""Cells that go on from the ones before: each term is taken once.

::

    t[i] += x[j], j <= i      total = 0.0
                              for first in 0 .. N by 512:
                                  part = 0.0
                                  for i in first .. min(N, first + 512):
                                      part += x[i]
                                      t[i] = total + part
                                  total = total + part

A sum is added up in blocks, so that its error grows with blocks and their number, as everywhere.
"""

from __future__ import annotations

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer, neutral_constant
from tcdsl.ir.dtypes import compute_dtype, is_floating
from tcdsl.ir.expressions import Expr, Local
from tcdsl.ir.program import Neutral
from tcdsl.lowering.loopir.loops import Define, Loop, Node, Store
from tcdsl.lowering.loopir.point_code import start_value, sum_up
from tcdsl.lowering.loopir.traversal import renamed
from tcdsl.lowering.nests.blocks import with_parameters
from tcdsl.lowering.nests.bodies import StatementLoops
from tcdsl.simplification.scans import Scan

__all__ = ["scan_loops"]

_LENGTH = 512


def scan_loops(body: StatementLoops, scan: Scan) -> tuple[Node, ...]:
    """The loop along the cells of a scan, inside those over its other cells."""
    plan, names = body.plan, body.setting.names
    statement = plan.statement
    dtype = compute_dtype(plan.tensor.dtype)
    joining = "add" if statement.accumulate == "subtract" else statement.accumulate
    primitive = ACCUMULATORS[joining].primitive
    neutral = neutral_constant(statement.accumulate, dtype)
    total, part = Local(names.fresh("total"), dtype), Local(names.fresh("part"), dtype)
    extent, cell = plan.extent(scan.variable), statement.target.indices
    blocks = joining == "add" and is_floating(dtype) and body.setting.long_sums

    given = (*plan.outer, scan.variable)
    context = with_parameters(body.inside_cells(plan.cells), given)
    points = scan.points.align_params(body.setting.context.get_space()).intersect_params(body.setting.context)
    nodes: list[Node] = body.visits(points, plan.inner, sum_up(statement, part.name), context, given)
    value: Expr = apply(primitive, total, part) if blocks else part
    if not isinstance(statement.start, Neutral):
        value = apply(primitive, start_value(statement, body.place, cell, body.scalars(body.points), nodes), value)
    nodes.append(Store(body.place.buffer, cell, value))

    number, first = names.fresh(scan.variable), names.fresh("first")
    stop = apply("min", extent, apply("add", index(first), integer(_LENGTH)))
    low, high = (index(first), stop) if blocks else (integer(0), extent)
    position: Expr = index(number)
    if scan.descending:
        position = apply("sub", apply("sub", extent, integer(1)), position)
    along = Loop(number, low, high, 1, renamed(nodes, {index(scan.variable): position}))
    if not blocks:
        return Define(part.name, neutral), along
    joined = Define(total.name, apply(primitive, total, part))
    over = Loop(first, integer(0), extent, _LENGTH, (Define(part.name, neutral), along, joined))
    return Define(total.name, neutral), over
