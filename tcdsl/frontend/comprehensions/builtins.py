"""The built-in functions: C's names, and what they are in the primitives of the package.

A formula takes expressions of one floating type, float32 or float64, and gives one of that type. The derivatives are
those of the primitives, so every function has its derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from types import MappingProxyType

import numpy as np

from tcdsl.frontend.comprehensions.special_functions import SPECIAL_FUNCTIONS
from tcdsl.frontend.words.c_arithmetic import fmod, less, round_away, signed, trunc, where
from tcdsl.frontend.words.shared_parts import shared
from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.expressions import Expr

__all__ = ["BUILTINS", "Builtin", "builtin_called"]


@dataclass(frozen=True, slots=True)
class Builtin:
    """``arity`` operands; ``keeps_type`` says of min and max that they take integers as they are."""

    arity: int
    formula: Callable[..., Expr]
    keeps_type: bool = False

    def of(self, operands: Sequence[Expr]) -> Expr:
        """The function of operands of one type; what they are is computed once."""

        def applied(*known: Expr) -> Expr:
            if len(known) == len(operands):
                return self.formula(*known)
            return shared(operands[len(known)], partial(applied, *known))

        # A primitive has each operand once.
        return self.formula(*operands) if self.formula in _PRIMITIVES else applied()


#: The formulas that are primitives.
_PRIMITIVES: list[Callable[..., Expr]] = []


def _number(value: float, like: Expr) -> Expr:
    return constant(value, like.dtype)


def _is(a: Expr, value: float) -> Expr:
    return apply("eq", a, _number(value, a))


def _is_nan(a: Expr) -> Expr:
    return apply("ne", a, a)


def _negative(a: Expr) -> Expr:
    # The sign bit: that of -0.0 shows in its inverse.
    zero = _number(0.0, a)
    return apply("or_", less(a, zero), apply("and_", apply("eq", a, zero), less(apply("recip", a), zero)))


def _scaled(a: Expr, factor: float) -> Expr:
    return apply("mul", a, _number(factor, a))


def _log10(a: Expr) -> Expr:
    return apply("div", apply("log", a), _number(math.log(10.0), a))


def _exp10(a: Expr) -> Expr:
    return apply("pow", _number(10.0, a), a)


def _fdim(a: Expr, b: Expr) -> Expr:
    return where(apply("le", a, b), _number(0.0, a), apply("sub", a, b))


def _fmax(name: str, a: Expr, b: Expr) -> Expr:
    # NaN, which max and min give on, is a missing value there.
    def known(found: Expr) -> Expr:
        return where(_is_nan(found), where(_is_nan(a), b, a), found)

    return shared(apply(name, a, b), known)


def _copysign(a: Expr, b: Expr) -> Expr:
    return signed(apply("abs", a), _negative(b))


def _remainder(a: Expr, b: Expr) -> Expr:
    # The nearest multiple is subtracted, an even one of two that are as near.
    def nearest(step: Expr, rest: Expr) -> Expr:
        below = apply("le", rest, _scaled(step, 0.5))
        middle = less(rest, _scaled(step, 1.5))
        beyond = where(middle, apply("sub", rest, step), apply("sub", rest, _scaled(step, 2.0)))
        return signed(where(below, rest, beyond), less(a, _number(0.0, a)))

    def rest(step: Expr) -> Expr:
        return shared(apply("mod", apply("abs", a), _scaled(step, 2.0)), partial(nearest, step))

    return shared(apply("abs", b), rest)


def _norm(*operands: Expr) -> Expr:
    # Scaled by the largest, so that no square overflows.
    def scaled(largest: Expr) -> Expr:
        squares = [apply("square", apply("div", operand, largest)) for operand in operands]
        plain = apply("or_", _is(largest, 0.0), _is(largest, math.inf))
        root = apply("sqrt", reduce(partial(apply, "add"), squares))
        return where(plain, largest, apply("mul", largest, root))

    return shared(reduce(partial(apply, "max"), [apply("abs", operand) for operand in operands]), scaled)


def _inverse(formula: Callable[..., Expr], *operands: Expr) -> Expr:
    return apply("recip", formula(*operands))


def _period(a: Expr) -> Expr:
    # a - 2 round(a / 2), between -1 and 1: exact, and a whole number of periods of sin(pi a).
    return apply("sub", a, _scaled(apply("round", _scaled(a, 0.5)), 2.0))


def _cospi(a: Expr) -> Expr:
    quarter = apply("sub", _number(0.5, a), apply("abs", _period(a)))
    return apply("sin", _scaled(quarter, math.pi))


def _sinpi(a: Expr) -> Expr:
    def folded(rest: Expr) -> Expr:
        below = where(less(rest, _number(-0.5, a)), apply("sub", _number(-1.0, a), rest), rest)
        near = where(apply("gt", rest, _number(0.5, a)), apply("sub", _number(1.0, a), rest), below)
        return apply("sin", _scaled(near, math.pi))

    return shared(_period(a), folded)


def _cbrt(a: Expr) -> Expr:
    # In float64, with a step of Newton's method for the rounding of 1/3.
    def root(x: Expr, size: Expr) -> Expr:
        def better(root: Expr) -> Expr:
            excess = apply("sub", root, apply("div", size, apply("square", root)))
            return apply("sub", root, apply("div", excess, _number(3.0, x)))

        plain = apply("or_", _is(size, 0.0), _is(size, math.inf))
        found = shared(apply("pow", size, _number(1 / 3, x)), better)
        return where(plain, x, signed(found, less(x, _number(0.0, x))))

    double = cast(a, "float64")
    return cast(shared(double, lambda x: shared(apply("abs", x), partial(root, x))), a.dtype)


def _logb(a: Expr) -> Expr:
    one = _number(1.0, a)

    def near(size: Expr, exponent: Expr) -> Expr:
        def corrected(power: Expr) -> Expr:
            too_large = apply("gt", power, size)
            too_small = apply("le", _scaled(power, 2.0), size)
            above = where(too_small, apply("add", exponent, one), exponent)
            return where(too_large, apply("sub", exponent, one), above)

        return where(_is(size, math.inf), size, shared(apply("exp2", exponent), corrected))

    def from_size(size: Expr) -> Expr:
        return shared(apply("floor", apply("log2", size)), partial(near, size))

    return shared(apply("abs", a), from_size)


def _nextafter(a: Expr, b: Expr) -> Expr:
    # The distance to the next number is a power of two: half of it below such a power.
    digits, least = (52, -1022) if a.dtype == "float64" else (23, -126)
    zero, smallest = _number(0.0, a), _number(2.0 ** (least - digits), a)

    def moved(size: Expr, exponent: Expr) -> Expr:
        grows = apply("eq", less(a, b), less(zero, a))
        halved = apply("and_", apply("not_", grows), apply("eq", size, apply("exp2", exponent)))
        halved = apply("and_", halved, apply("gt", exponent, _number(float(least), a)))
        unit = apply("max", _scaled(apply("exp2", exponent), 2.0**-digits), smallest)
        step = apply("mul", unit, where(halved, _number(0.5, a), _number(1.0, a)))
        return apply("add", a, signed(step, apply("not_", less(a, b))))

    def from_size(size: Expr) -> Expr:
        exponent = apply("max", _logb(size), _number(float(least), a))
        away = where(less(a, b), smallest, apply("neg", smallest))
        return where(_is(size, 0.0), away, shared(exponent, partial(moved, size)))

    unknown = apply("or_", _is_nan(a), _is_nan(b))
    same = apply("or_", unknown, apply("eq", a, b))
    largest = _number(float(np.finfo(a.dtype).max), a)
    from_infinity = where(less(a, zero), apply("neg", largest), largest)
    found = where(_is(apply("abs", a), math.inf), from_infinity, shared(apply("abs", a), from_size))
    return where(same, where(unknown, apply("add", a, b), b), found)


def _primitive(name: str) -> Callable[..., Expr]:
    made = partial(apply, name)
    _PRIMITIVES.append(made)
    return made


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
        "fmod": Builtin(2, fmod),
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
        "round": Builtin(1, round_away),
        "rsqrt": Builtin(1, _primitive("recip_sqrt")),
        "sinpi": Builtin(1, _sinpi),
        "trunc": Builtin(1, trunc),
        "nextafter": Builtin(2, _nextafter),
        **{name: Builtin(1, formula) for name, formula in SPECIAL_FUNCTIONS.items()},
    }
)
"""The functions by their names; nothing else can have one of these."""


def builtin_called(name: str) -> Builtin | None:
    """The function of this name, which may be C's for float: ``fmaxf`` is fmax."""
    found = BUILTINS.get(name) or BUILTINS.get(name.removesuffix("f"))
    return None if name in ("minf", "maxf") else found
