"""exp, exp2 and expm1.

``x = n log 2 + r`` with a whole ``n`` and ``|r| <= log(2) / 2``, log 2 in two parts, the first of which has so few bits
that its product with ``n`` is exact (W. J. Cody and W. Waite, Software Manual for the Elementary Functions, 1980). Then
``exp(x) = 2**n (1 + r + r**2 P(r))``. The coefficients of ``P`` make the greatest relative error least, by Remez'
exchange in 160 bits, and were rounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.arithmetic import Scalar
from tcdsl.targets.cpu.mathematics.formats import format_of, power_of_two
from tcdsl.targets.cpu.mathematics.polynomials import multiply_add, polynomial

__all__ = ["LOG_2", "exponential", "scaled"]

LOG_2: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "float32": (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cf79abcap-20")),
        "float64": (float.fromhex("0x1.62e42fefa38p-1"), float.fromhex("0x1.ef35793c7673p-45")),
    }
)
"""log 2 in two parts: the first has room for a product with any exponent."""

_LOG2_E = 1.4426950408889634


@dataclass(frozen=True, slots=True)
class _Constants:
    """Where exp has become infinity and 0, and ``P``."""

    greatest: float
    least: float
    coefficients: tuple[float, ...]


_CONSTANTS: Mapping[str, _Constants] = MappingProxyType(
    {
        "float32": _Constants(89.0, -104.0, (0.49999994, 0.16666521, 0.041668393, 0.008368745, 0.001381453)),
        "float64": _Constants(
            710.0,
            -746.0,
            (
                0.5000000000000011,
                0.1666666666666641,
                0.04166666666652974,
                0.008333333333495077,
                0.001388888894375819,
                0.0001984126950559847,
                2.4801492950781633e-05,
                2.7557586936430686e-06,
                2.7630306013028954e-07,
                2.4999982429473276e-08,
            ),
        ),
    }
)


def _clamped(x: Scalar, least: float, greatest: float) -> Scalar:
    # NaN stays what it is.
    x = (x > greatest).choose(greatest, x)
    return (x < least).choose(least, x)


def rest(r: Scalar) -> Scalar:
    """``exp(r) - 1 - r`` for small ``r``."""
    return r * r * polynomial(r, _CONSTANTS[r.dtype].coefficients)


def scaled(y: Scalar, n: Scalar) -> Scalar:
    """``y * 2**n``, rounded once where that is subnormal: ``n`` is whole and may be twice as large as exponents are."""
    shifter = format_of(n).shifter
    half = multiply_add(n, 0.5, shifter)
    other = (n - (half - shifter)) + shifter
    return y * power_of_two(half) * power_of_two(other)


def exponential(x: Scalar) -> Scalar:
    """The exponential function."""
    constants = _CONSTANTS[x.dtype]
    x = _clamped(x, constants.least, constants.greatest)
    shifter = format_of(x).shifter
    n = multiply_add(x, _LOG2_E, shifter) - shifter
    high, low = LOG_2[x.dtype]
    r = multiply_add(n, -low, multiply_add(n, -high, x))
    return scaled(1 + (r + rest(r)), n)
