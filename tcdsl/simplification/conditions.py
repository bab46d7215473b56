"""What a statement's condition says about its points alone becomes part of its domain.

``for [i] if b[i] and i > 0`` runs over ``i > 0``. Where ``b[i]`` holds, ``not b[i] or i > 0`` says ``i > 0`` as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from tcdsl.ir.build import apply, conjuncts
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply, Expr
from tcdsl.ir.program import Statement
from tcdsl.polyhedra.read_pieces import is_affine_condition, restrict
from tcdsl.simplification.expressions.folding import negated
from tcdsl.simplification.expressions.tape import Tape, shared

__all__ = ["with_condition_in_domain"]


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
