"""What formulas compute with: pairs of numbers, bits and signs, polynomials.

A pair is a sum of two numbers, of which the second is smaller than the first one's rounding: twice the digits. The
algorithms are those of O. Møller and D. E. Knuth (sums) and T. J. Dekker (A floating-point technique for extending
the available precision, Numerische Mathematik 18, 1971). Numbers are cut in two for products by clearing the last
half of their bits, which needs no multiplication, cannot overflow, and does not ask for fused operations.

A number added to ``shifter``, 1.5 times 2 to the number of bits of a fraction, is rounded to the nearest whole one,
which stands, in two's complement, in the last bits of the sum. So processors without instructions that round, or that
convert 64-bit integers, do both by an addition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = [
    "Format",
    "Pair",
    "bits_of",
    "format_of",
    "leading_half",
    "magnitude",
    "multiply_add",
    "number_of",
    "polynomial",
    "power_of_two",
    "product",
    "quick_sum",
    "sign_bit",
    "square",
    "sum_of",
    "with_sign",
]


@dataclass(frozen=True, slots=True)
class Format:
    """Widths in bits, and what follows from them."""

    fraction: int
    exponent: int

    @property
    def bits(self) -> str:
        """The integers that hold a number's bits."""
        return f"uint{1 + self.exponent + self.fraction}"

    @property
    def bias(self) -> int:
        """What is added to exponents."""
        return int(2 ** (self.exponent - 1) - 1)

    @property
    def one(self) -> int:
        """The bits of 1."""
        return self.bias << self.fraction

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.exponent + self.fraction)

    @property
    def shifter(self) -> float:
        """What rounds the number that is added to it."""
        return 1.5 * 2.0**self.fraction


_FORMATS: Mapping[str, Format] = MappingProxyType({"float32": Format(23, 8), "float64": Format(52, 11)})


def format_of(x: Scalar) -> Format:
    """The format of a floating scalar."""
    return _FORMATS[x.dtype]


def bits_of(x: Scalar) -> Scalar:
    """The bits of a floating scalar."""
    return x.reinterpret(format_of(x).bits)


def number_of(bits: Scalar) -> Scalar:
    """The floating scalar of such bits."""
    return bits.reinterpret("float32" if bits.bits == 32 else "float64")


def power_of_two(shifted: Scalar) -> Scalar:
    """2 to the power of the whole number that ``shifted`` holds, which must be the exponent of a normal number."""
    form = format_of(shifted)
    return number_of((bits_of(shifted) << form.fraction) + form.one)


def magnitude(x: Scalar) -> Scalar:
    """The absolute value."""
    return x.intrinsic("fabs")


def sign_bit(x: Scalar) -> Scalar:
    """The bits of ``x`` but for those of its absolute value."""
    return bits_of(x) & format_of(x).sign


def with_sign(x: Scalar, sign: Scalar) -> Scalar:
    """``x``, negated where the bit of ``sign`` is set."""
    return number_of(bits_of(x) ^ sign)


def multiply_add(a: Scalar, b: Scalar | float, c: Scalar | float) -> Scalar:
    """``a * b + c``, rounded once where that is no slower, twice elsewhere."""
    return a.intrinsic("fmuladd", a.lift(b), a.lift(c))


def polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """``polynomial(x, (1, 2, 3))`` is ``1 + 2 * x + 3 * x**2``, by Horner's scheme."""
    result = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = multiply_add(result, x, coefficient)
    return result


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
