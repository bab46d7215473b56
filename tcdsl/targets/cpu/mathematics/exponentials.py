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

from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.arithmetic import (
    Pair,
    format_of,
    magnitude,
    multiply_add,
    polynomial,
    power_of_two,
    quick_sum,
)

__all__ = [
    "LOG_2",
    "exponential",
    "exponential_base_2",
    "exponential_minus_1",
    "exponential_of_negative",
    "exponential_parts",
    "half_exponential",
    "quarter_exponential_minus_1",
    "scaled",
]

LOG_2: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "float32": (float.fromhex("0x1.62e4p-1"), float.fromhex("0x1.7f7d1cp-20")),
        "float64": (float.fromhex("0x1.62e42fefa38p-1"), float.fromhex("0x1.ef35793c7673p-45")),
    }
)
"""log 2 in two parts: the first has room for a product with any exponent."""

_LOG2_E = 1.4426950408889634


@dataclass(frozen=True, slots=True)
class _Constants:
    """Where half of exp is infinite, exp is 0, and nothing beside 1; the ends of exp2; the coefficients of ``P``."""

    greatest: float
    least: float
    nothing: float
    ends_base_2: tuple[float, float]
    coefficients: tuple[float, ...]


_CONSTANTS: Mapping[str, _Constants] = MappingProxyType(
    {
        "float32": _Constants(
            greatest=89.5,
            least=-104.0,
            nothing=-20.0,
            ends_base_2=(-151.0, 129.0),
            coefficients=(0.49999994, 0.16666521, 0.041668393, 0.008368745, 0.001381453),
        ),
        "float64": _Constants(
            greatest=710.5,
            least=-746.0,
            nothing=-40.0,
            ends_base_2=(-1076.0, 1025.0),
            coefficients=(
                0.5000000000000011, 0.1666666666666641, 0.04166666666652974, 0.008333333333495077,
                0.001388888894375819, 0.0001984126950559847, 2.4801492950781633e-05, 2.7557586936430686e-06,
                2.7630306013028954e-07, 2.4999982429473276e-08,
            ),
        ),
    }
)  # fmt: skip


def _clamped(x: Scalar, least: float, greatest: float) -> Scalar:
    # NaN stays what it is.
    x = (x > greatest).choose(greatest, x)
    return (x < least).choose(least, x)


def _rest(r: Scalar) -> Scalar:
    # exp(r) - 1 - r
    return r * r * polynomial(r, _CONSTANTS[r.dtype].coefficients)


def scaled(y: Scalar, n: Scalar) -> Scalar:
    """``y * 2**n``, rounded once where that is subnormal: ``n`` is whole and may be twice as large as exponents are."""
    if y.builder.module.avx512 and y.bits * y.lanes in (128, 256, 512):
        return _scaled_at_once(y, n)
    shifter = format_of(n).shifter
    half = multiply_add(n, 0.5, shifter)
    other = (n - (half - shifter)) + shifter
    return y * power_of_two(half) * power_of_two(other)


def _scaled_at_once(y: Scalar, n: Scalar) -> Scalar:
    # Of all lanes, rounded to the nearest number.
    kind, width = y.value.type, y.bits * y.lanes
    lanes = ir.IntType(max(8, y.lanes))
    given = [y.value, n.value, y.value, ir.ConstantOperand(lanes, -1)]
    if width == 512:
        given.append(ir.ConstantOperand(ir.IntType(32), 4))
    name = f"llvm.x86.avx512.mask.scalef.p{'s' if y.bits == 32 else 'd'}.{width}"
    function = y.builder.module.intrinsic(name, [], ir.FunctionType(kind, [each.type for each in given]))
    return y.like(y.builder.call(function, given))


def _reduced(x: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    # n, and r in two parts, of which the second is not negligible yet.
    shifter = format_of(x).shifter
    n = multiply_add(x, _LOG2_E, shifter) - shifter
    high, low = LOG_2[x.dtype]
    return n, multiply_add(n, -high, x), n * low


def exponential(x: Scalar) -> Scalar:
    """The exponential function."""
    constants = _CONSTANTS[x.dtype]
    n, high, low = _reduced(_clamped(x, constants.least, constants.greatest))
    r = high - low
    return scaled(1 + (r + _rest(r)), n)


def exponential_of_negative(x: Scalar) -> Scalar:
    """The exponential function, for ``x`` of 0 and less."""
    least = _CONSTANTS[x.dtype].least
    n, high, low = _reduced((x < least).choose(least, x))
    r = high - low
    return scaled(1 + (r + _rest(r)), n)


def half_exponential(x: Scalar) -> Scalar:
    """``exp(x) / 2``, which is finite a little farther, for ``x`` of 0 and more."""
    x = _clamped(x, 0.0, _CONSTANTS[x.dtype].greatest)
    n, high, low = _reduced(x)
    r = high - low
    return scaled(1 + (r + _rest(r)), n - 1)


def exponential_parts(x: Scalar, more: Scalar | None = None) -> tuple[Scalar, Pair]:
    """``n`` and ``m``, between the root of 1/2 and that of 2, with ``exp(x + more) = 2**n m``.

    ``x`` is -746 to 710 (-104 to 89 in single precision), or NaN; ``more`` is smaller than its rounding.
    """
    n, high, low = _reduced(x)
    r = high - low
    error = (high - r) - low
    if more is not None:
        error = error + more
    first, second = quick_sum(r.constant(1), r)
    rest = _rest(r)
    return n, (first, second + multiply_add(error, first + rest, rest))


def exponential_base_2(x: Scalar) -> Scalar:
    """2 to the power of ``x``; exact where ``x`` is whole."""
    x = _clamped(x, *_CONSTANTS[x.dtype].ends_base_2)
    shifter = format_of(x).shifter
    n = (x + shifter) - shifter
    high, low = LOG_2[x.dtype]
    r = (x - n) * (high + low)
    return scaled(1 + (r + _rest(r)), n)


def quarter_exponential_minus_1(x: Scalar) -> Pair:
    """``(exp(x) - 1) / 4`` in two parts, which is finite a little farther; not precise for subnormal ``x``."""
    # (2**n - 1) + 2**n r + 2**n (exp(r) - 1 - r): the first sum keeps its error, the last part is small.
    constants = _CONSTANTS[x.dtype]
    n, high, low = _reduced(_clamped(x, constants.nothing, constants.greatest))
    r = high - low
    error = (high - r) - low
    scale = power_of_two(n + (format_of(x).shifter - 2))
    total, lost = quick_sum(scale - 0.25, scale * r)
    return total, lost + scale * (_rest(r) + error)


def exponential_minus_1(x: Scalar) -> Scalar:
    """``exp(x) - 1``, precise for small ``x``."""
    tiny = 2.0 ** -(format_of(x).fraction + 2)
    quarter, more = quarter_exponential_minus_1(x)
    return (magnitude(x) < tiny).choose(x, 4 * (quarter + more))
