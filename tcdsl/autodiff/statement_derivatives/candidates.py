"""Values that a maximum, a minimum or a product must recognize again, kept in memory.

The derivative of a maximum asks which values equal it, that of a product which factors are zero. A value that is
computed again may differ in its last bit, because generated code contracts ``a * b + c`` and reorders sums as it
likes, and then no value would be the maximum. A cell read again is the same. So a value that takes more than one
rounding is stored first: ``Y[i] >>= exp(x[i, k]) + 1`` becomes
``Y_values[i, k] = exp(x[i, k]) + 1; Y[i] >>= Y_values[i, k]``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl

from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Expr, Local, Read, SizeValue, is_affine_index
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import Access, Neutral, Program, Statement, Tensor
from tcdsl.polyhedra.affine import expression_of
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.writes import writes_each_cell_once
from tcdsl.simplification.expressions.tape import Tape

__all__ = ["bounds", "stored", "with_candidates_stored"]

_RECOGNIZING = frozenset(("max", "min", "multiply", "power"))
_MULTIPLYING = frozenset(("multiply", "power", "divide"))
# Results that are the same however they are compiled, and operations that round once.
_EXACT = frozenset(("id", "stop_gradient", "neg", "abs", "relu", "sat01", "sign", "floor", "ceil", "round", "where"))
_EXACT_PAIRS = frozenset(("fst", "snd", "relu_gate", "sat01_gate", "max", "min", "lt", "le", "gt", "ge", "eq", "ne"))
_ROUNDING_ONCE = frozenset(("add", "sub", "mul", "square"))


def with_candidates_stored(program: Program, active: Callable[[str], bool]) -> Program:
    """``program`` with the values of reductions to ``active`` tensors stored where computing them twice may differ."""
    names = names_of(program)
    tensors = list(program.tensors)
    statements: list[Statement] = []
    for statement in program.statements:
        if active(statement.target.tensor) and _must_be_stored(statement) and not writes_each_cell_once(statement):
            made, store, read = stored(statement, names.fresh(f"{statement.target.tensor}_values"))
            tensors.append(made)
            statements.append(store)
            statement = replace(statement, value=read)
        statements.append(statement)
    if len(tensors) == len(program.tensors):
        return program
    return replace(program, tensors=tuple(tensors), statements=tuple(statements))


def _must_be_stored(statement: Statement) -> bool:
    # The derivative of a product mentions each factor four times: work that is repeated so often is stored as well.
    if statement.accumulate in _MULTIPLYING and not isinstance(statement.value, Read):
        return True
    return statement.accumulate in _RECOGNIZING and not _is_reproducible(statement.value)


def _is_reproducible(value: Expr) -> bool:
    tape = Tape()
    roundings = 0
    for name in tape.steps([tape.flatten(value)]):
        step = tape.definition(Local(name, ""))
        if not isinstance(step, Apply) or not any(is_floating(argument.dtype) for argument in step.arguments):
            continue
        if step.primitive in _ROUNDING_ONCE:
            roundings += 1
        elif step.primitive not in _EXACT and step.primitive not in _EXACT_PAIRS:
            return False
    return roundings <= 1


def stored(statement: Statement, name: str) -> tuple[Tensor, Statement, Read]:
    """A tensor ``name`` for the values of a statement, the statement that stores them, and the read at a point."""
    variables, value = statement.domain.variables, statement.value
    lows, extents = bounds(statement.domain.set, len(variables))
    cell = tuple(apply("sub", index(variable), low) for variable, low in zip(variables, lows, strict=True))
    store = replace(
        statement,
        target=Access(name, cell, statement.target.span),
        accumulate="assign",
        start=Neutral(),
        oob="check",
        unique=False,
    )
    return Tensor(name, value.dtype, tuple(extents)), store, plain_read(name, cell, value.dtype, value.span)


def bounds(points: isl.Set, count: int) -> tuple[Sequence[Expr], Sequence[Expr]]:
    """A box around ``points``: its lowest corner and its extents, 0 where there are no points.

    Not always the smallest one: the exact ends of ``(i + j) % 2 == 0 and 2*i + j < N`` have a piece for every remainder
    of every size.
    """
    if points.is_empty():
        return [integer(0)] * count, [integer(0)] * count
    points = points.remove_divs()
    if points.n_basic_set() > 1:
        # The exact ends of a union have cases for all sizes at which one part is empty, or shorter than another.
        hull = points.simple_hull().to_set()
        points = hull if hull.is_bounded() else points
    lows: list[Expr] = []
    extents: list[Expr] = []
    for k in range(count):
        low, high = points.dim_min(k), points.dim_max(k)
        extent = expression_of(high.sub(low))
        lows.append(expression_of(low))
        if not is_affine_index(lows[-1]):
            lows[-1] = _below(points, k)
            extent = apply("sub", expression_of(high), lows[-1])
        extent = normalized(apply("add", extent, integer(1)))
        # Sizes themselves are never negative.
        extents.append(extent if isinstance(extent, SizeValue) else apply("max", extent, integer(0)))
    return lows, extents


def _below(points: isl.Set, k: int) -> Expr:
    # A low end in pieces cannot stand in an index. Below it are the least of all calls, and the least of the pieces.
    least = points.dim_min_val(k)
    if least.is_int():
        return integer(least.to_python())
    pieces = [expression_of(isl.PwAff.from_aff(piece)) for _, piece in points.dim_min(k).get_pieces()]
    return reduce(lambda one, other: apply("min", one, other), pieces)
