"""NumPy's functions of numbers that are no primitives: each by those that are."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from types import BuiltinFunctionType
from typing import Any

import numpy as np

from tcdsl.frontend.symbols.operators import PrimitiveOperators

__all__ = ["POINTWISE", "UFUNCS", "pointwise_function"]


def _where(condition: Any, one: Any, other: Any) -> Any:
    for each in (condition, one, other):
        if isinstance(each, PrimitiveOperators):
            return each._combined("where", condition, one, other)
    return np.where(condition, one, other)


def _isnan(x: Any) -> Any:
    return x != x  # noqa: PLR0124


def _isinf(x: Any) -> Any:
    return np.abs(x) == math.inf


def _isfinite(x: Any) -> Any:
    return np.abs(x) < math.inf


def _is_floating(x: Any) -> bool:
    value = getattr(x, "value", None)  # of a scalar at a point
    name = getattr(value, "logical", None) or str(getattr(x, "dtype", "float64"))
    return np.dtype(name).kind == "f"


def _floating(x: Any) -> Any:
    return x if _is_floating(x) else x * 1.0


def _trunc(x: Any) -> Any:
    return _where(x < 0, np.ceil(x), np.floor(x)) if _is_floating(x) else x


def _fmax(x1: Any, x2: Any) -> Any:
    return _where(_isnan(x1), x2, _where(_isnan(x2), x1, np.maximum(x1, x2)))


def _fmin(x1: Any, x2: Any) -> Any:
    return _where(_isnan(x1), x2, _where(_isnan(x2), x1, np.minimum(x1, x2)))


def _hypot(x1: Any, x2: Any) -> Any:
    # By the quotient of both, so that squares neither overflow nor vanish; of two infinite ones that is NaN.
    one, other = abs(_floating(x1)), abs(_floating(x2))
    large, small = np.maximum(one, other), np.minimum(one, other)
    ratio = _where((large > 0) & (large < math.inf), small / _where(large > 0, large, 1.0), 0.0)
    return _where(_isinf(one) | _isinf(other), math.inf, large * np.sqrt(1.0 + ratio * ratio))


def _logaddexp(x1: Any, x2: Any) -> Any:
    # Of equal ones, also of infinite ones, the difference is 0.
    x1, x2 = _floating(x1), _floating(x2)
    apart = _where(x1 == x2, 0.0, abs(x1 - x2))
    return np.maximum(x1, x2) + np.log1p(np.exp(-apart))


def _logaddexp2(x1: Any, x2: Any) -> Any:
    x1, x2 = _floating(x1), _floating(x2)
    apart = _where(x1 == x2, 0.0, abs(x1 - x2))
    return np.maximum(x1, x2) + np.log1p(np.exp2(-apart)) / math.log(2.0)


def _cbrt(x: Any) -> Any:
    size = abs(_floating(x))
    root = np.exp2(np.log2(_where(size > 0, size, 1.0)) / 3.0)
    # A step of Newton's, which makes the last bits right.
    better = root - (root - size / (root * root)) / 3.0
    return _where((size > 0) & (size < math.inf), _where(x < 0, -better, better), _floating(x))


def _heaviside(x1: Any, x2: Any) -> Any:
    return _where(x1 < 0, 0.0, _where(x1 == 0, x2, _where(x1 > 0, 1.0, x1)))


def _fmod(x1: Any, x2: Any) -> Any:
    if _is_floating(x1) or _is_floating(x2):
        rest = np.mod(abs(x1), abs(x2))
        return _where(_signbit(x1), -rest, rest)
    rest = np.mod(x1, x2)  # which has the sign of the divisor
    return _where((rest != 0) & ((x1 < 0) != (x2 < 0)), rest - x2, rest)


def _divmod(x1: Any, x2: Any) -> tuple[Any, Any]:
    return np.floor_divide(x1, x2), np.mod(x1, x2)


def _modf(x: Any) -> tuple[Any, Any]:
    x = _floating(x)
    whole = _trunc(x)
    # A zero has the sign of the number.
    return _where(_isinf(x), 1.0 / x, _where(_signbit(x), -(whole - x), x - whole)), whole


def _signbit(x: Any) -> Any:
    # The quotient tells zeros apart.
    return (x < 0) | (1.0 / _where(x == 0, x, 1.0) < 0) if _is_floating(x) else x < 0


def _copysign(x1: Any, x2: Any) -> Any:
    size = abs(_floating(x1))
    return _where(_signbit(x2), -size, size)


def _ldexp(x1: Any, x2: Any) -> Any:
    # In two steps: a power alone may be out of range where the product is not.
    power = np.maximum(np.minimum(x2, 2100), -2100)
    half = power // 2
    found = _floating(x1) * np.exp2(half * 1.0) * np.exp2((power - half) * 1.0)
    return found.astype(x1.dtype) if _is_floating(x1) and hasattr(x1, "dtype") and hasattr(found, "astype") else found


def _rint(x: Any) -> Any:
    x = _floating(x)
    return x._combined("round", x) if isinstance(x, PrimitiveOperators) else np.rint(x)


def _same(x: Any) -> Any:
    return np.copy(x)


UFUNCS: Mapping[Any, Callable[..., Any]] = {
    np.isnan: _isnan,
    np.isinf: _isinf,
    np.isfinite: _isfinite,
    np.signbit: _signbit,
    np.copysign: _copysign,
    np.trunc: _trunc,
    np.fmax: _fmax,
    np.fmin: _fmin,
    np.hypot: _hypot,
    np.logaddexp: _logaddexp,
    np.logaddexp2: _logaddexp2,
    np.cbrt: _cbrt,
    np.heaviside: _heaviside,
    np.fmod: _fmod,
    np.divmod: _divmod,
    np.modf: _modf,
    np.ldexp: _ldexp,
    np.fabs: lambda x: abs(_floating(x)),
    np.rint: _rint,
    np.positive: _same,
    np.conjugate: _same,
    np.degrees: lambda x: x * (180.0 / math.pi),
    np.rad2deg: lambda x: x * (180.0 / math.pi),
    np.radians: lambda x: x * (math.pi / 180.0),
    np.deg2rad: lambda x: x * (math.pi / 180.0),
    np.log10: lambda x: np.log(x) / math.log(10.0),
    np.logical_xor: lambda x1, x2: (x1 != 0) != (x2 != 0),
    np.float_power: lambda x1, x2: np.power(x1 * np.float64(1.0), x2 * 1.0),
}
"""By the ufunc."""

_OF_MATH: Mapping[Any, Callable[..., Any]] = {
    getattr(math, function.__name__): row for function, row in UFUNCS.items() if hasattr(math, function.__name__)
}


def _isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    a, b = _floating(a), _floating(b)
    near = (a == b) | (_isfinite(a) & _isfinite(b) & (abs(a - b) <= atol + rtol * abs(b)))
    return near | (_isnan(a) & _isnan(b)) if equal_nan else near


def _nan_to_num(x: Any, *, nan: Any = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if not _is_floating(x):
        return np.copy(x)
    largest = np.finfo(str(x.dtype)).max
    above, below = largest if posinf is None else posinf, -largest if neginf is None else neginf
    return _where(_isnan(x), nan, _where(x == math.inf, above, _where(x == -math.inf, below, x)))


def _sinc(x: Any) -> Any:
    turned = math.pi * _where(x == 0, 1e-20, x)
    return np.sin(turned) / turned


def _select(condlist: Any, choicelist: Any, default: Any = 0) -> Any:
    found = default
    for condition, choice in zip(reversed(condlist), reversed(choicelist), strict=True):
        found = _where(condition, choice, found)
    return found


def _clipped(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    a_min, a_max = min if a_min is None else a_min, max if a_max is None else a_max
    raised = a if a_min is None else np.maximum(a, a_min)
    return raised if a_max is None else np.minimum(raised, a_max)


def _angle(z: Any) -> Any:
    z = _floating(z)
    return np.arctan2(_where(_isnan(z), z, 0.0), z)


def _array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    """Of arrays whose shapes fit: those of others are an error."""
    alike: Any = np.ndim(a1) == np.ndim(a2)
    for one, other in zip(np.shape(a1), np.shape(a2), strict=False):
        alike = alike if one is other else alike & (one == other)
    if alike is False:
        return np.False_
    same = np.equal(a1, a2) if alike is True else np.equal(a1, a2) & alike
    return np.all(same | (_isnan(a1) & _isnan(a2)) if equal_nan else same)


POINTWISE: Mapping[Any, Callable[..., Any]] = {
    np.isclose: _isclose,
    np.allclose: lambda a, b, *others, **options: np.all(_isclose(a, b, *others, **options)),
    np.array_equal: _array_equal,
    np.nan_to_num: _nan_to_num,
    np.sinc: _sinc,
    np.select: _select,
    np.clip: _clipped,
    np.real: lambda val: np.copy(val),  # noqa: PLW0108
    np.imag: lambda val: np.zeros_like(val),  # noqa: PLW0108
    np.angle: lambda z, deg=False: _angle(z) * (180.0 / math.pi if deg else 1.0),
    np.fix: _trunc,
}


def pointwise_function(function: Any) -> Callable[..., Any] | None:
    """What ``math.hypot`` or ``np.clip`` is of symbolic numbers; None if it is not here."""
    rows = _OF_MATH if isinstance(function, BuiltinFunctionType) else POINTWISE
    return rows.get(function) if isinstance(function, Hashable) else None
