"""Reductions to one number, in parallel: each block of the outermost reduction has a partial result of its own.

The number of blocks does not depend on the number of threads, so neither does the result.
"""

from __future__ import annotations

from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.build import apply, constant, index, integer
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Expr, Local, Read
from tcdsl.lowering.blocks import Block
from tcdsl.lowering.bodies import Body, Setting
from tcdsl.lowering.loops import Accumulate, Buffer, Define, Loop, Node, Store
from tcdsl.lowering.points import start_value
from tcdsl.lowering.schedule import Plan, is_short
from tcdsl.shapes.affine import expression_of
from tcdsl.shapes.linear import normalized
from tcdsl.shapes.spaces import arranged, has_end

__all__ = ["in_parts", "partial_sums"]

_BLOCKS = 64
# Partial results of -= are negative already.
_JOINED = {"subtract": "add"}


def in_parts(plan: Plan) -> bool:
    """Whether the statement reduces many points to one cell, in any order."""
    statement = plan.statement
    if not plan.plain or plan.cells or not plan.inner or statement.unique or statement.accumulate == "assign":
        return False
    if ACCUMULATORS[statement.accumulate].ordered:
        return False
    line = arranged(statement.domain.set, (plan.inner[0],))
    bounded = has_end(line, 0, largest=False) and has_end(line, 0, largest=True)
    return bounded and not line.is_empty() and not is_short(statement, plan.inner[0])


def partial_sums(plan: Plan, setting: Setting) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Two nests: the partial results, in parallel, and their sum, which is stored."""
    statement, names = plan.statement, setting.names
    dtype = compute_dtype(plan.tensor.dtype)
    parts = Buffer(names.fresh(f"parts_{plan.tensor.name}"), dtype, (integer(_BLOCKS),), "temporary", ())
    setting.extra.append(parts)
    body = Body(plan, setting)
    number, variable = names.fresh("block"), plan.inner[0]
    block = Block(variable, names.fresh("low"), names.fresh("high"))
    line = arranged(body.points, (variable,))
    first, last = expression_of(line.dim_min(0)), expression_of(line.dim_max(0))
    stop = normalized(apply("add", last, integer(1)))
    count = normalized(apply("add", apply("sub", stop, first), integer(_BLOCKS - 1)))
    length = apply("floor_div", count, integer(_BLOCKS))
    low = apply("add", first, apply("mul", index(number), length))
    high = apply("min", stop, apply("add", Local(block.low, "int64"), length))
    partial = names.fresh("acc")
    neutral = constant(neutral_element(statement.accumulate, plan.tensor.dtype), dtype)
    inner = (
        Define(block.low, low),
        Define(block.high, high),
        Define(partial, neutral),
        *body.reduction(partial, block),
        Store(parts.name, (index(number),), Local(partial, dtype)),
    )
    first_nest = (Loop(number, integer(0), integer(_BLOCKS), 1, inner, True),)
    return first_nest, _joined(body, parts, names.fresh("block"), dtype)


def _joined(body: Body, parts: Buffer, number: str, dtype: str) -> tuple[Node, ...]:
    statement = body.plan.statement
    total = body.setting.names.fresh("acc")
    out: list[Node] = []
    start: Expr = start_value(statement, body.place, (), body.scalars(body.points), out)
    part = Read(parts.name, (index(number),), (Boundary.SKIP,), dtype)
    accumulate = _JOINED.get(statement.accumulate, statement.accumulate)
    return (
        *out,
        Define(total, start),
        Loop(number, integer(0), integer(_BLOCKS), 1, (Accumulate(total, accumulate, part),)),
        Store(body.place.buffer, (), Local(total, dtype)),
    )
