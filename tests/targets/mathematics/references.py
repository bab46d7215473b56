"""What functions are at a floating-point number, by mpmath, and how far off a result is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np

__all__ = ["errors"]

_MP: Any = mpmath.mp.clone()
_MP.prec = 140
_ROOT = _MP.sqrt(2)


def _gelu(x: Any) -> Any:
    # Far beyond the last subnormal number erfc takes long.
    return x * _MP.erfc(-x / _ROOT) / 2 if x > -50 else _MP.mpf(0)


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    **{name: getattr(_MP, name) for name in ("exp", "expm1", "log", "log1p", "sin", "cos", "tan")},
    **{name: getattr(_MP, name) for name in ("asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh")},
    **{name: getattr(_MP, name) for name in ("asinh", "acosh", "atanh", "power")},
    "exp2": lambda x: _MP.power(2, x),
    "log2": lambda x: _MP.log(x) / _MP.ln2,
    "erf": lambda x: _MP.erf(max(-50, min(50, x))),
    "gelu": _gelu,
    "sigmoid": lambda x: 1 / (1 + _MP.exp(-x)),
    "silu": lambda x: x / (1 + _MP.exp(-x)),
    "softplus": lambda x: _MP.log1p(_MP.exp(x)),
}


def errors(name: str, operands: tuple[np.ndarray, ...], found: np.ndarray) -> np.ndarray:
    """The errors of ``found`` in units in the last place of what is exact; infinite where one of both is not finite.

    What is beyond the largest number by half a unit is infinite.
    """
    function = _FUNCTIONS[name]
    form = np.finfo(found.dtype)
    end = _MP.mpf(float(form.max)) * (1 + _MP.mpf(2) ** (-form.nmant - 2))
    distances = np.zeros(len(found))
    columns = [operand.astype(np.float64).tolist() for operand in operands]
    for k, (*point, result) in enumerate(zip(*columns, found.astype(np.float64).tolist(), strict=True)):
        exact = function(*map(_MP.mpf, point))
        if isinstance(exact, _MP.mpc):
            distances[k] = 0 if np.isnan(result) else np.inf
        elif abs(exact) >= end:
            distances[k] = 0 if result == (np.inf if exact > 0 else -np.inf) else np.inf
        elif not np.isfinite(result):
            distances[k] = np.inf
        else:
            exponent = max(_MP.frexp(exact)[1] - 1, form.minexp) if exact else form.minexp
            distances[k] = float(abs(result - exact) * _MP.mpf(2) ** int(form.nmant - exponent))
    return distances
