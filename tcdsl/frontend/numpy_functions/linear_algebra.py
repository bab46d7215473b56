"""Linear systems, determinants and factors: elimination and reflections, as loops of the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.numpy_functions.loops import looped
from tcdsl.frontend.numpy_functions.recording import filled
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import session_of
from tcdsl.indices import b, c, i, j

__all__ = ["LINEAR_ALGEBRA"]


# -- loops of the language, on matrices `b` of a batch ---------------------------------------------------------


def _lower_factor(a: Any) -> Any:
    for k in range(a.shape[1]):
        a[b, k, k] = np.sqrt(a[b, k, k])
        a[b, i, k] /= a[b, k, k], i > k
        a[b, i, j] -= a[b, i, k] * a[b, j, k], i > k, k < j, j <= i
    return np.tril(a)


def _eliminated(a: Any, sign: Any) -> Any:
    # With the largest cell of each column as its pivot; what stands below the diagonal says by what rows were changed.
    n = a.shape[1]
    for k in range(n):
        pivot = np.argmax(np.where(np.arange(n) >= k, np.abs(a[:, :, k]), -1.0), axis=1)
        sign = np.where(pivot == k, sign, -sign)
        top = a[:, k] * 0
        top[b, j] = a[b, pivot[b], j]
        a[b, pivot[b], j] = a[b, k, j]
        a[b, k, j] = top[b, j]
        a[b, i, k] /= a[b, k, k], i > k, a[b, k, k] != 0  # else there are zeros below, too
        a[b, i, j] -= a[b, i, k] * a[b, k, j], i > k, j > k
    return a, sign


def _substituted(a: Any, x: Any) -> Any:
    n = a.shape[1]
    for t in range(n):
        k = n - 1 - t
        x[b, k, c] = (a[b, k, n + c] - sum(a[b, k, j] * x[b, j, c] for j in range(k + 1, n))) / a[b, k, k]
    return x


def _reflected(a: Any, q: Any, count: Any) -> Any:
    # By Householder's reflections, with the signs of LAPACK.
    m = a.shape[1]
    for k in range(count):
        first = a[:, k, k]
        below = np.sum(np.where(np.arange(m) > k, a[:, :, k] * a[:, :, k], 0.0), axis=1)
        length = np.sqrt(np.where(below > 0, first * first + below, 1.0))
        turned = np.where(below > 0, np.where(first < 0, length, -length), first)
        scale = np.where(below > 0, (turned - first) / np.where(below > 0, turned, 1.0), 0.0)
        off = np.where(below > 0, first - turned, 1.0)
        normal = np.where(np.arange(m) > k, a[:, :, k] / off[:, None], np.where(np.arange(m) == k, 1.0, 0.0))
        a = a - normal[:, :, None] * (scale[:, None] * np.sum(normal[:, :, None] * a, axis=1))[:, None]
        q = q - (scale[:, None] * np.sum(q * normal[:, None], axis=2))[:, :, None] * normal[:, None]
    return a, q


# -- rows ------------------------------------------------------------------------------------------------------


def _matrices(name: str, a: Any, square: bool = True) -> tuple[Any, tuple[Any, ...]]:
    # As a batch of matrices of floating numbers, and the shape of the batch.
    session = session_of(f"np.linalg.{name}")
    if a.ndim < 2:
        fact = f"np.linalg.{name} of an array of rank {a.ndim}"
        raise session.fault(ShapeError, fact, "it takes a matrix, or an array whose last two axes are matrices")
    a = a if str(a.dtype).startswith("float") else a * 1.0
    if square:
        rows, columns = a.extents[-2:]
        fact = f"np.linalg.{name} of a matrix of {valued(rows)} rows and {valued(columns)} columns"
        session.builder.require_equal(rows, columns, fact, session.location())
    return (a[None] if a.ndim == 2 else np.reshape(a, (-1, *a.shape[-2:]))), a.shape[:-2]


def _of_batch(found: Any, shape: tuple[Any, ...]) -> Any:
    return np.reshape(found, (*shape, *found.shape[1:])) if len(shape) != 1 else found


def _cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """NaN where a matrix is not positive definite, which NumPy has an error for."""
    matrices, shape = _matrices("cholesky", a)
    found = _of_batch(looped(_lower_factor, matrices), shape)
    return np.swapaxes(found, -1, -2) if upper else found


def _det(a: Any) -> Any:
    sign, sizes = _diagonal_of(a, "det")
    return sign * np.prod(sizes, axis=-1)


def _diagonal_of(a: Any, name: str) -> tuple[Any, Any]:
    # Of what elimination leaves, and the sign that its exchanges make.
    matrices, shape = _matrices(name, a)
    made, sign = looped(_eliminated, matrices, _signs(matrices))
    return _of_batch(sign, shape), _of_batch(np.diagonal(made, axis1=1, axis2=2), shape)


def _signs(matrices: Any) -> Any:
    return filled(np.full, (matrices.shape[0],), 1.0, dtype=str(matrices.dtype))


def _slogdet(a: Any) -> Any:
    sign, cells = _diagonal_of(a, "slogdet")
    return sign * np.prod(np.sign(cells), axis=-1), np.sum(np.log(np.abs(cells)), axis=-1)


def _solve(a: Any, b: Any) -> Any:
    """Infinity or NaN where a matrix is singular, which NumPy has an error for."""
    return _solved("solve", a, b)


def _solved(name: str, a: Any, b: Any) -> Any:
    vector = np.ndim(b) == 1
    matrices, shape = _matrices(name, a)
    right = b[:, None] if vector else b
    right = right if str(right.dtype).startswith("float") else right * 1.0
    if right.ndim > 2 and right.ndim != a.ndim:
        session = session_of("np.linalg.solve")
        fact = f"np.linalg.solve of arrays of rank {a.ndim} and {right.ndim}"
        raise session.fault(ShapeError, fact, "give one right-hand side for all matrices, or as many as matrices")
    if right.ndim == 2 and shape:
        right = filled(np.full, (*shape, *right.shape), right, dtype=str(right.dtype))
    columns, _ = _matrices(name, right, square=False)
    made, _ = looped(_eliminated, np.concatenate([matrices, columns], 2), _signs(matrices))
    found = _of_batch(looped(_substituted, made, np.zeros_like(columns)), shape)
    return found[..., 0] if vector else found


def _inv(a: Any) -> Any:
    """Infinity or NaN where a matrix is singular, which NumPy has an error for."""
    return _solved("inv", a, filled(np.eye, a.shape[-1], dtype=str(a.dtype)))


def _qr(a: Any, mode: str = "reduced") -> Any:
    """In the modes `reduced`, `complete` and `r`."""
    session = session_of("np.linalg.qr")
    if mode not in ("reduced", "complete", "r"):
        raise session.fault(DslSyntaxError, f"np.linalg.qr in the mode {mode!r}", "use reduced, complete or r")
    matrices, shape = _matrices("qr", a, square=False)
    batch, rows, columns = matrices.shape
    count = rows if rows is columns else np.minimum(rows, columns)
    identity = filled(np.eye, rows, dtype=str(matrices.dtype))
    begun = filled(np.full, (batch, rows, rows), identity, dtype=str(matrices.dtype))
    made, turned = looped(_reflected, matrices, begun, count)
    upper = _of_batch(np.triu(made if mode == "complete" else made[:, :count]), shape)
    return upper if mode == "r" else (_of_batch(turned if mode == "complete" else turned[:, :, :count], shape), upper)


LINEAR_ALGEBRA: Mapping[Any, Callable[..., Any]] = {
    np.linalg.cholesky: _cholesky,
    np.linalg.det: _det,
    np.linalg.slogdet: _slogdet,
    np.linalg.solve: _solve,
    np.linalg.inv: _inv,
    np.linalg.qr: _qr,
}
