"""What a statement's condition, or a bracket around its value, says about its points alone becomes part of its domain.

``for [i] if b[i] and i > 0`` runs over ``i > 0``. Where ``b[i]`` holds, ``not b[i] or i > 0`` says ``i > 0`` as well.
``O[i] += where(k <= i, I[k], 0)`` sums over ``k <= i`` only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import islpy as isl

from tcdsl.ir.build import apply, conjuncts
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply, Constant, Expr
from tcdsl.ir.program import Neutral, Statement
from tcdsl.polyhedra.read_pieces import is_affine_condition, restrict
from tcdsl.polyhedra.writes import writes_each_cell_once
from tcdsl.simplification.expressions.folding import negated
from tcdsl.simplification.expressions.tape import Tape, shared

__all__ = ["with_brackets_in_domain", "with_condition_in_domain"]


def with_condition_in_domain(statement: Statement) -> Statement:
    """The statement over the points where the affine parts of its condition hold; the other parts stay."""
    if statement.condition is None:
        return statement
    tape = Tape()
    tests = conjuncts(tape.expand(tape.flatten(statement.condition)))
    tests = [_given(test, tests) for test in tests]
    points, left = restrict(statement.domain.set, tests, lambda test: test)
    if len(left) == len(tests):
        return statement
    condition = shared(reduce(lambda one, other: apply("and_", one, other), left)) if left else None
    return replace(statement, condition=condition, domain=Domain.from_set(points))


def _given(test: Expr, tests: Sequence[Expr]) -> Expr:
    # A part of a disjunction goes if a test denies it. Only where an affine part is left: that reads nothing, so it may
    # be asked before what was tested first.
    if not isinstance(test, Apply) or test.primitive != "or_":
        return test
    for part, other in (test.arguments, test.arguments[::-1]):
        if negated(part) in tests and is_affine_condition(other):
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
    points, left = restrict(before, conjuncts(condition), lambda test: test)
    thinner = _equations(points) > _equations(before)
    if not thinner and (not summing or writes_each_cell_once(statement)):
        return statement
    inner: Expr = chosen
    for test in reversed(left):
        inner = apply("where", test, inner, other)
    return replace(statement, value=inner, domain=Domain.from_set(points))


def _equations(points: isl.Set) -> int:
    # The number of independent equations that hold at all points.
    return sum(1 for constraint in points.affine_hull().get_constraints() if constraint.is_equality())
