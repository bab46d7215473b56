"""The points of a statement, as few and over as few variables as they need be.

What a condition, or a bracket around the value, says about points alone becomes part of the domain.
``for [i] if b[i] and i > 0`` runs over ``i > 0``. Where ``b[i]`` holds, ``not b[i] or i > 0`` says ``i > 0`` as well.
``O[i] += where(k <= i, I[k], 0)`` sums over ``k <= i`` only.

Index variables that an equation determines go: ``A[i, j] = x[i]`` over ``j = i`` becomes ``A[i, i] = x[i]``.

Sums of one value over and over become products: ``y[i] += x[i]`` over ``0 <= k < K`` becomes ``y[i] = K * x[i]`` where
K > 0. The variable is in neither the target nor the value, so each of its points adds the same. The adjoint of a sum
whose term does not mention a variable is the usual source: for ``O[i] += A[i] + B[k]``, d_A is K times d_O.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from functools import partial, reduce

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, cast, conjuncts, index, integer, neutral_constant, size
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Constant, Expr, index_variables, is_affine_index, substitute
from tcdsl.ir.program import Neutral, Statement, map_statement
from tcdsl.polyhedra.affine import NotAffine, expression_of
from tcdsl.polyhedra.linear import has_cases, linear_expression, normalized
from tcdsl.polyhedra.read_pieces import is_affine_condition, restrict
from tcdsl.polyhedra.spaces import arranged, has_end
from tcdsl.polyhedra.writes import affine_target, writes_each_cell_once
from tcdsl.simplification.expressions.folding import negated
from tcdsl.simplification.expressions.tape import Tape

__all__ = [
    "as_store",
    "with_brackets_in_domain",
    "with_condition_in_domain",
    "without_determined_variables",
    "without_uniform_sums",
]


def with_condition_in_domain(statement: Statement) -> Statement:
    """The statement over the points where the affine parts of its condition hold; the other parts stay."""
    if statement.condition is None:
        return statement
    tape = Tape()
    tests = tape.conjuncts(tape.flatten(statement.condition))
    known = frozenset(map(tape.flatten, tests))
    tests = [_given(test, tape, known) for test in tests]
    points, left = restrict(statement.domain.set, tests, conjuncts)
    if len(left) == len(tests):
        return statement
    condition = tape.flatten(reduce(lambda one, other: apply("and_", one, other), left)) if left else None
    condition = None if condition is None else tape.assemble(condition)
    return replace(statement, condition=condition, domain=Domain.from_set(points))


def _given(test: Expr, tape: Tape, known: Container[Expr]) -> Expr:
    # A part of a disjunction goes if a test denies it. Only where an affine part is left: that reads nothing, so it may
    # be asked before what was tested first.
    if not isinstance(test, Apply) or test.primitive != "or_":
        return test
    for part, other in (test.arguments, test.arguments[::-1]):
        if tape.flatten(negated(part, tape.definition)) in known and is_affine_condition(other):
            return other
    return test


def with_brackets_in_domain(statement: Statement) -> Statement:
    """The statement over the points where an affine bracket around its value holds, if that does the same with less.

    Sums may leave out terms that are zero; a plain store into fresh cells may, if what is left is thinner (a diagonal),
    since the cells that it leaves out are 0 as well.
    """
    value = statement.value
    if not (isinstance(value, Apply) and value.primitive == "where"):
        return statement
    condition, chosen, other = value.arguments
    if not (isinstance(other, Constant) and other.value == 0):
        return statement
    summing = statement.accumulate in ("add", "subtract")
    if not summing and not (statement.accumulate == "assign" and isinstance(statement.start, Neutral)):
        return statement
    before = statement.domain.set
    points, left = restrict(before, [condition], conjuncts)
    thinner = _equations(points) > _equations(before)
    if not summing and other != neutral_constant("assign", other.dtype):
        return statement  # -0.0
    if not thinner and (not summing or writes_each_cell_once(statement)):
        return statement
    inner: Expr = chosen
    for test in reversed(left):
        inner = apply("where", test, inner, other)
    return replace(statement, value=inner, domain=Domain.from_set(points))


def _equations(points: isl.Set) -> int:
    # The number of independent equations that hold at all points.
    return sum(1 for constraint in points.affine_hull().get_constraints() if constraint.is_equality())


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
    return as_store(statement)


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


def as_store(statement: Statement) -> Statement:
    """What is added to zeros, once for each cell, is stored."""
    if not (isinstance(statement.start, Neutral) and affine_target(statement) and writes_each_cell_once(statement)):
        return statement
    value = statement.value if statement.accumulate == "add" else apply("neg", statement.value)
    return replace(statement, accumulate="assign", value=value)
