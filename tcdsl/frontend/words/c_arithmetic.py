"""Arithmetic as C has it, in primitives: expressions of one type, whose derivatives are those of the primitives."""

from __future__ import annotations

from tcdsl.frontend.words.shared_parts import shared
from tcdsl.ir.build import apply, constant
from tcdsl.ir.expressions import Expr

__all__ = [
    "ceiling_division",
    "fmod",
    "integer_division",
    "integer_rest",
    "less",
    "round_away",
    "signed",
    "trunc",
    "where",
]


def where(condition: Expr, chosen: Expr, other: Expr) -> Expr:
    """``chosen`` where the condition holds, else ``other``."""
    return apply("where", condition, chosen, other)


def less(a: Expr, b: Expr) -> Expr:
    """``a < b``."""
    return apply("lt", a, b)


def _zero(like: Expr) -> Expr:
    return constant(0, like.dtype)


def signed(size: Expr, negative: Expr) -> Expr:
    """``-size`` where the condition ``negative`` holds, else ``size``."""
    return shared(size, lambda size: where(negative, apply("neg", size), size))


def trunc(a: Expr) -> Expr:
    """The whole part of a real, towards 0."""
    return where(less(a, _zero(a)), apply("ceil", a), apply("floor", a))


def round_away(a: Expr) -> Expr:
    """The nearest whole number to a real; halves go away from 0."""

    def rounded(whole: Expr) -> Expr:
        beyond = apply("ge", apply("abs", apply("sub", a, whole)), constant(0.5, a.dtype))
        return where(beyond, apply("add", whole, apply("sign", a)), whole)

    return shared(trunc(a), rounded)


def fmod(a: Expr, b: Expr) -> Expr:
    """The rest of a division of reals, with the sign of ``a``; that of positive numbers is exact."""
    return signed(apply("mod", apply("abs", a), apply("abs", b)), less(a, _zero(a)))


def _unlike(a: Expr, b: Expr) -> Expr:
    # Whether a division of integers has a rest, and its quotient is negative.
    rest = apply("ne", apply("mod", a, b), _zero(a))
    return apply("and_", rest, apply("ne", less(a, _zero(a)), less(b, _zero(a))))


def integer_division(a: Expr, b: Expr) -> Expr:
    """A division of integers, towards 0."""
    quotient = apply("floor_div", a, b)
    return where(_unlike(a, b), apply("add", quotient, constant(1, a.dtype)), quotient)


def integer_rest(a: Expr, b: Expr) -> Expr:
    """The rest of `integer_division`, with the sign of ``a``."""
    rest = apply("mod", a, b)
    return where(_unlike(a, b), apply("sub", rest, b), rest)


def ceiling_division(a: Expr, b: Expr) -> Expr:
    """A division of integers, upwards."""
    quotient = apply("floor_div", a, b)
    return where(apply("ne", apply("mod", a, b), _zero(a)), apply("add", quotient, constant(1, a.dtype)), quotient)
