"""Sums, means and deviations as NumPy has them, with ``where``, ``weights`` and NaN left out; positions and counts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.numpy_functions.shapes import axes_of, one_axis
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.pointwise_functions import UFUNCS
from tcdsl.ir.build import apply, integer
from tcdsl.ir.dtypes import is_floating

__all__ = ["REDUCTIONS"]


def _count(a: Any, axis: Any) -> Any:
    found: Any = 1
    for k in range(a.ndim) if axis is None else axes_of(a.ndim, axis):
        found = found * a.shape[k]
    return found


def _never_negative(count: Any) -> Any:
    return max(count, 0) if isinstance(count, int | float) else np.maximum(count, 0)


def _var(a: Any, axis: Any = None, *, ddof: Any = 0, correction: Any = None, keepdims: bool = False) -> Any:
    distance = a - np.mean(a, axis=axis, keepdims=True)
    left = ddof if correction is None else correction
    return np.sum(distance * distance, axis=axis, keepdims=keepdims) / _never_negative(_count(a, axis) - left)


def _std(a: Any, axis: Any = None, **options: Any) -> Any:
    return np.sqrt(_var(a, axis, **options))


def _ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.max(a, axis=axis, keepdims=keepdims) - np.min(a, axis=axis, keepdims=keepdims)


def _count_nonzero(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    return np.sum(a != 0, axis=axis, keepdims=keepdims)


def _average(a: Any, axis: Any = None, weights: Any = None, *, keepdims: bool = False) -> Any:
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    if np.ndim(weights) < a.ndim:
        k = one_axis(a, axis)
        weights = weights[tuple(slice(None) if j == k else None for j in range(a.ndim))]
        total = np.sum(weights)
        return np.sum(a * weights, axis=axis, keepdims=keepdims) / total
    total = np.sum(weights, axis=axis, keepdims=keepdims)
    return np.sum(a * weights, axis=axis, keepdims=keepdims) / total


def _without_nan(function: Any, instead: float) -> Callable[..., Any]:
    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        array = np.where(UFUNCS[np.isnan](a), instead, a) if is_floating(str(a.dtype)) else a
        return function(array, axis=axis, keepdims=keepdims)

    return reduced


def _extreme_without_nan(function: Any, instead: float) -> Callable[..., Any]:
    def reduced(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
        if not is_floating(str(a.dtype)):
            return function(a, axis=axis, keepdims=keepdims)
        missing = UFUNCS[np.isnan](a)
        found = function(np.where(missing, instead, a), axis=axis, keepdims=keepdims)
        return np.where(np.all(missing, axis=axis, keepdims=keepdims), math.nan, found)

    return reduced


def _nanmean(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    if not is_floating(str(a.dtype)):
        return np.mean(a, axis=axis, keepdims=keepdims)
    there = a == a  # noqa: PLR0124
    return np.sum(np.where(there, a, 0.0), axis=axis, keepdims=keepdims) / _counted(there, a, axis, keepdims)


def _counted(there: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    # How many cells there are, in the type of the array.
    return np.sum(np.where(there, 1.0, 0.0).astype(a.dtype), axis=axis, keepdims=keepdims)


def _nanvar(a: Any, axis: Any = None, *, ddof: Any = 0, keepdims: bool = False) -> Any:
    if not is_floating(str(a.dtype)):
        return _var(a, axis, ddof=ddof, keepdims=keepdims)
    there = a == a  # noqa: PLR0124
    count = _counted(there, a, axis, keepdims)
    distance = np.where(there, a - _nanmean(a, axis, keepdims=True), 0.0)
    return np.sum(distance * distance, axis=axis, keepdims=keepdims) / _never_negative(count - ddof)


def _cov(m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: Any = None) -> Any:
    """Of one row of numbers in a matrix it is a matrix of one cell."""
    rows = _observed(m, rowvar).astype("float64")
    if y is not None:
        rows = np.concatenate([rows, _observed(y, rowvar).astype("float64")])
    distance = rows - np.mean(rows, axis=1, keepdims=True)
    left = ddof if ddof is not None else 0 if bias else 1
    found = (distance @ distance.T) / _never_negative(rows.shape[1] - left)
    return found[0, 0] if y is None and np.ndim(m) == 1 else found


def _observed(m: Any, rowvar: bool) -> Any:
    return m[None] if np.ndim(m) == 1 else m if rowvar else m.T


def _corrcoef(x: Any, y: Any = None, rowvar: bool = True) -> Any:
    found = _cov(x, y, rowvar)
    if not np.ndim(found):
        return found / found
    spread = np.sqrt(np.diagonal(found))
    return np.minimum(np.maximum(found / spread[:, None] / spread[None, :], -1.0), 1.0)


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """There are no norms by singular values."""
    x = x if is_floating(str(x.dtype)) else x * 1.0
    vectors = x.ndim == 1 if axis is None else isinstance(axis, int)
    if ord in (None, "fro") or (ord == 2 and vectors):
        return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))
    if not vectors:
        return _matrix_norm(x, ord, axis, keepdims)
    size = np.abs(x)
    if ord in (math.inf, -math.inf):
        found = (np.max if ord > 0 else np.min)(size, axis=axis, keepdims=keepdims)
        return np.maximum(found, 0.0)
    if ord == 0:
        return np.sum(x != 0, axis=axis, keepdims=keepdims) * 1.0
    if ord == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    return np.power(np.sum(np.power(size, ord), axis=axis, keepdims=keepdims), 1.0 / ord)


def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Over one axis or all."""
    if axis is None:
        found = _norm(np.ravel(x), ord)
        return found[(None,) * x.ndim] if keepdims else found
    return _norm(x, ord, one_axis(x, axis), keepdims)


