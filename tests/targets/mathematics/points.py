"""Where functions are tested: all exponents, dense samples where something happens, the ends of every format."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

__all__ = ["samples", "special_values"]

# Intervals that are sampled densely, beside all exponents. Where a function has become infinite, 0 or 1, what is beyond
# needs no sample.
_INTERVALS: Mapping[str, tuple[tuple[float, float], ...]] = {
    "exp": ((-746, 710), (-105, 90), (-1, 1)),
    "log": ((0, 10), (0.5, 2), (0.99, 1.01)),
}


def samples(name: str, dtype: str, count: int) -> np.ndarray:
    """``count`` arguments of each kind."""
    rng = np.random.default_rng(sum(map(ord, name + dtype)))
    parts = [_all_exponents(dtype, count, rng)]
    for low, high in _INTERVALS[name]:
        parts.append(rng.uniform(low, high, count).astype(dtype))
        # As many near 0 as far from it.
        size = np.geomspace(1e-6, 1, count) * max(abs(low), abs(high))
        parts.append((size * rng.choice([-1, 1] if low < 0 else [1], count)).astype(dtype))
    return np.concatenate(parts)


def _all_exponents(dtype: str, count: int, rng: np.random.Generator) -> np.ndarray:
    form = np.finfo(dtype)
    bits = np.uint32 if form.bits == 32 else np.uint64
    exponents = np.arange(2**form.nexp - 1, dtype=bits)
    repeats = -(-count // len(exponents))
    exponents = np.tile(exponents, repeats)
    fractions = rng.integers(0, 2**form.nmant, len(exponents), bits)
    signs = rng.integers(0, 2, len(exponents), bits) << bits(form.bits - 1)
    return ((exponents << bits(form.nmant)) | fractions | signs).view(dtype)


def special_values(dtype: str) -> np.ndarray:
    """Zeros, infinities, NaN, the ends of the normal and of the subnormal numbers, and small whole numbers."""
    form = np.finfo(dtype)
    ends = [0, 1, 0.5, 2, 3, 30, 1 - form.epsneg, 1 + form.eps, form.tiny, form.smallest_subnormal, form.max, np.inf]
    return np.array([*ends, *(-end for end in ends), np.nan], dtype)
