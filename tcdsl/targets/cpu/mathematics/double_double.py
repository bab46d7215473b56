"""Sums of two numbers, of which the second is smaller than the first one's rounding: twice the digits.

The algorithms are those of O. Møller and D. E. Knuth (sums) and T. J. Dekker (A floating-point technique for extending
the available precision, Numerische Mathematik 18, 1971). Numbers are cut in two for products by clearing the last half
of their bits, which needs no multiplication, cannot overflow, and does not ask for fused operations.
"""

from __future__ import annotations

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.formats import bits_of, format_of, number_of

__all__ = ["Pair", "leading_half", "product", "quick_sum", "square", "sum_of"]

Pair = tuple[Scalar, Scalar]
"""A number, and what it is short of."""


def quick_sum(a: Scalar, b: Scalar) -> Pair:
    """``a + b`` and its error, where ``a`` is 0 or not smaller than ``b``."""
    total = a + b
    return total, b - (total - a)


def sum_of(a: Scalar, b: Scalar) -> Pair:
    """``a + b`` and its error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def leading_half(x: Scalar) -> Scalar:
    """``x`` with so few digits that products of two such numbers are exact."""
    form = format_of(x)
    kept = (1 << (1 + form.exponent + form.fraction)) - (1 << (form.fraction // 2 + 1))
    return number_of(bits_of(x) & kept)


def product(a: Scalar, b: Scalar) -> Pair:
    """``a * b`` and its error, but for what is smaller than the last digit of that."""
    high, other = leading_half(a), leading_half(b)
    low, rest = a - high, b - other
    rounded = a * b
    return rounded, ((high * other - rounded) + high * rest + low * other) + low * rest


def square(a: Scalar) -> Pair:
    """``a * a`` and its error, but for what is smaller than the last digit of that."""
    high = leading_half(a)
    low = a - high
    rounded = a * a
    return rounded, ((high * high - rounded) + 2 * high * low) + low * low
