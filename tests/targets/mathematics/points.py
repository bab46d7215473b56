"""Where functions are tested: all exponents, dense samples where something happens, hard cases, the ends of formats."""

from __future__ import annotations

from collections.abc import Mapping

import mpmath
import numpy as np

__all__ = ["samples", "special_values"]

_PERIODIC = ((-4, 4), (-100, 100), (-1e5, 1e5), (-1e9, 1e9))
_EXPONENTIAL = ((-1, 1), (-5, 5), (-105, 90), (-746, 711))
_ACTIVATION = ((-1, 1), (-6, 6), (-110, 40), (-750, 40))
_LOGARITHMIC = ((0, 10), (0.5, 2), (0.99, 1.01))

# Intervals that are sampled densely, beside all exponents. Where a function has become infinite, 0 or 1, what is beyond
# needs no sample.
_INTERVALS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "exp": _EXPONENTIAL,
    "exp2": ((-1, 1), (-151, 129), (-1076, 1025)),
    "expm1": ((-1, 1), (-40, 90), (-40, 710)),
    "log": _LOGARITHMIC,
    "log2": _LOGARITHMIC,
    "log1p": ((-1, 1), (-0.01, 0.01), (0, 10)),
    "sin": _PERIODIC,
    "cos": _PERIODIC,
    "tan": _PERIODIC,
    "asin": ((-1, 1), (0.49, 0.54)),
    "acos": ((-1, 1), (0.9, 1)),
    "atan": ((-3, 3), (-30, 30)),
    "sinh": _EXPONENTIAL,
    "cosh": _EXPONENTIAL,
    "tanh": ((-0.2, 0.2), (-2, 2), (-25, 25)),
    "asinh": ((-1, 1), (-3, 3), (-100, 100)),
    "acosh": ((1, 1.2), (1, 2), (1, 30)),
    "atanh": ((-1, 1), (-0.3, 0.3)),
    "erf": ((-0.2, 0.2), (-1.5, 1.5), (-6, 6)),
    "gelu": ((-1, 1), (-6, 6), (-14, 4), (-40, 10)),
    "sigmoid": _ACTIVATION,
    "silu": _ACTIVATION,
    "softplus": _ACTIVATION,
}

# Where the error was largest of all numbers in single precision, before or now.
_HARDEST: Mapping[str, tuple[float, ...]] = {"acosh": (1.0312642, 1.0311122)}


def samples(name: str, dtype: str, count: int) -> tuple[np.ndarray, ...]:
    """``count`` arguments of each kind."""
    rng = np.random.default_rng(sum(map(ord, name + dtype)))
    if name in ("power", "atan2"):
        return _pairs(name, dtype, count, rng)
    parts = [_all_exponents(dtype, count, rng)]
    for low, high in _INTERVALS[name]:
        parts.append(rng.uniform(low, high, count).astype(dtype))
        # As many near 0 as far from it.
        size = np.geomspace(1e-6, 1, count) * max(abs(low), abs(high))
        parts.append((size * rng.choice([-1, 1] if low < 0 else [1], count)).astype(dtype))
    parts.append(np.array(_HARDEST.get(name, ()), dtype))
    if _INTERVALS[name] == _PERIODIC:
        parts.append(_near_right_angles(dtype, count, rng))
    return (np.concatenate(parts),)


def _pairs(name: str, dtype: str, count: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    any_first, any_second = (_all_exponents(dtype, count, rng) for _ in range(2))
    signs = rng.choice([-1, 1], (2, count))
    if name == "atan2":
        first = [any_first, *(signs * np.exp(rng.uniform(-3, 3, (2, count))))]
        second = [rng.permutation(any_second), *(signs[::-1] * np.exp(rng.uniform(-3, 3, (2, count))))]
    else:
        # Results of all sizes, and powers of negative numbers; for other exponents NumPy's special values say it.
        logarithms = [rng.uniform(-3, 3, count), rng.uniform(-0.1, 0.1, count), rng.uniform(-80, 80, count)]
        end = np.log(float(np.finfo(dtype).max))
        first = [np.abs(any_first), *map(np.exp, logarithms), -rng.integers(1, 200, count)]
        second = [np.log(2) / np.log(np.abs(any_first.astype(np.float64)) + 3) * rng.uniform(-9, 9, len(any_first))]
        second += [end / each * rng.uniform(-1.05, 1.05, count) for each in logarithms]
        second += [rng.integers(-150, 150, count)]
    return np.concatenate(first).astype(dtype), np.concatenate(second).astype(dtype)


def _near_right_angles(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    # Where most digits of what is left of an argument are lost.
    with mpmath.workprec(120):
        found = [float(n * mpmath.pi / 2) for n in map(int, rng.integers(1, 63000, count))]
    # The double that comes nearest to a multiple, and others that come near to one.
    worst = [6381956970095103 * 2.0**797, 5319372648326541 * 2.0**-38, 22.0, 710.0, 103993.0 / 2, 1e22]
    nearest = np.array([*found, *(each for each in worst if each < float(np.finfo(dtype).max))]).astype(dtype)
    return np.concatenate([nearest, np.nextafter(nearest, dtype_of(dtype)(0))])


def dtype_of(dtype: str) -> type[np.floating]:
    """NumPy's type of scalars."""
    return np.float32 if dtype == "float32" else np.float64


def _all_exponents(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    form = np.finfo(dtype)
    bits = np.uint32 if form.bits == 32 else np.uint64
    exponents = np.arange(2**form.nexp - 1, dtype=bits)
    exponents = np.tile(exponents, -(-count // len(exponents)))
    fractions = rng.integers(0, 2**form.nmant, len(exponents), bits)
    signs = rng.integers(0, 2, len(exponents), bits) << bits(form.bits - 1)
    return ((exponents << bits(form.nmant)) | fractions | signs).view(dtype)


def special_values(dtype: str) -> np.ndarray:
    """Zeros, infinities, NaN, the ends of the normal and of the subnormal numbers, and small whole numbers."""
    form = np.finfo(dtype)
    ends = [0, 1, 0.5, 2, 3, 30, 1 - form.epsneg, 1 + form.eps, form.tiny, form.smallest_subnormal, form.max, np.inf]
    return np.array([*ends, *(-end for end in ends), np.nan], dtype)
