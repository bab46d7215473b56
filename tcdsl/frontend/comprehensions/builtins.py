"""The built-in functions: C's names, and what they are in the primitives of the package.

A formula takes expressions of one floating type, float32 or float64, and gives one of that type. The derivatives are
those of the primitives, so every function has its derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.expressions import Expr

__all__ = ["BUILTINS", "Builtin"]


@dataclass(frozen=True, slots=True)
class Builtin:
    """``arity`` operands; ``keeps_type`` says of min and max that they take integers as they are."""

    arity: int
    formula: Callable[..., Expr]
    keeps_type: bool = False


def _number(value: float, like: Expr) -> Expr:
    return constant(value, like.dtype)


def _where(condition: Expr, chosen: Expr, other: Expr) -> Expr:
    return apply("where", condition, chosen, other)


def _less(a: Expr, b: Expr) -> Expr:
    return apply("lt", a, b)


def _is(a: Expr, value: float) -> Expr:
    return apply("eq", a, _number(value, a))


def _is_nan(a: Expr) -> Expr:
    return apply("ne", a, a)


def _negative(a: Expr) -> Expr:
    # The sign bit: that of -0.0 shows in its inverse.
    zero = _number(0.0, a)
    return apply("or_", _less(a, zero), apply("and_", apply("eq", a, zero), _less(apply("recip", a), zero)))


def _scaled(a: Expr, factor: float) -> Expr:
    return apply("mul", a, _number(factor, a))


def _log10(a: Expr) -> Expr:
    return apply("div", apply("log", a), _number(math.log(10.0), a))


def _exp10(a: Expr) -> Expr:
    return apply("pow", _number(10.0, a), a)


def _fdim(a: Expr, b: Expr) -> Expr:
    return _where(apply("le", a, b), _number(0.0, a), apply("sub", a, b))


def _fmax(name: str, a: Expr, b: Expr) -> Expr:
    # NaN is a missing value there.
    return _where(_is_nan(b), a, _where(_is_nan(a), b, apply(name, a, b)))


def _copysign(a: Expr, b: Expr) -> Expr:
    size = apply("abs", a)
    return _where(_negative(b), apply("neg", size), size)


def _trunc(a: Expr) -> Expr:
    return _where(_less(a, _number(0.0, a)), apply("ceil", a), apply("floor", a))


def _round(a: Expr) -> Expr:
    # Halves go away from zero.
    whole = _trunc(a)
    beyond = apply("ge", apply("abs", apply("sub", a, whole)), _number(0.5, a))
    return _where(beyond, apply("add", whole, apply("sign", a)), whole)


def _fmod(a: Expr, b: Expr) -> Expr:
    # The sign is that of a. The rest of positive numbers is exact.
    rest = apply("mod", apply("abs", a), apply("abs", b))
    return _where(_less(a, _number(0.0, a)), apply("neg", rest), rest)


def _remainder(a: Expr, b: Expr) -> Expr:
    # The nearest multiple is subtracted, an even one of two that are as near.
    step = apply("abs", b)
    rest = apply("mod", apply("abs", a), _scaled(step, 2.0))
    below = apply("le", rest, _scaled(step, 0.5))
    middle = _less(rest, _scaled(step, 1.5))
    nearest = _where(below, rest, _where(middle, apply("sub", rest, step), apply("sub", rest, _scaled(step, 2.0))))
    return _where(_less(a, _number(0.0, a)), apply("neg", nearest), nearest)


def _norm(*operands: Expr) -> Expr:
    # Scaled by the largest, so that no square overflows.
    sizes = [apply("abs", operand) for operand in operands]
    largest = sizes[0]
    for size in sizes[1:]:
        largest = apply("max", largest, size)
    squares = [apply("square", apply("div", size, largest)) for size in sizes]
    total = squares[0]
    for square in squares[1:]:
        total = apply("add", total, square)
    plain = apply("or_", _is(largest, 0.0), _is(largest, math.inf))
    return _where(plain, largest, apply("mul", largest, apply("sqrt", total)))


def _inverse(formula: Callable[..., Expr], *operands: Expr) -> Expr:
    return apply("recip", formula(*operands))


def _period(a: Expr) -> Expr:
    # a - 2 round(a / 2), between -1 and 1: exact, and a whole number of periods of sin(pi a).
    return apply("sub", a, _scaled(apply("round", _scaled(a, 0.5)), 2.0))


def _cospi(a: Expr) -> Expr:
    quarter = apply("sub", _number(0.5, a), apply("abs", _period(a)))
    return apply("sin", _scaled(quarter, math.pi))


def _sinpi(a: Expr) -> Expr:
    rest = _period(a)
    folded = _where(
        apply("gt", rest, _number(0.5, a)),
        apply("sub", _number(1.0, a), rest),
        _where(_less(rest, _number(-0.5, a)), apply("sub", _number(-1.0, a), rest), rest),
    )
    return apply("sin", _scaled(folded, math.pi))


def _cbrt(a: Expr) -> Expr:
    # In float64, with a step of Newton's method for the rounding of 1/3.
    x = cast(a, "float64")
    size = apply("abs", x)
    root = apply("pow", size, _number(1 / 3, x))
    better = apply(
        "sub", root, apply("div", apply("sub", root, apply("div", size, apply("square", root))), _number(3.0, x))
    )
    signed = _where(_less(x, _number(0.0, x)), apply("neg", better), better)
    plain = apply("or_", _is(size, 0.0), _is(size, math.inf))
    return cast(_where(plain, x, signed), a.dtype)


def _logb(a: Expr) -> Expr:
    size = apply("abs", a)
    exponent = apply("floor", apply("log2", size))
    power = apply("exp2", exponent)
    one = _number(1.0, a)
    too_large = apply("gt", power, size)
    too_small = apply("le", _scaled(power, 2.0), size)
    near = _where(too_large, apply("sub", exponent, one), _where(too_small, apply("add", exponent, one), exponent))
    return _where(_is(size, math.inf), size, near)


def _primitive(name: str) -> Callable[..., Expr]:
    return partial(apply, name)


_SAME = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "exp", "exp2", "expm1"),
    *("floor", "log", "log1p", "log2", "sin", "sinh", "sqrt", "tan", "tanh"),
)

BUILTINS: Mapping[str, Builtin] = MappingProxyType(
    {
        **{name: Builtin(1, _primitive(name)) for name in _SAME},
        "atan2": Builtin(2, _primitive("atan2")),
        "cbrt": Builtin(1, _cbrt),
        "copysign": Builtin(2, _copysign),
        "cospi": Builtin(1, _cospi),
        "exp10": Builtin(1, _exp10),
        "fabs": Builtin(1, _primitive("abs")),
        "fdim": Builtin(2, _fdim),
        "fdivide": Builtin(2, _primitive("div")),
        "fma": Builtin(3, _primitive("fma")),
        "fmax": Builtin(2, partial(_fmax, "max")),
        "fmin": Builtin(2, partial(_fmax, "min")),
        "fmod": Builtin(2, _fmod),
        "hypot": Builtin(2, _norm),
        "log10": Builtin(1, _log10),
        "logb": Builtin(1, _logb),
        "max": Builtin(2, _primitive("max"), keeps_type=True),
        "min": Builtin(2, _primitive("min"), keeps_type=True),
        "norm3d": Builtin(3, _norm),
        "norm4d": Builtin(4, _norm),
        "pow": Builtin(2, _primitive("pow")),
        "rcbrt": Builtin(1, partial(_inverse, _cbrt)),
        "remainder": Builtin(2, _remainder),
        "rhypot": Builtin(2, partial(_inverse, _norm)),
        "rnorm3d": Builtin(3, partial(_inverse, _norm)),
        "rnorm4d": Builtin(4, partial(_inverse, _norm)),
        "round": Builtin(1, _round),
        "rsqrt": Builtin(1, _primitive("recip_sqrt")),
        "sinpi": Builtin(1, _sinpi),
        "trunc": Builtin(1, _trunc),
    }
)
