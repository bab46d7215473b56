"""Powers of floating-point numbers.

``x**y = exp(y log x)``. In double precision the logarithm is a pair of numbers with 70 digits: ``s = f / (2 + f)`` is
one, so are its square, and the first terms of ``2 artanh(s)``. In single precision everything is computed in double
precision. What infinities, zeros, NaN and negative bases give is C's (ISO/IEC 9899, F.10.4.4).
"""

from __future__ import annotations

import math

from tcdsl.targets.cpu.intrinsics.conversions import convert
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.arithmetic import (
    Pair,
    format_of,
    magnitude,
    polynomial,
    product,
    quick_sum,
    sign_bit,
    square,
    sum_of,
    with_sign,
)
from tcdsl.targets.cpu.mathematics.exponentials import LOG_2, exponential, exponential_parts, scaled
from tcdsl.targets.cpu.mathematics.logarithms import exponent_and_fraction, logarithm, normalized

__all__ = ["HALVES", "power", "power_of_halves"]

# Those of 2 artanh(s) = 2 s + s**3 (2/3 + s**2 Q(s**2)), by Remez' exchange.
_COEFFICIENTS = (
    0.4000000000000227, 0.2857142857009207, 0.2222222252132882, 0.18181784238710025, 0.15386763475231327,
    0.1325666976087252, 0.13197744551049315,
)  # fmt: skip
_TWO_THIRDS = (2 / 3, float.fromhex("0x1.5555555555555p-55"))


def power(x: Scalar, y: Scalar) -> Scalar:
    """``x`` to the power of ``y``."""
    size = magnitude(x)
    if x.dtype == "float32":
        wide = convert(y, "float64") * logarithm(convert(size, "float64"))
        result = convert(exponential(wide), "float32")
    else:
        result = _of_positive(size, y)
    result = (size.equals(1) | y.equals(0)).choose(result.constant(1), result)
    whole = _whole(magnitude(y))
    odd = whole & ~_whole(0.5 * magnitude(y))
    undefined = (x < 0) & (x > -math.inf) & ~whole
    result = undefined.choose(result.constant(math.nan), result)
    negative = odd.choose(sign_bit(x), sign_bit(x).constant(0))
    result = with_sign(result, negative)
    # NaN to the power of 0 is 1, and so is 1 to the power of NaN; else NaN gives NaN.
    return (x.equals(1) | y.equals(0)).choose(result.constant(1), (y.equals(y)).choose(result, y))


def _whole(size: Scalar) -> Scalar:
    large = 2.0 ** format_of(size).fraction
    return (size >= large) | ((size + large) - large).equals(size)


def _of_positive(size: Scalar, y: Scalar) -> Scalar:
    high, low = _logarithm(size)
    high = size.equals(0).choose(high.constant(-math.inf), high)
    high = (size < math.inf).choose(high, size)
    first, error = product(y, high)
    # Beyond the ends of exp, and where y has no parts, only the sign of the logarithm matters.
    ordinary = magnitude(first) < 1000
    exponent = (first > 710).choose(710.5, first)
    exponent = (exponent < -746).choose(-746.0, exponent)
    n, (one, more) = exponential_parts(exponent, ordinary.choose(error + y * low, 0.0))
    return scaled(one + more, n)


def _logarithm(x: Scalar) -> Pair:
    normal, excess = normalized(x)
    k, f = exponent_and_fraction(normal)
    k = k - excess
    # s = f / (2 + f), where 1 / (2 + f) is (1 - s) / 2.
    divisor, lost = quick_sum(f.constant(2), f)
    s = f / divisor
    back, error = product(s, divisor)
    s_low = (((f - back) - error) - s * lost) * (0.5 - 0.5 * s)
    z, z_low = square(s)
    z_low = z_low + 2 * s * s_low
    w, w_low = quick_sum(z.constant(_TWO_THIRDS[0]), z * polynomial(z, _COEFFICIENTS))
    w_low = w_low + _TWO_THIRDS[1]
    # s**3 w
    v, v_low = product(z, w)
    v_low = v_low + (z * w_low + z_low * w)
    u, u_low = product(s, v)
    u_low = u_low + (s * v_low + s_low * v)
    high, low = quick_sum(2 * s, u)
    low = low + (2 * s_low + u_low)
    first, second = LOG_2[x.dtype]
    total, lost = sum_of(k * first, high)
    return quick_sum(total, lost + (k * second + low))


def power_of_halves(x: Scalar, halves: int) -> Scalar:
    """``x`` to the power of ``halves / 2``, one of `HALVES`: a root, and at most three products and quotients.

    Within three units in the last place: no product overflows, and no quotient loses digits, where the result is
    neither 0 nor infinite.
    """
    root, whole = x.intrinsic("sqrt"), abs(halves) // 2
    factor = (x.constant(1), x, x * x)[whole]
    result = factor * root if halves > 0 else (1 / factor if whole else factor) / root
    # Minus infinity has no root, but a power; powers of minus zero have no sign.
    return x.equals(-math.inf).choose(x.constant(math.inf if halves > 0 else 0.0), magnitude(result))


HALVES = (1, 3, 5, -1, -3, -5)
"""The exponents, times 2, of `power_of_halves`: of larger ones rounding adds up to more than three units."""
