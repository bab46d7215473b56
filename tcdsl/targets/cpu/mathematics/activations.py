"""erf, gelu by the complementary error function, sigmoid, silu and softplus.

``erfc(z) = exp(-z**2) P(q) / (1 + 2 z)`` with ``q = (z - c) / (z + c)`` for all ``z`` of 0 and more (M. M. Shepherd and
J. G. Laframboise, Chebyshev approximation of (1 + 2x) exp(x**2) erfc x, Mathematics of Computation 36, 1981), where
``z**2`` is a pair of numbers. For gelu, which needs more digits, ``1 + x`` and ``(x - c) / (x + c)`` stand for these,
so that ``z = x / root(2)`` is not rounded. Near 0 ``erf(z) = z + z P(z**2)``. The coefficients make the greatest
relative error least, by Remez' exchange in 160 bits, and were rounded.

sigmoid, silu and softplus are computed by ``e = exp(-|x|)``, which does not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.arithmetic import (
    Pair,
    magnitude,
    multiply_add,
    polynomial,
    product,
    quick_sum,
    sign_bit,
    square,
    sum_of,
    with_sign,
)
from tcdsl.targets.cpu.mathematics.exponentials import (
    exponential_of_negative,
    exponential_parts,
    scaled,
)
from tcdsl.targets.cpu.mathematics.logarithms import logarithm_of_sum

__all__ = ["error_function", "gaussian_error_linear_unit", "sigmoid", "sigmoid_linear_unit", "softplus"]


@dataclass(frozen=True, slots=True)
class _Tail:
    """``c`` and ``P``; and where the function is constant from."""

    end: float
    center: float
    coefficients: tuple[float, ...]


_ERROR_FUNCTION: Mapping[str, _Tail] = MappingProxyType(
    {
        "float32": _Tail(
            end=4.0,
            center=2.25,
            coefficients=(
                1.2709799, -0.110255666, -0.13078012, 0.16525799, -0.08313203, 0.011426709, 0.008085973,
                -0.0025656703, -0.0011341869, 0.00032721955, 0.00017101114,
            ),
        ),
        "float64": _Tail(
            end=6.0,
            center=3.25,
            coefficients=(
                1.2475151132011641, -0.1386113336083714, -0.02745678119088985, 0.11350749363625129,
                -0.11897889089378741, 0.08014898632540884, -0.036960583272778645, 0.010148647024669308,
                -0.00018754551014142645, -0.0010751243264009518, 0.0003050477668159528, 7.504163729069274e-05,
                -5.4166380090163536e-05, -4.384279433184812e-06, 8.606962578002513e-06, 3.157366200335068e-07,
                -1.427701120790643e-06, -8.352974843807027e-08, 2.4508095035199754e-07, 3.2989786557370275e-08,
                -3.8360987009428285e-08, -9.481171563260589e-09, 3.846001157572668e-09, 1.4228130809118933e-09,
            ),
        ),
    }
)  # fmt: skip
_UNIT: Mapping[str, _Tail] = MappingProxyType(
    {
        "float32": _Tail(
            end=14.4,
            center=3.25,
            coefficients=(
                0.96434253, -0.19494829, -0.014589895, 0.0841803, -0.05458633, 0.0116342345, 0.0042185076,
                -0.0022272517, -0.0005461162, 0.00031549568, 0.00011579877,
            ),
        ),
        "float64": _Tail(
            end=38.9,
            center=4.5,
            coefficients=(
                0.9328373131858039, -0.188913517776374, 0.04768592953823893, 0.037845313325453676,
                -0.06075378193166407, 0.04523262089370391, -0.021182170671369384, 0.005422492210959452,
                0.00023851135971657622, -0.0007060036415668697, 0.00014190437255033776, 6.767051476080139e-05,
                -2.979257986414448e-05, -7.173114466447858e-06, 5.102227443098161e-06, 1.0549924664018636e-06,
                -8.556776743819897e-07, -2.1896211843278469e-07, 1.3725134476014427e-07, 5.048955370439783e-08,
                -1.7890528460002004e-08, -9.418102647465157e-09, 1.2135697756290439e-09, 8.832973005696106e-10,
            ),
        ),
    }
)  # fmt: skip
_NEAR_ZERO: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "float32": (
            0.12837917, -0.37612626, 0.112835854, -0.026853813, 0.0051883277, -0.0008010194, 7.853862e-05,
        ),
        "float64": (
            0.12837916709551256, -0.3761263890318352, 0.11283791670944185, -0.026866170643111406,
            0.00522397760611795, -0.0008548325929289371, 0.00012055293576159022, -1.4924712288067329e-05,
            1.6447131403673695e-06, -1.6206312510252814e-07, 1.3710975148745214e-08, -7.779458955545839e-10,
        ),
    }
)  # fmt: skip


def _limited(x: Scalar, greatest: float) -> Scalar:
    # NaN stays what it is.
    return (x > greatest).choose(greatest, x)


def _tail(argument: Scalar, slope: int, squared: Pair, form: _Tail, factor: Scalar) -> tuple[Pair, Scalar]:
    # erfc of a number whose square is that pair, times a factor, as a pair and a power of 2.
    q = (argument - form.center) / (argument + form.center)
    first, *others = form.coefficients
    top, top_rest = quick_sum(q.constant(first), q * polynomial(q, others))
    divisor, lost = sum_of(q.constant(1), slope * argument)
    n, parts = exponential_parts(-squared[0], -squared[1])
    one, more = quick_sum(*parts)
    total, error = product(one, top)
    error = error + (one * top_rest + more * top)
    total, other = product(total, factor)
    error = error * factor + other
    quotient = total / divisor
    return (quotient, (error - quotient * lost) / divisor), n


def _near_zero(x: Scalar) -> Scalar:
    # erf of |x| < 1
    return multiply_add(x, polynomial(x * x, _NEAR_ZERO[x.dtype]), x)


def error_function(x: Scalar) -> Scalar:
    """The error function."""
    form = _ERROR_FUNCTION[x.dtype]
    size = _limited(magnitude(x), form.end)
    (tail, _), n = _tail(size, 2, square(size), form, size.constant(1))
    return (size < 1).choose(_near_zero(x), with_sign(1 - scaled(tail, n), sign_bit(x)))


def gaussian_error_linear_unit(x: Scalar) -> Scalar:
    """gelu: ``x`` times the probability that a normal variable is below ``x``."""
    form = _UNIT[x.dtype]
    size = _limited(magnitude(x), form.end)
    high, low = square(size)
    (tail, more), n = _tail(size, 1, (0.5 * high, 0.5 * low), form, 0.5 * size)
    below = scaled(tail + more, n)
    far = (x > 0).choose(x - below, with_sign(below, sign_bit(x)))
    near = x * multiply_add(_near_zero(x * math.sqrt(0.5)), 0.5, 0.5)
    # NumPy's formula multiplies infinity by 0.
    return x.equals(-math.inf).choose(x.constant(math.nan), (size < 0.5).choose(near, far))


# Where even x exp(x) has become 0.
_END: Mapping[str, float] = MappingProxyType({"float32": -120.0, "float64": -800.0})


def _not_below(x: Scalar) -> Scalar:
    # NaN stays what it is.
    end = _END[x.dtype]
    return (x < end).choose(end, x)


def _share(x: Scalar) -> tuple[Pair, Scalar]:
    # sigmoid is the sum of this pair times 2**n.
    n, parts = exponential_parts(_not_below(-magnitude(x)))
    one, more = quick_sum(*parts)
    # 1 + e in two parts
    divisor, lost = quick_sum(one.constant(1), scaled(one, n))
    lost = lost + scaled(more, n)
    negative = x < 0
    n = negative.choose(n, 0.0)
    quotient = negative.choose(one, 1.0) / divisor
    # The inverse of the divisor is the one of the two shares that belongs to 1.
    share = scaled(quotient, n)
    inverse = negative.choose(1 - share, share)
    return (quotient, (negative.choose(more, 0.0) - quotient * lost) * inverse), n


def sigmoid(x: Scalar) -> Scalar:
    """``1 / (1 + exp(-x))``."""
    e = exponential_of_negative(-magnitude(x))
    divisor, lost = quick_sum(e.constant(1), e)
    negative = x < 0
    share = negative.choose(e, 1.0) / divisor
    # The inverse of the divisor is the one of the two shares that belongs to 1.
    inverse = negative.choose(1 - share, share)
    return multiply_add(share * lost, -inverse, share)


def sigmoid_linear_unit(x: Scalar) -> Scalar:
    """silu: ``x / (1 + exp(-x))``."""
    (quotient, more), n = _share(x)
    factor = _not_below(x)
    result = scaled(multiply_add(factor, quotient, factor * more), n)
    # The sign of 0 is lost in sums; the parts of infinity are not numbers; NumPy's formula multiplies it by 0.
    result = result.equals(0).choose(with_sign(result.constant(0), sign_bit(x)), result)
    result = (x < math.inf).choose(result, x)
    return x.equals(-math.inf).choose(x.constant(math.nan), result)


def softplus(x: Scalar) -> Scalar:
    """``log(1 + exp(x))``."""
    e = exponential_of_negative(-magnitude(x))
    u, error = quick_sum(e.constant(1), e)
    return (x > 0).choose(x, 0.0) + logarithm_of_sum(u, error)
