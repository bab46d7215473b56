"""Brackets that restrict a statement's domain: ``O[i] += where(k <= i, I[k], 0)`` sums over ``k <= i`` only."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import apply, conjuncts
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply, Constant, Expr
from tcdsl.ir.program import Neutral, Statement
from tcdsl.polyhedra.read_pieces import restrict
from tcdsl.polyhedra.writes import writes_each_cell_once
from tcdsl.simplification.expressions.tape import Tape

__all__ = ["with_brackets_in_domain"]


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
    tape = Tape()
    before = statement.domain.set
    points, left = restrict(before, conjuncts(condition), tape.expand)
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
