"""sigmoid, silu and softplus, by ``e = exp(-|x|)``, which does not overflow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.double_double import Pair, quick_sum
from tcdsl.targets.cpu.mathematics.exponentials import exponential, exponential_parts, scaled
from tcdsl.targets.cpu.mathematics.formats import magnitude, sign_bit, with_sign
from tcdsl.targets.cpu.mathematics.logarithms import logarithm_of_sum
from tcdsl.targets.cpu.mathematics.polynomials import multiply_add

__all__ = ["sigmoid", "sigmoid_linear_unit", "softplus"]

# Where even x exp(x) has become 0.
_END: Mapping[str, float] = MappingProxyType({"float32": -120.0, "float64": -800.0})


def _limited(x: Scalar) -> Scalar:
    # NaN stays what it is.
    end = _END[x.dtype]
    return (x < end).choose(end, x)


def _share(x: Scalar) -> tuple[Pair, Scalar]:
    # sigmoid is the sum of this pair times 2**n.
    n, parts = exponential_parts(_limited(-magnitude(x)))
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
    (quotient, more), n = _share(x)
    return scaled(quotient + more, n)


def sigmoid_linear_unit(x: Scalar) -> Scalar:
    """silu: ``x / (1 + exp(-x))``."""
    (quotient, more), n = _share(x)
    factor = _limited(x)
    result = scaled(multiply_add(factor, quotient, factor * more), n)
    # The sign of 0 is lost in sums; the parts of infinity are not numbers; NumPy's formula multiplies it by 0.
    result = result.equals(0).choose(with_sign(result.constant(0), sign_bit(x)), result)
    result = (x < math.inf).choose(result, x)
    return x.equals(-math.inf).choose(x.constant(math.nan), result)


def softplus(x: Scalar) -> Scalar:
    """``log(1 + exp(x))``."""
    e = exponential(-magnitude(x))
    u, error = quick_sum(e.constant(1), e)
    return (x > 0).choose(x, 0.0) + logarithm_of_sum(u, error)
