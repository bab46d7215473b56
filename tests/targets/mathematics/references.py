"""What functions are at a floating-point number, by mpmath, and how far off a result is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np

__all__ = ["errors"]

_CONTEXT: Any = mpmath.mp.clone()
_CONTEXT.prec = 140

_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "exp": _CONTEXT.exp,
    "log": _CONTEXT.log,
}


def errors(name: str, operands: tuple[np.ndarray, ...], found: np.ndarray) -> np.ndarray:
    """The errors of ``found`` in units in the last place of what is exact, where that is a finite number.

    What is beyond the largest number by half a unit is infinite.
    """
    dtype = found.dtype
    function = _FUNCTIONS[name]
    form = np.finfo(dtype)
    end = _CONTEXT.mpf(float(form.max)) * (1 + _CONTEXT.mpf(2) ** (-form.nmant - 2))
    distances = np.zeros(len(found))
    columns = [operand.astype(np.float64).tolist() for operand in operands]
    for k, (*point, result) in enumerate(zip(*columns, found.astype(np.float64).tolist(), strict=True)):
        exact = function(*map(_CONTEXT.mpf, point))
        if isinstance(exact, _CONTEXT.mpc):
            distances[k] = 0 if np.isnan(result) else np.inf
        elif abs(exact) >= end:
            distances[k] = 0 if result == np.copysign(np.inf, float(exact)) else np.inf
        elif not np.isfinite(result):
            distances[k] = np.inf
        else:
            exponent = max(_CONTEXT.frexp(exact)[1] - 1, form.minexp) if exact else form.minexp
            distances[k] = float(abs(result - exact) * _CONTEXT.mpf(2) ** int(form.nmant - exponent))
    return distances
