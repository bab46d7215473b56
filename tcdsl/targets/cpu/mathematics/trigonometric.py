"""sin, cos and tan.

``x = n pi / 2 + r`` with ``|r| <= pi / 4``, pi / 2 in parts whose products with ``n`` are exact (W. J. Cody and
W. Waite, 1980): in double precision three parts for ``x`` up to 1e5, in single precision two in double precision for
``x`` up to a million. What is left of pi / 2 is far below what any such ``x`` leaves. Vectors that hold larger numbers
are computed one number at a time, with all digits of pi (`large_angles`). The coefficients of the polynomials make the
greatest relative error least, by Remez' exchange in 160 bits, and were rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.conversions import convert
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.double_double import Pair, quick_sum, sum_of
from tcdsl.targets.cpu.mathematics.formats import bits_of, format_of, magnitude, sign_bit, with_sign
from tcdsl.targets.cpu.mathematics.large_angles import large_angle
from tcdsl.targets.cpu.mathematics.polynomials import multiply_add, polynomial
from tcdsl.targets.cpu.mathematics.rare_calls import computed_beyond

__all__ = ["cosine", "sine", "tangent"]

_TWO_OVER_PI = float.fromhex("0x1.45f306dc9c883p-1")
_HALF_PI = tuple(map(float.fromhex, ("0x1.921fb54440000p+0", "0x1.68c234c4c0000p-39", "0x1.98a2e03707345p-77")))
_HALF_PI_FOR_SINGLE = tuple(map(float.fromhex, ("0x1.921fb544p+0", "0x1.0b4611a626331p-34")))
_GREATEST: Mapping[str, float] = MappingProxyType({"float32": 2.0**20, "float64": 1e5})

_SINE: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "float32": (-0.16666655, 0.008332176, -0.00019516976),
        "float64": (
            -0.16666666666666632, 0.00833333333332237, -0.0001984126982977074, 2.755731367851843e-06,
            -2.5050755937577462e-08, 1.5896665071652074e-10,
        ),
    }
)  # fmt: skip
_COSINE: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "float32": (0.041666653, -0.0013887652, 2.4463501e-05),
        "float64": (
            0.0416666666666666, -0.0013888888888874066, 2.4801587289443638e-05, -2.7557314340676316e-07,
            2.087572162326166e-09, -1.1359559205158141e-11,
        ),
    }
)  # fmt: skip


def _reduced(size: Scalar) -> tuple[Scalar, Pair]:
    # The last bits of n, as an integer, and r, for sizes that are not too large.
    if size.dtype == "float32":
        wide = convert(size, "float64")
        shifter = format_of(wide).shifter
        n = multiply_add(wide, _TWO_OVER_PI, shifter) - shifter
        first, second = _HALF_PI_FOR_SINGLE
        exact = multiply_add(n, -second, multiply_add(n, -first, wide))
        r = convert(exact, "float32")
        more = convert(exact - convert(r, "float64"), "float32")
        return bits_of(convert(n, "float32") + format_of(size).shifter), (r, more)
    shifter = format_of(size).shifter
    shifted = multiply_add(size, _TWO_OVER_PI, shifter)
    n = shifted - shifter
    first, second, third = _HALF_PI
    high, low = sum_of(multiply_add(n, -first, size), n * -second)
    return bits_of(shifted), sum_of(high, multiply_add(n, -third, low))


def _sine(r: Pair) -> Pair:
    high, low = r
    z = high * high
    return high, high * z * polynomial(z, _SINE[high.dtype]) + low


def _cosine(r: Pair) -> Pair:
    high, low = r
    z = high * high
    half = 0.5 * z
    first, lost = quick_sum(high.constant(1), -half)
    return first, lost + (z * z * polynomial(z, _COSINE[high.dtype]) - high * low)


def _quarter(bits: Scalar, which: int) -> Scalar:
    # Whether a bit of n is set.
    return (bits & which).differs(0)


def _sign_of(bits: Scalar, which: int, x: Scalar) -> Scalar:
    # The bit of n at the place of the sign.
    return (bits << (x.bits - which)) & format_of(x).sign


_Formula = Callable[[Scalar, Pair, Scalar], Scalar]


def _exact(name: str, formula: _Formula) -> Callable[[Scalar], Scalar]:
    # The formula takes the last bits of n, r, and x for its sign.
    def of_large(x: Scalar) -> Scalar:
        wide = convert(x, "float64")
        bits, r = large_angle(magnitude(wide))
        # Infinity gives NaN.
        return convert(formula(bits, r, wide) + (wide - wide), x.dtype)

    def of_any(x: Scalar) -> Scalar:
        # First, while there is little else that a call would have to save.
        end = _GREATEST[x.dtype]
        size = magnitude(x)
        found = computed_beyond(end, name, of_large, x)
        return (size > end).choose(found, formula(*_reduced(size), x))

    return of_any


def _sine_of(bits: Scalar, r: Pair, x: Scalar) -> Scalar:
    (sine, more), (cosine, rest) = _sine(r), _cosine(r)
    other = _quarter(bits, 1)
    result = other.choose(cosine, sine) + other.choose(rest, more)
    return with_sign(result, _sign_of(bits, 2, x) ^ sign_bit(x))


def _cosine_of(bits: Scalar, r: Pair, x: Scalar) -> Scalar:
    (sine, more), (cosine, rest) = _sine(r), _cosine(r)
    other = _quarter(bits, 1)
    result = other.choose(sine, cosine) + other.choose(more, rest)
    return with_sign(result, _sign_of(bits + 1, 2, x))


def _tangent_of(bits: Scalar, r: Pair, x: Scalar) -> Scalar:
    sine, cosine = quick_sum(*_sine(r)), quick_sum(*_cosine(r))
    other = _quarter(bits, 1)
    top, top_error = (other.choose(a, b) for a, b in zip(cosine, sine, strict=True))
    bottom, bottom_error = (other.choose(a, b) for a, b in zip(sine, cosine, strict=True))
    inverse = 1 / bottom
    quotient = top * inverse
    result = top / bottom + (top_error - quotient * bottom_error) * inverse
    return with_sign(result, _sign_of(bits, 1, x) ^ sign_bit(x))


sine = _exact("sin", _sine_of)
"""The sine."""

cosine = _exact("cos", _cosine_of)
"""The cosine."""

tangent = _exact("tan", _tangent_of)
"""The tangent."""
