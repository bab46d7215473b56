"""The two formats of floating-point numbers: their bits, signs, and whole numbers kept in them.

A number added to ``shifter``, 1.5 times 2 to the number of bits of a fraction, is rounded to the nearest whole one,
which stands, in two's complement, in the last bits of the sum. So processors without instructions that round, or that
convert 64-bit integers, do both by an addition.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = [
    "Format",
    "bits_of",
    "format_of",
    "magnitude",
    "number_of",
    "power_of_two",
    "sign_bit",
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
