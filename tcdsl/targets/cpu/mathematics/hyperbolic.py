"""sinh, cosh, tanh and their inverses, by exponentials and logarithms that are precise for small arguments."""

from __future__ import annotations

import math

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.arithmetic import (
    format_of,
    magnitude,
    multiply_add,
    quick_sum,
    sign_bit,
    sum_of,
    with_sign,
)
from tcdsl.targets.cpu.mathematics.exponentials import half_exponential, quarter_exponential_minus_1
from tcdsl.targets.cpu.mathematics.logarithms import logarithm_of_1_plus, logarithm_of_sum

__all__ = [
    "hyperbolic_cosine",
    "hyperbolic_sine",
    "hyperbolic_tangent",
    "inverse_hyperbolic_cosine",
    "inverse_hyperbolic_sine",
    "inverse_hyperbolic_tangent",
]


def _odd(x: Scalar, result: Scalar) -> Scalar:
    # The function of |x| given the sign of x, and x itself where nothing else is left of it.
    tiny = 2.0 ** -(format_of(x).fraction // 2 + 2)
    return (magnitude(x) < tiny).choose(x, with_sign(result, sign_bit(x)))


def hyperbolic_sine(x: Scalar) -> Scalar:
    """The hyperbolic sine."""
    # With h for (exp(x) - 1) / 2 it is h + h / (2 h + 1), whose derivative by h is 1 + 1 / (2 h + 1)**2.
    quarter, more = quick_sum(*quarter_exponential_minus_1(magnitude(x)))
    half = 2 * quarter
    infinite = half.equals(math.inf)
    quotient = half / (2 * half + 1)
    inverse = 1 - 2 * quotient
    return _odd(x, infinite.choose(half, half + multiply_add(2 * more, multiply_add(inverse, inverse, 1), quotient)))


def hyperbolic_cosine(x: Scalar) -> Scalar:
    """The hyperbolic cosine."""
    half = half_exponential(magnitude(x))
    return half + 0.25 / half


def hyperbolic_tangent(x: Scalar) -> Scalar:
    """The hyperbolic tangent."""
    size = magnitude(x)
    # Where it has become 1.
    end = 0.5 * format_of(x).fraction
    # With q for (exp(2 x) - 1) / 4 it is q / (q + 1/2), and 1 / (q + 1/2) is 2 less twice that.
    q, more = quick_sum(*quarter_exponential_minus_1(2 * (size > end).choose(end, size)))
    divisor, lost = sum_of(q, q.constant(0.5))
    quotient = q / divisor
    return _odd(x, multiply_add(more - quotient * (lost + more), 2 - 2 * quotient, quotient))


def inverse_hyperbolic_sine(x: Scalar) -> Scalar:
    """The inverse of the hyperbolic sine."""
    size = magnitude(x)
    large = size > 2.0 ** (format_of(x).fraction // 2 + 2)
    square = size * size
    u, error = sum_of(size.constant(1), size + square / (1 + (1 + square).intrinsic("sqrt")))
    # log(2 x) for large x.
    nothing, one = size.constant(0), size.constant(1)
    return _odd(x, logarithm_of_sum(large.choose(size, u), large.choose(nothing, error), large.choose(one, nothing)))


def inverse_hyperbolic_cosine(x: Scalar) -> Scalar:
    """The inverse of the hyperbolic cosine, for arguments from 1."""
    large = x > 2.0 ** (format_of(x).fraction // 2 + 2)
    t = x - 1
    total, lost = sum_of(t, multiply_add(t, t, 2 * t).intrinsic("sqrt"))
    u, error = sum_of(t.constant(1), total)
    error = large.choose(x.constant(0), error + lost)
    result = logarithm_of_sum(large.choose(x, u), error, large.choose(x.constant(1), 0.0))
    return (x >= 1).choose(result, math.nan)


def inverse_hyperbolic_tangent(x: Scalar) -> Scalar:
    """The inverse of the hyperbolic tangent."""
    size = magnitude(x)
    double = size + size
    small = size < 0.5
    quotient = small.choose(double * size, double) / (1 - size)
    return _odd(x, 0.5 * logarithm_of_1_plus(small.choose(double + quotient, quotient)))
