"""Sums of one value over and over: ``y[i] += x[i]`` over ``0 <= k < K`` becomes ``y[i] = K * x[i]`` where K > 0.

The variable is in neither the target nor the value, so each of its points adds the same. The adjoint of a sum whose
term does not mention a variable is the usual source: for ``O[i] += A[i] + B[k]``, d_A is K times d_O.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import apply, cast, index, integer, size
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Expr, index_variables, is_affine_index, substitute
from tcdsl.ir.program import Neutral, Statement
from tcdsl.polyhedra.affine import NotAffine, expression_of
from tcdsl.polyhedra.linear import has_cases, normalized
from tcdsl.polyhedra.spaces import arranged, has_end
from tcdsl.polyhedra.writes import affine_target, writes_each_cell_once

__all__ = ["without_uniform_sums"]


def without_uniform_sums(statement: Statement) -> Statement:
    """The same statement with products for sums over variables that only count; a sum of one term is a store."""
    if statement.accumulate not in ("add", "subtract") or not all(map(is_affine_index, statement.target.indices)):
        return statement
    while (found := _counted(statement)) is not None:
        name, count = found
        dtype = statement.value.dtype
        kept = tuple(other for other in statement.domain.variables if other != name)
        statement = replace(
            statement,
            value=apply("mul", cast(count, dtype), statement.value),
            domain=Domain.from_set(arranged(statement.domain.set, kept)),
        )
    return _as_store(statement)


def _counted(statement: Statement) -> tuple[str, Expr] | None:
    # A variable that only counts, and how many points it has wherever it has any.
    if not (is_floating(statement.value.dtype) or statement.value.dtype == "int64"):
        return None
    used = set().union(*map(index_variables, (statement.value, *statement.target.indices)))
    if statement.condition is not None:
        used |= index_variables(statement.condition)
    variables = statement.domain.variables
    for name in reversed(variables):
        count = None if name in used else _number_of_points(statement, name)
        if count is not None:
            return name, count
    return None


def _number_of_points(statement: Statement, name: str) -> Expr | None:
    others = [other for other in statement.domain.variables if other != name]
    line = arranged(statement.domain.set, [name], others)
    if not (has_end(line, 0, True) and has_end(line, 0, False)) or line.n_basic_set() != 1:
        return None
    first, last = line.dim_min(0), line.dim_max(0)
    if first.n_piece() != 1 or last.n_piece() != 1:
        return None
    [points] = line.get_basic_sets()
    if points.dim(isl.dim_type.div):
        return None
    try:
        count = normalized(apply("add", apply("sub", expression_of(last), expression_of(first)), integer(1)))
    except NotAffine:
        return None
    if has_cases(count):
        return None
    given: dict[Expr, Expr] = {size(other): index(other) for other in others}
    return substitute(count, given)


def _as_store(statement: Statement) -> Statement:
    # What is added to zeros, once for each cell, is stored.
    if not (isinstance(statement.start, Neutral) and affine_target(statement) and writes_each_cell_once(statement)):
        return statement
    value = statement.value if statement.accumulate == "add" else apply("neg", statement.value)
    return replace(statement, accumulate="assign", value=value)
