"""Which values an index takes, and whether they are in range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tcdsl.frontend.skriptnd.arithmetic import Arithmetic
from tcdsl.frontend.skriptnd.values import ScalarValue
from tcdsl.ir.build import in_range, index
from tcdsl.ir.expressions import (
    Apply,
    Constant,
    ExplicitRange,
    Expr,
    IndexValue,
    SizeValue,
    index_variables,
    size_names,
)
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.polyhedra.affine import NotAffine, condition_set, holds, universe

__all__ = ["is_in_range", "known_number", "least_and_largest", "shown_size"]


def known_number(value: Any) -> Any:
    """The number that an affine expression is whatever the names in it are; None if it is none."""
    if type(value) is int:
        return value
    form = _terms(value.expr)
    if form is None or any(factor for each, factor in form.items() if each is not None):
        return None
    return form.get(None, 0)


def _terms(expr: Expr) -> dict[Expr | None, int] | None:
    # The factors of the names in an affine expression; the number stands under None.
    match expr:
        case Constant(value=number):
            return {None: int(number)}
        case SizeValue() | IndexValue():
            return {expr: 1}
        case Apply(primitive="neg", arguments=(operand,)):
            return _joined_terms({}, _terms(operand), -1)
        case Apply(primitive="add" | "sub" as primitive, arguments=(left, right)):
            return _joined_terms(_terms(left), _terms(right), 1 if primitive == "add" else -1)
        case Apply(primitive="mul", arguments=(Constant(value=number), other) | (other, Constant(value=number))):
            return _joined_terms({}, _terms(other), int(number))
    return None


def _joined_terms(
    left: dict[Expr | None, int] | None, right: dict[Expr | None, int] | None, factor: int
) -> dict[Expr | None, int] | None:
    if left is None or right is None:
        return None
    return {each: left.get(each, 0) + factor * right.get(each, 0) for each in (*left, *right)}


def shown_size(value: Any) -> str:
    """A size, or an end of an index, in a message."""
    return format_expr(value.expr) if isinstance(value, ScalarValue) else str(value)


def least_and_largest(expr: Expr, ends: Mapping[str, Expr], arithmetic: Arithmetic) -> tuple[Any, Any] | None:
    """The ends of an index over a box, each variable of which takes its ends by itself; None where it is not affine."""

    def of(expr: Expr) -> tuple[Any, Any] | None:
        return least_and_largest(expr, ends, arithmetic)

    if not index_variables(expr) and not size_names(expr) & ends.keys():
        return arithmetic.exact(expr), arithmetic.exact(expr)
    match expr:
        case SizeValue(name=name):  # the number of a round
            return 0, arithmetic.binary("-", arithmetic.exact(ends[name]), 1, None)
        case IndexValue(name=name):
            return 0, arithmetic.binary("-", arithmetic.exact(ends[name]), 1, None) if name in ends else None
        case Apply(primitive="neg", arguments=(operand,)):
            inner = of(operand)
            return inner and (arithmetic.unary("-", inner[1], None), arithmetic.unary("-", inner[0], None))
        case Apply(primitive="add" | "sub" as primitive, arguments=(left, right)):
            first, second = of(left), of(right)
            if first is None or second is None:
                return None
            if primitive == "sub":
                return arithmetic.binary("-", first[0], second[1], None), arithmetic.binary(
                    "-", first[1], second[0], None
                )
            return arithmetic.binary("+", first[0], second[0], None), arithmetic.binary("+", first[1], second[1], None)
        case Apply(primitive="mul", arguments=(Constant(value=factor), other) | (other, Constant(value=factor))):
            inner = of(other)
            if inner is None:
                return None
            pair = tuple(arithmetic.binary("*", each, int(factor), None) for each in inner)
            return (pair[0], pair[1]) if factor >= 0 else (pair[1], pair[0])
        case Apply(primitive="mul", arguments=(other, size)) if not index_variables(size):
            inner, factor = of(other), arithmetic.exact(size)
            return inner and tuple(arithmetic.binary("*", each, factor, None) for each in inner)
        case Apply(primitive="floor_div", arguments=(other, Constant(value=divisor))) if divisor > 0:
            inner = of(other)
            return inner and (
                arithmetic.binary("/", inner[0], int(divisor), None),
                arithmetic.binary("/", inner[1], int(divisor), None),
            )
    return None


def is_in_range(cell: Expr, extent: Expr, ranges: Sequence[ExplicitRange], conditions: Sequence[Expr]) -> bool:
    """Whether an index is in range wherever conditions on indices and sizes hold, as far as isl can say."""
    variables = [each.variable for each in ranges]
    names = sorted(
        {name for each in (cell, extent, *(r.high for r in ranges), *conditions) for name in size_names(each)}
    )
    points = universe(variables, names)
    tests = [in_range(index(each.variable), each.high) for each in ranges]
    for test in (*tests, *conditions):
        with suppress(NotAffine):
            points = points.intersect(condition_set(test, points))
    return holds(in_range(cell, extent), points)
