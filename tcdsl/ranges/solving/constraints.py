"""Constraints gathered one by one and made into one isl set.

Linear inequalities go to isl as rows of coefficients, which is several times quicker than one set per comparison;
the rest (``//``, ``%``, ``min``, unions) goes through `tcdsl.polyhedra.affine`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import islpy as isl

from tcdsl.ir.build import apply, in_range, integer
from tcdsl.ir.expressions import Apply, Expr, IndexValue, SizeValue, index_variables
from tcdsl.polyhedra.affine import NotAffine, condition_set, isl_value, universe
from tcdsl.polyhedra.linear import linear_form
from tcdsl.polyhedra.size_algebra import SizeAlgebra
from tcdsl.polyhedra.size_polynomials import Polynomial

__all__ = ["Constraints", "form_in_range", "named_sizes"]

# The coefficients of names, and the constant under 1.
CoefficientRow = dict[str | Literal[1], int]


def form_in_range(algebra: SizeAlgebra, form: Polynomial, extent: Polynomial) -> Expr:
    """``0 <= form and form < extent`` as an expression."""
    return in_range(algebra.expr(form), algebra.expr(extent))


class Constraints:
    """A conjunction of constraints on index variables and sizes, growing."""

    def __init__(self, algebra: SizeAlgebra) -> None:
        self.algebra = algebra
        self._rows: list[tuple[bool, CoefficientRow]] = []
        self._others: list[Expr] = []

    def nonnegative(self, form: Polynomial) -> None:
        """``form >= 0``."""
        self._add(form, equation=False)

    def in_range(self, form: Polynomial, extent: Polynomial) -> None:
        """``0 <= form < extent``."""
        self.nonnegative(form)
        self.nonnegative(extent - form - 1)

    def at_least(self, variable: str, low: Polynomial) -> None:
        """``low <= variable``."""
        self.nonnegative(Polynomial.of(IndexValue(variable)) - low)

    def at_most(self, variable: str, high: Polynomial) -> None:
        """``variable <= high``."""
        self.nonnegative(high - Polynomial.of(IndexValue(variable)))

    def condition(self, expr: Expr) -> None:
        """A bool expression. `NotAffine` if a set cannot say it."""
        match expr:
            case Apply(primitive="and_", arguments=arguments):
                for argument in arguments:
                    self.condition(argument)
            case Apply(primitive="lt" | "le" | "gt" | "ge" | "eq" as primitive, arguments=arguments) if all(
                argument.dtype == "int64" for argument in arguments
            ):
                left, right = (self.algebra.form(argument) for argument in arguments)
                if primitive in ("gt", "ge"):
                    left, right = right, left
                self._add(right - left - (primitive in ("lt", "gt")), equation=primitive == "eq")
            case _:
                self._others.append(self._checked(expr))

    def _checked(self, expr: Expr) -> Expr:
        named = named_sizes(expr, self.algebra)
        condition_set(named, universe(sorted(index_variables(named)), ()))
        return named

    def _add(self, form: Polynomial, equation: bool) -> None:
        if not form.quasi_affine:
            raise NotAffine(self.algebra.expr(form))
        expr = self.algebra.expr(form)
        terms, constant = linear_form(expr)
        row: CoefficientRow = {
            atom.name: scale for atom, scale in terms.items() if isinstance(atom, SizeValue | IndexValue)
        }
        if len(row) == len(terms):
            self._rows.append((equation, {**row, 1: constant}))
        else:
            self._others.append(apply("eq" if equation else "ge", expr, integer(0)))

    def set(self, variables: Sequence[str], base: isl.Set | None = None) -> isl.Set:
        """The points over ``variables`` that satisfy everything so far, and lie in ``base`` if that is given."""
        names = {name for _, row in self._rows for name in row if isinstance(name, str)}
        space = universe(variables, sorted(names - set(variables))).get_space()
        basic = isl.BasicSet.universe(space)
        for equation, row in self._rows:
            make = isl.Constraint.eq_from_names if equation else isl.Constraint.ineq_from_names
            basic = basic.add_constraint(make(space, {name: isl_value(scale) for name, scale in row.items()}))
        points = isl.Set.from_basic_set(basic)
        if base is not None:
            points = points.intersect(base)
        for expr in self._others:
            points = points.intersect(condition_set(expr, points))
        return points


def named_sizes(expr: Expr, algebra: SizeAlgebra) -> Expr:
    """``expr`` with its integer arithmetic normalized, so that products and quotients of sizes have names."""
    if expr.dtype == "int64":
        try:
            return algebra.expr(algebra.form(expr))
        except NotAffine:
            return expr
    if isinstance(expr, Apply):
        return apply(expr.primitive, *(named_sizes(argument, algebra) for argument in expr.arguments), span=expr.span)
    return expr
