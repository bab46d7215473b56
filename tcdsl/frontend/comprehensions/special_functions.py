"""Special functions, in float64 whatever the type: relative errors are about 1e-14, beside zeros absolute ones.

Derivatives are those of the formulas. Inverse functions end with Newton's steps, of which two are differentiated: the
derivatives of first and second order are exact then, whatever the steps began with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from tcdsl.frontend.comprehensions.coefficients import (
    J0,
    J1,
    LANCZOS,
    LARGE_I0,
    LARGE_I1,
    P0,
    P1,
    Q0,
    Q1,
    SCALED_ERFC,
    Y0,
    Y1,
)
from tcdsl.frontend.words.shared_parts import shared
from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.expressions import Expr

__all__ = ["SPECIAL_FUNCTIONS"]

_BORDER = 8.0  # Between power series and waves of Bessel functions.
_CENTER = 3.25
_NO_ERFC = 27.5  # Beyond it is 0.
_LARGE = 1e8
_HALF = 0.5
_ROOT = math.sqrt(math.pi)


def _number(value: float) -> Expr:
    return constant(value, "float64")


def _add(a: Expr, b: Expr | float) -> Expr:
    return apply("add", a, _number(b) if isinstance(b, float) else b)


def _sub(a: Expr | float, b: Expr | float) -> Expr:
    left, right = (_number(each) if isinstance(each, float) else each for each in (a, b))
    return apply("sub", left, right)


def _mul(a: Expr, b: Expr | float) -> Expr:
    return apply("mul", a, _number(b) if isinstance(b, float) else b)


def _div(a: Expr | float, b: Expr) -> Expr:
    return apply("div", _number(a) if isinstance(a, float) else a, b)


def _less(a: Expr, b: float) -> Expr:
    return apply("lt", a, _number(b))


def _where(condition: Expr, chosen: Expr | float, other: Expr | float) -> Expr:
    branches = (_number(each) if isinstance(each, float) else each for each in (chosen, other))
    return apply("where", condition, *branches)


def _polynomial(coefficients: Sequence[float], x: Expr) -> Expr:
    total = _number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        total = _add(_mul(total, x), coefficient)
    return total


def _size(x: Expr) -> Expr:
    # |x| with the derivative 1 at 0, where halves of odd functions meet.
    return _where(_less(x, 0.0), apply("neg", x), x)


def _in_double(formula: Callable[[Expr], Expr]) -> Callable[[Expr], Expr]:
    def computed(a: Expr) -> Expr:
        return cast(shared(cast(a, "float64"), formula), a.dtype)

    return computed


# -- the error function ----------------------------------------------------------------------------------------------


def _scaled(z: Expr) -> Expr:
    # exp(z**2) erfc(z) for z of 0 and more.
    ratio = _div(_sub(z, _CENTER), _add(z, _CENTER))
    near = shared(ratio, lambda q: _div(_polynomial(SCALED_ERFC, q), _add(_mul(z, 2.0), 1.0)))
    return _where(_less(z, _LARGE), near, _div(1 / _ROOT, z))


def _erfc(x: Expr) -> Expr:
    def halves(size: Expr) -> Expr:
        tail = _mul(apply("exp", apply("neg", apply("square", size))), _scaled(size))
        known = _where(_less(size, _NO_ERFC), tail, _mul(size, 0.0))
        return shared(known, lambda tail: _where(_less(x, 0.0), _sub(2.0, tail), tail))

    plain = apply("ne", apply("abs", x), _number(math.inf))
    return _where(plain, shared(_size(x), halves), _where(_less(x, 0.0), 2.0, 0.0))


def _erfcx(x: Expr) -> Expr:
    def halves(size: Expr) -> Expr:
        power = apply("exp", apply("square", size))
        return shared(_scaled(size), lambda tail: _where(_less(x, 0.0), _sub(_mul(power, 2.0), tail), tail))

    return shared(_size(x), halves)


def _normcdf(x: Expr) -> Expr:
    return shared(_mul(x, -math.sqrt(0.5)), lambda y: _mul(_erfc(y), 0.5))


def _newton(begin: Expr, step: Callable[[Expr], Expr], steps: int) -> Expr:
    if steps == 0:
        return begin
    found = shared(begin, step)
    return _newton(apply("stop_gradient", found) if steps == 3 else found, step, steps - 1)


def _inverse_center(x: Expr) -> Expr:
    # erf(y) = x for |x| of at most a half, beginning with four terms of the power series.
    series = (_ROOT / 2, _ROOT * math.pi / 24, 7 * _ROOT * math.pi**2 / 960, 127 * _ROOT * math.pi**3 / 80640)
    begin = shared(apply("square", x), lambda square: _mul(_polynomial(series, square), x))

    def step(y: Expr) -> Expr:
        slope = _mul(apply("exp", apply("square", y)), _ROOT / 2)
        return _sub(y, _mul(_sub(apply("erf", y), x), slope))

    return _newton(apply("stop_gradient", begin), step, 4)


def _inverse_tail(p: Expr) -> Expr:
    # erfc(y) = p for p of at most a half: Newton's steps for the logarithm, which is nearly linear in y**2.
    def from_logarithm(size: Expr) -> Expr:
        begin = apply("sqrt", _sub(size, _mul(apply("log", _mul(size, math.pi)), 0.5)))

        def step(y: Expr) -> Expr:
            def better(scaled: Expr) -> Expr:
                excess = _add(_sub(apply("log", scaled), apply("square", y)), size)
                return _add(y, _mul(_mul(excess, scaled), _ROOT / 2))

            return shared(_scaled(y), better)

        return _newton(apply("stop_gradient", begin), step, 5)

    found = shared(apply("neg", apply("log", p)), from_logarithm)
    return _where(apply("eq", p, _number(0.0)), math.inf, found)


def _erfinv(x: Expr) -> Expr:
    above = shared(_sub(1.0, x), _inverse_tail)
    below = apply("neg", shared(_add(x, 1.0), _inverse_tail))
    return _where(apply("gt", x, _number(_HALF)), above, _where(_less(x, -_HALF), below, _inverse_center(x)))


def _erfcinv(p: Expr) -> Expr:
    below = apply("neg", shared(_sub(2.0, p), _inverse_tail))
    center = shared(_sub(1.0, p), _inverse_center)
    return _where(_less(p, _HALF), _inverse_tail(p), _where(apply("gt", p, _number(2 - _HALF)), below, center))


def _normcdfinv(p: Expr) -> Expr:
    return shared(_mul(p, 2.0), lambda q: _mul(_erfcinv(q), -math.sqrt(2.0)))


# -- the gamma function ----------------------------------------------------------------------------------------------


def _series(x: Expr) -> Expr:
    total = _number(LANCZOS[0])
    for k, coefficient in enumerate(LANCZOS[1:], 1):
        total = _add(_div(coefficient, _add(x, float(k))), total)
    return _div(_mul(total, math.sqrt(2 * math.pi)), x)


def _reflected(x: Expr) -> Expr:
    return _where(_less(x, _HALF), _sub(1.0, x), x)


def _sine(x: Expr) -> Expr:
    # sin(pi x), exactly 0 at whole numbers.
    rest = _sub(x, apply("round", x))
    odd = apply("ne", apply("mod", apply("round", x), _number(2.0)), _number(0.0))
    sine = apply("sin", _mul(rest, math.pi))
    return shared(sine, lambda sine: _where(odd, apply("neg", sine), sine))


def _tgamma(x: Expr) -> Expr:
    def half(z: Expr) -> Expr:
        def power(t: Expr) -> Expr:
            # As a square, so that nothing overflows before the function does.
            grown = apply("pow", t, _mul(_add(z, 0.5), 0.5))
            return _mul(apply("square", _mul(grown, apply("exp", _mul(t, -0.5)))), _series(z))

        gamma = shared(_add(z, 607 / 128 + 0.5), power)
        return shared(gamma, lambda gamma: _where(_less(x, _HALF), _div(math.pi, _mul(_sine(x), gamma)), gamma))

    found = shared(_reflected(x), half)
    return _where(apply("eq", x, _number(math.inf)), x, found)


def _lgamma(x: Expr) -> Expr:
    def half(z: Expr) -> Expr:
        def logarithm(t: Expr) -> Expr:
            return _add(_sub(_mul(_add(z, 0.5), apply("log", t)), t), apply("log", _series(z)))

        gamma = shared(_add(z, 607 / 128 + 0.5), logarithm)
        reflected = apply("log", _div(math.pi, apply("abs", _sine(x))))
        return shared(gamma, lambda gamma: _where(_less(x, _HALF), _sub(reflected, gamma), gamma))

    found = shared(_reflected(x), half)
    return _where(apply("eq", apply("abs", x), _number(math.inf)), math.inf, found)


# -- Bessel functions ------------------------------------------------------------------------------------------------


def _near(coefficients: Sequence[float], x: Expr) -> Expr:
    argument = _sub(_mul(apply("square", x), 1 / 32), 1.0)
    return shared(argument, partial(_polynomial, coefficients))


def _wave(order: int, second: bool, x: Expr) -> Expr:
    # sqrt(2 / (pi x)) (P cos(x - c) - Q sin(x - c) / x), and the same a quarter later for the second kind.
    even, odd = ((P0, Q0), (P1, Q1))[order]

    def of_waves(cosine: Expr, sine: Expr) -> Expr:
        near, far = _add(cosine, sine), _sub(sine, cosine)
        cos, sin = (near, far) if order == 0 else (far, apply("neg", near))
        if second:
            cos, sin = sin, apply("neg", cos)

        def amplitudes(u: Expr) -> Expr:
            return _sub(_mul(cos, _polynomial(even, u)), _mul(sin, _div(_polynomial(odd, u), x)))

        argument = _sub(_mul(apply("square", _div(_BORDER, x)), 2.0), 1.0)
        return _div(shared(argument, amplitudes), apply("sqrt", _mul(x, math.pi)))

    return shared(apply("cos", x), lambda cosine: shared(apply("sin", x), partial(of_waves, cosine)))


def _j(order: int, x: Expr) -> Expr:
    def halves(size: Expr) -> Expr:
        near = _near(J0, x) if order == 0 else _mul(_near(J1, x), x)
        far = _wave(order, False, size)
        if order == 1:
            far = shared(far, lambda far: _where(_less(x, 0.0), apply("neg", far), far))
        return _where(apply("eq", size, _number(math.inf)), 0.0, _where(_less(size, _BORDER), near, far))

    return shared(_size(x), halves)


def _y(order: int, x: Expr) -> Expr:
    logarithm = apply("log", x)
    if order == 0:
        near = _add(_mul(_mul(logarithm, _near(J0, x)), 2 / math.pi), _near(Y0, x))
    else:
        pole = _sub(_mul(logarithm, _mul(_near(J1, x), x)), _div(1.0, x))
        near = _add(_mul(pole, 2 / math.pi), _mul(_near(Y1, x), x))
        near = _where(apply("eq", x, _number(0.0)), -math.inf, near)
    far = _where(apply("eq", x, _number(math.inf)), 0.0, _wave(order, True, x))
    return _where(_less(x, _BORDER), near, far)


def _i(order: int, x: Expr) -> Expr:
    series = [1 / (math.factorial(k) * math.factorial(k + order)) for k in range(26)]

    def halves(size: Expr) -> Expr:
        near = shared(_mul(apply("square", x), 0.25), partial(_polynomial, series))
        if order == 1:
            near = _mul(_mul(x, 0.5), near)
        coefficients = (LARGE_I0, LARGE_I1)[order]
        scaled = shared(_sub(_div(16.0, size), 1.0), partial(_polynomial, coefficients))
        # In two parts, so that nothing overflows before the function does.
        grown = shared(
            apply("exp", _mul(size, 0.5)), lambda root: _mul(_mul(_div(scaled, apply("sqrt", size)), root), root)
        )
        if order == 1:
            grown = shared(grown, lambda far: _where(_less(x, 0.0), apply("neg", far), far))
        return _where(_less(size, _BORDER), near, grown)

    return shared(_size(x), halves)


_FORMULAS: dict[str, Callable[[Expr], Expr]] = {
    "cyl_bessel_i0": partial(_i, 0),
    "cyl_bessel_i1": partial(_i, 1),
    "erfc": _erfc,
    "erfcinv": _erfcinv,
    "erfcx": _erfcx,
    "erfinv": _erfinv,
    "j0": partial(_j, 0),
    "j1": partial(_j, 1),
    "lgamma": _lgamma,
    "normcdf": _normcdf,
    "normcdfinv": _normcdfinv,
    "tgamma": _tgamma,
    "y0": partial(_y, 0),
    "y1": partial(_y, 1),
}

SPECIAL_FUNCTIONS = {name: _in_double(formula) for name, formula in _FORMULAS.items()}
"""The functions by name, each of one operand of a floating type."""
