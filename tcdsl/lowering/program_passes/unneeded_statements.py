"""Programs without what is not needed: equal sizes under one name, statements that nobody reads, the same statement
twice.

IEEE semantics stay: nothing is reassociated, and ``x * 0`` stays what it is for an infinite x.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.constant_folding import evaluated
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    reads,
    transform,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Program, Statement, Tensor, map_statement
from tcdsl.lowering.program_passes.touched_tensors import copy_statement
from tcdsl.rewrite.kept_spans import once_per_kind

__all__ = ["own_outputs", "with_constants_folded"]


def own_outputs(program: Program, names: FreshNames) -> Program:
    """Every output is a tensor of its own: an input that is returned, or a tensor returned twice, is copied."""
    inputs = {tensor.name for tensor in program.inputs}
    seen: set[str] = set()
    outputs: list[str] = []
    copies: list[Statement] = []
    tensors: list[Tensor] = []
    for name in program.outputs:
        if name not in inputs and name not in seen:
            outputs.append(name)
        else:
            tensor = program.tensor(name)
            copy = names.fresh(name)
            outputs.append(copy)
            tensors.append(replace(tensor, name=copy))
            copies.append(copy_statement(tensor, copy, names))
        seen.add(name)
    if not copies:
        return program
    # An input is returned as it was at the call: copies of inputs come first, before anything changes.
    first = tuple(each for each in copies if _source(each) in inputs)
    last = tuple(each for each in copies if _source(each) not in inputs)
    return replace(
        program,
        tensors=(*program.tensors, *tensors),
        statements=(*first, *program.statements, *last),
        outputs=tuple(outputs),
    )


def _source(copy: Statement) -> str:
    return next(reads(copy.value)).tensor


@once_per_kind
def with_constants_folded(statement: Statement) -> Statement:
    """``statement`` with constant parts computed, in their own types, as NumPy computes them."""
    return map_statement(statement, lambda expr: transform(expr, _fold))


def _fold(node: Expr) -> Expr:
    match node:
        case Cast(operand=operand, dtype=dtype) if INTEGER in (operand.dtype, dtype):
            return cast(operand, dtype, node.span)
        case Cast(operand=Constant(value=value, dtype=source), dtype=dtype):
            with np.errstate(all="ignore"):
                number = np.asarray(value, source).astype(dtype)[()]
            return constant(number.item(), dtype, node.span)
        case Apply():
            known = evaluated(node) or apply(node.primitive, *node.arguments, span=node.span)
            return node if known == node else known
        case _:
            return node