def _norm_of_matrices(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """There are no norms by singular values."""
    return _norm(x, ord, (-2, -1), keepdims)


def _matrix_norm(x: Any, ord: Any, axis: Any, keepdims: bool) -> Any:
    # By singular values there is none.
    if ord not in (1, -1, math.inf, -math.inf) or keepdims:
        return NotImplemented
    rows, columns = (0, 1) if axis is None and x.ndim == 2 else axes_of(x.ndim, axis)
    summed, rest = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = np.sum(np.abs(x), axis=summed)
    return np.maximum((np.max if ord > 0 else np.min)(sums, axis=rest - (rest > summed)), 0.0)


def _trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: Any = -1) -> Any:
    k = one_axis(y, axis)
    before, after = _neighbours(y, k)
    if x is None:
        step = dx
    else:
        step = _diff(x, axis=k if np.ndim(x) == y.ndim else 0)
        if np.ndim(step) < y.ndim:
            step = step[tuple(slice(None) if j == k else None for j in range(y.ndim))]
    return np.sum(step * (before + after) / 2.0, axis=k)


def _neighbours(a: Any, axis: int) -> tuple[Any, Any]:
    ahead = (slice(None),) * axis
    return a[(*ahead, slice(None, -1))], a[(*ahead, slice(1, None))]


def _diff(a: Any, n: Any = 1, axis: Any = -1) -> Any:
    """The order is a number that is known."""
    k = one_axis(a, axis)
    if not isinstance(n, int) or n < 0:
        raise session_of("np.diff").fault(DslSyntaxError, f"np.diff of the order {n!r}", "give a whole number, as in 2")
    for _ in range(n):
        before, after = _neighbours(a, k)
        a = after != before if str(a.dtype) == "bool" else after - before
    return a


def _gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Steps are numbers; `edge_order` is 1."""
    if edge_order != 1:
        return NotImplemented
    f = f if is_floating(str(f.dtype)) else f.astype("float64")
    chosen = tuple(range(f.ndim)) if axis is None else axes_of(f.ndim, axis)
    steps = varargs * len(chosen) if len(varargs) == 1 else varargs or (1.0,) * len(chosen)
    if len(steps) != len(chosen) or any(np.ndim(step) for step in steps):
        return NotImplemented
    found = [_slope(f, k, step) for k, step in zip(chosen, steps, strict=True)]
    return found[0] if len(found) == 1 else tuple(found)


def _slope(f: Any, k: int, step: Any) -> Any:
    session = session_of("np.gradient")
    fact = f"np.gradient along axis {k}, which has fewer than 2 cells"
    session.builder.require(apply("ge", f.extents[k], integer(2)), fact, session.location())

    def part(start: Any, stop: Any) -> Any:
        return f[(*(slice(None),) * k, slice(start, stop))]

    inner = (part(2, None) - part(None, -2)) / (2.0 * step)
    first, last = (part(1, 2) - part(0, 1)) / step, (part(-1, None) - part(-2, -1)) / step
    return np.concatenate([first, inner, last], k)


REDUCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.var: _var,
    np.std: _std,
    np.ptp: _ptp,
    np.count_nonzero: _count_nonzero,
    np.average: _average,
    np.nansum: _without_nan(np.sum, 0.0),
    np.nanprod: _without_nan(np.prod, 1.0),
    np.nanmax: _extreme_without_nan(np.max, -math.inf),
    np.nanmin: _extreme_without_nan(np.min, math.inf),
    np.nanmean: _nanmean,
    np.nanvar: _nanvar,
    np.nanstd: lambda a, axis=None, **options: np.sqrt(_nanvar(a, axis, **options)),
    np.cov: _cov,
    np.corrcoef: _corrcoef,
    np.linalg.norm: _norm,
    np.linalg.vector_norm: _vector_norm,
    np.linalg.matrix_norm: _norm_of_matrices,
    np.trapezoid: _trapezoid,
    np.diff: _diff,
    np.ediff1d: lambda ary: _diff(np.ravel(ary)),
    np.gradient: _gradient,
}
