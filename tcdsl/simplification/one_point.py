"""Index variables that an equation determines: ``A[i, j] = x[i]`` over ``j = i`` becomes ``A[i, i] = x[i]``."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import index, size
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, index_variables, substitute
from tcdsl.ir.program import Statement, map_statement
from tcdsl.polyhedra.linear import linear_expression, normalized

__all__ = ["without_determined_variables"]


def without_determined_variables(statement: Statement) -> Statement:
    """The same statement over fewer variables: those that the domain fixes in terms of the others are substituted.

    A sum over such a variable has one term at most, and disappears. The order of points stays where it matters.
    """
    while (found := _determined(statement)) is not None:
        name, value = found
        points = statement.domain.set
        position = points.find_dim_by_name(isl.dim_type.set, name)
        step: dict[Expr, Expr] = {index(name): value}
        statement = replace(
            map_statement(statement, partial(_rewritten, step=step)),
            domain=Domain.from_set(points.project_out(isl.dim_type.set, position, 1)),
        )
    return statement


def _rewritten(expr: Expr, step: dict[Expr, Expr]) -> Expr:
    changed = substitute(expr, step)
    return expr if changed == expr else normalized(changed)


def _determined(statement: Statement) -> tuple[str, Expr] | None:
    # Later variables go first, so that target variables, which come first, stay.
    variables = statement.domain.variables
    if not variables or "=" not in statement.domain.text:
        return None
    hull = statement.domain.set.affine_hull()
    ordered = statement.accumulate == "assign" or ACCUMULATORS[statement.accumulate].ordered
    written = frozenset().union(*(index_variables(axis) for axis in statement.target.indices))
    for position in reversed(range(len(variables))):
        for constraint in hull.get_constraints():
            value = _solution(constraint, hull, position)
            if value is None or (ordered and index_variables(value) & set(variables[position:])):
                continue
            # z == 3*i + 2*k says where to gather from: d[z] must not become a scatter to d[3*i + 2*k].
            if variables[position] not in written or len(index_variables(value) - written) <= 1:
                return variables[position], value
    return None


def _solution(constraint: isl.Constraint, hull: isl.BasicSet, position: int) -> Expr | None:
    # The variable at a position, as a linear form of the others with integer coefficients.
    if not constraint.is_equality() or constraint.involves_dims(isl.dim_type.div, 0, constraint.dim(isl.dim_type.div)):
        return None
    scale = constraint.get_coefficient_val(isl.dim_type.set, position).to_python()
    if abs(scale) != 1:
        return None
    terms: dict[Expr, int] = {}
    for kind, make in ((isl.dim_type.set, index), (isl.dim_type.param, size)):
        for k in range(hull.dim(kind)):
            factor = constraint.get_coefficient_val(kind, k).to_python()
            if factor and not (kind == isl.dim_type.set and k == position):
                terms[make(str(hull.get_dim_name(kind, k)))] = -scale * factor
    return linear_expression(terms, -scale * constraint.get_constant_val().to_python())
