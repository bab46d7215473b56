"""asin, acos, atan and atan2.

``asin(x) = x + x**3 P(x**2)`` up to 1/2, and beyond by ``asin(x) = pi / 2 - 2 asin(root((1 - x) / 2))``. The arc
tangent of a quotient below 1 is a polynomial; that of its inverse is what is left of a right angle. The coefficients
make the greatest relative error least, by Remez' exchange in 160 bits, and were rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.arithmetic import (
    magnitude,
    multiply_add,
    polynomial,
    quick_sum,
    sign_bit,
    with_sign,
)

__all__ = ["inverse_cosine", "inverse_sine", "inverse_tangent", "inverse_tangent_of_quotient"]

# pi / 2 in two parts.
_HALF_PI: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "float32": (float.fromhex("0x1.921fb6p+0"), float.fromhex("-0x1.777a5cp-25")),
        "float64": (float.fromhex("0x1.921fb54442d18p+0"), float.fromhex("0x1.1a62633145c07p-54")),
    }
)

_ARC_SINE: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "float32": (0.16666754, 0.07495233, 0.04547833, 0.024141027, 0.042230505),
        "float64": (
            0.16666666666665375, 0.07500000000344756, 0.044642856822011696, 0.030381959394056864,
            0.02237175197040424, 0.01735979518066881, 0.013884354619715409, 0.012174917996361221,
            0.006503611747649175, 0.019594126460320268, -0.016326407166678634, 0.031981525406336773,
        ),
    }
)  # fmt: skip
_ARC_TANGENT: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "float32": (
            -0.33333302, 0.19998631, -0.14265156, 0.109570496, -0.084177524, 0.058202546, -0.031421117, 0.011044458,
            -0.0018224346,
        ),
        "float64": (
            -0.3333333333333309, 0.19999999999954862, -0.14285714282767578, 0.11111111012583873,
            -0.09090907099540141, 0.07692280946796488, -0.06666412956447944, 0.05880579929302995,
            -0.052537471696848165, 0.04723087657999605, -0.04221158782006601, 0.03668172945608077,
            -0.02996620976828357, 0.02206054878196269, -0.013971039212048335, 0.0072458485734476835,
            -0.0029100420560664764, 0.0008400984504779369, -0.00015404143522534732, 1.3411378526416814e-05,
        ),
    }
)  # fmt: skip


def _small_arc(size: Scalar) -> tuple[Scalar, Scalar, Scalar]:
    # Whether size is beyond 1/2; then root((1 - size) / 2), else size; and what the arc sine of that is more.
    large = size > 0.5
    z = large.choose(0.5 - 0.5 * size, size * size)
    s = large.choose(z.intrinsic("sqrt"), size)
    return large, s, s * z * polynomial(z, _ARC_SINE[size.dtype])


def inverse_sine(x: Scalar) -> Scalar:
    """The inverse of the sine."""
    large, s, more = _small_arc(magnitude(x))
    high, low = _HALF_PI[x.dtype]
    total, lost = quick_sum(x.constant(high), -2 * s)
    return with_sign(large.choose(total + (lost - (2 * more - low)), s + more), sign_bit(x))


def inverse_cosine(x: Scalar) -> Scalar:
    """The inverse of the cosine."""
    large, s, more = _small_arc(magnitude(x))
    arc = s + more
    high, low = _HALF_PI[x.dtype]
    signed = with_sign(arc, sign_bit(x))
    right = (x < 0).choose(2 * high - (2 * arc - 2 * low), 2 * arc)
    return large.choose(right, high - (signed - low))


def _arc(quotient: Scalar) -> Scalar:
    z = quotient * quotient
    return multiply_add(quotient * z, polynomial(z, _ARC_TANGENT[quotient.dtype]), quotient)


def inverse_tangent(x: Scalar) -> Scalar:
    """The inverse of the tangent."""
    size = magnitude(x)
    large = size > 1
    arc = _arc(large.choose(1 / size, size))
    high, low = _HALF_PI[x.dtype]
    return with_sign(large.choose(high - (arc - low), arc), sign_bit(x))


def inverse_tangent_of_quotient(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point ``(x, y)``."""
    up, across = magnitude(y), magnitude(x)
    steep = up > across
    small, large = steep.choose(across, up), steep.choose(up, across)
    quotient = small / large
    quotient = (small + large).equals(0).choose(0.0, quotient)
    quotient = (small.equals(math.inf) & large.equals(math.inf)).choose(1.0, quotient)
    arc = _arc(quotient)
    high, low = _HALF_PI[x.dtype]
    # The angle is a multiple of pi / 2, and this arc added or taken away.
    backwards = sign_bit(x).differs(0)
    turns = backwards.choose(steep.choose(x.constant(1), 2.0), steep.choose(x.constant(1), 0.0))
    arc = with_sign(arc, sign_bit(x))
    arc = steep.choose(-arc, arc)
    return with_sign(turns * high + (arc + turns * low), sign_bit(y))
