"""log, log2 and log1p.

``x = 2**k m`` with ``m`` between the root of 1/2 and the root of 2, and ``log(m) = log(1 + f)``. In double precision
``s = f / (2 + f)`` and ``log(1 + f) = 2 artanh(s)``, arranged as ``f - (f**2 / 2 - s (f**2 / 2 + R(s**2)))``, so that
the parts that are rounded are small (K. C. Ng, in the C library of 4.3BSD, 1986). In single precision a polynomial in
``f`` saves the division. The coefficients make the greatest relative error least, by Remez' exchange in 160 bits, and
were rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.arithmetic import (
    bits_of,
    format_of,
    leading_half,
    multiply_add,
    number_of,
    polynomial,
    power_of_two,
    quick_sum,
    sum_of,
)
from tcdsl.targets.cpu.mathematics.exponentials import LOG_2

__all__ = [
    "exponent_and_fraction",
    "logarithm",
    "logarithm_base_2",
    "logarithm_of_1_plus",
    "logarithm_of_sum",
    "normalized",
]

# The largest numbers below the root of 1/2.
_ROOT: Mapping[str, int] = MappingProxyType({"float32": 0x3F3504F3, "float64": 0x3FE6A09E667F3BCC})

# 1 / log 2 in two parts: products of the first with half as many digits as a number has are exact.
_LOG2_E: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "float32": (float.fromhex("0x1.714p+0"), float.fromhex("0x1.47652cp-12")),
        "float64": (float.fromhex("0x1.715476p+0"), float.fromhex("0x1.4ae0bf85ddf44p-26")),
    }
)

_SINGLE = (
    0.33333313, -0.2500001, 0.20002124, -0.16668005, 0.14219454, -0.1240534, 0.118886925, -0.11677513, 0.06747729,
)  # fmt: skip
_DOUBLE = (
    0.6666666666666735, 0.39999999999411023, 0.2857142874327963, 0.22222198474184163, 0.18183569834372615,
    0.15313900834165314, 0.14797531617021656,
)  # fmt: skip


def exponent_and_fraction(x: Scalar) -> tuple[Scalar, Scalar]:
    """``k`` and ``f`` with ``x = 2**k (1 + f)``, for ``x`` that are normal numbers above 0."""
    form = format_of(x)
    root = _ROOT[x.dtype]
    bits = bits_of(x) + (form.one - root)
    # The exponent as the last bits of a number whose unit in the last place is 1.
    large = (form.bias + form.fraction) << form.fraction
    k = number_of((bits >> form.fraction) | large) - (2.0**form.fraction + form.bias)
    m = number_of((bits & ((1 << form.fraction) - 1)) + root)
    return k, m - 1


def _rest(f: Scalar) -> tuple[Scalar, Scalar]:
    # f**2 / 2, and what the logarithm of 1 + f is more than f less that.
    half_square = 0.5 * f * f
    if f.dtype == "float32":
        return half_square, f * f * f * polynomial(f, _SINGLE)
    s = f / (2 + f)
    z = s * s
    return half_square, s * (half_square + z * polynomial(z, _DOUBLE))


def normalized(x: Scalar) -> tuple[Scalar, Scalar]:
    """A normal number for one that may be subnormal, and the exponent that it has too much."""
    form = format_of(x)
    small = x < 2.0 ** (1 - form.bias)
    power = form.fraction + 2
    return small.choose(x * 2.0**power, x), small.choose(x.constant(power), 0.0)


def _with_ends(result: Scalar, x: Scalar) -> Scalar:
    # What a logarithm is at 0, below it and at infinity.
    result = (x > 0).choose(result, x.equals(0).choose(x.constant(-math.inf), math.nan))
    return x.equals(math.inf).choose(x, result)


def logarithm(x: Scalar) -> Scalar:
    """The natural logarithm."""
    normal, excess = normalized(x)
    k, f = exponent_and_fraction(normal)
    k = k - excess
    half_square, more = _rest(f)
    high, low = LOG_2[x.dtype]
    small = multiply_add(k, low, more) - half_square
    return _with_ends(multiply_add(k, high, f + small), x)


def logarithm_base_2(x: Scalar) -> Scalar:
    """The logarithm to base 2; exact for powers of 2."""
    normal, excess = normalized(x)
    k, f = exponent_and_fraction(normal)
    half_square, more = _rest(f)
    # The logarithm of 1 + f in two parts, and their products with 1 / log 2 in two parts.
    first = leading_half(f - half_square)
    second = ((f - first) - half_square) + more
    high, low = _LOG2_E[x.dtype]
    total, lost = quick_sum(k - excess, first * high)
    return _with_ends(total + (lost + (second * high + (first + second) * low)), x)


def logarithm_of_sum(u: Scalar, error: Scalar, doublings: Scalar | None = None) -> Scalar:
    """The logarithm of ``u + error`` (times 2 to a power), where ``error`` is less than ``u``'s rounding.

    ``u`` is 0, a normal number, infinite or NaN.
    """
    k, f = exponent_and_fraction(u)
    half_square, more = _rest(f)
    # log(m + error) is log(m) + error / m; the error is so small that some digits of 1 / m suffice. It is lost beside
    # large numbers.
    shifter = format_of(u).shifter
    scale = power_of_two(shifter - (k > 100).choose(100, k))
    part = error * scale
    part = part * (1 - f * (1 - f * (1 - f)))
    if doublings is not None:
        k = k + doublings
    high, low = LOG_2[u.dtype]
    small = multiply_add(k, low, more + part) - half_square
    return _with_ends(multiply_add(k, high, f + small), u)


def logarithm_of_1_plus(x: Scalar) -> Scalar:
    """``log(1 + x)``, precise for small ``x``."""
    u, error = sum_of(x.constant(1), x)
    error = (u < math.inf).choose(error, 0.0)
    return x.equals(0).choose(x, logarithm_of_sum(u, error))
