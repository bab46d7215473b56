"""Absolute values and signs, by bits."""

from __future__ import annotations

from tcdsl.targets.cpu.intrinsics.arithmetic import Scalar
from tcdsl.targets.cpu.mathematics.formats import bits_of, format_of, number_of

__all__ = ["magnitude", "sign_bit", "with_sign"]


def magnitude(x: Scalar) -> Scalar:
    """The absolute value."""
    return x.intrinsic("fabs")


def sign_bit(x: Scalar) -> Scalar:
    """The bits of ``x`` but for those of its absolute value."""
    return bits_of(x) & format_of(x).sign


def with_sign(x: Scalar, sign: Scalar) -> Scalar:
    """``x``, negated where the bit of ``sign`` is set."""
    return number_of(bits_of(x) ^ sign)
