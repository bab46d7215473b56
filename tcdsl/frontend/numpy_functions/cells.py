"""Running sums, diagonals, triangles and chosen cells: each is a statement in index notation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.arrays.row_alignment import axis_variable
from tcdsl.frontend.numpy_functions.loops import looped
from tcdsl.frontend.numpy_functions.recording import Cell, computed, filled, replaced, tensor_of
from tcdsl.frontend.numpy_functions.shapes import axes_of, one_axis
from tcdsl.frontend.staging.declarations import given_extent
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray
from tcdsl.ir.build import apply, cast, integer
from tcdsl.ir.dtypes import is_integer
from tcdsl.ir.expressions import Boundary, Expr, IndexValue

__all__ = ["CELLS", "accumulated"]


def accumulated(accumulate: str, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """``np.cumsum``: ``y[i, j] += x[i, k], k <= j``."""
    a = a if dtype is None else a.astype(dtype)
    if axis is None:
        a, axis = (a if a.ndim == 1 else np.ravel(a)), 0
    x, k = tensor_of(session_of("a running sum"), a, "x"), one_axis(a, axis)

    def cell(*variables: Expr) -> Cell:
        *places, term = variables
        return Cell(x.cell(replaced(places, k, term)), None, (apply("le", term, places[k]),))

    found = computed("running", x.extents, x.rank + 1, cell, accumulate=accumulate)
    return found if dtype is None else found.astype(dtype)  # the sums of small integers are 64-bit


def _triangle(test: str) -> Callable[..., Any]:
    # Cells on the one side of a diagonal; the others are zero.
    def function(m: Any, k: Any = 0) -> Any:
        rows, columns = filled(np.arange, m.shape[-2])[:, None], filled(np.arange, m.shape[-1])[None, :]
        beyond = columns - rows
        return np.where(beyond >= k if test == "ge" else beyond <= k, m, np.zeros_like(m))

    return function


def _diagonal(a: Any, offset: Any = 0, axis1: Any = 0, axis2: Any = 1) -> Any:
    session = session_of("np.diagonal")
    x, (first, second) = tensor_of(session, a, "x"), axes_of(a.ndim, (axis1, axis2))
    if not isinstance(offset, int):
        raise session.fault(DslSyntaxError, f"the diagonal {offset!r}", "give a whole number that is known")
    down, right = max(-offset, 0), max(offset, 0)
    rows, columns = a.shape[first] - down, a.shape[second] - right
    length = rows if _are_equal(rows, columns) else np.minimum(rows, columns)
    length = np.maximum(length, 0) if offset else length  # beyond the corners there is no cell
    others = [k for k in range(a.ndim) if k not in (first, second)]
    extents = [*(x.extents[k] for k in others), given_extent(length, session.location())]

    *outer, along = (IndexValue(axis_variable(k)) for k in reversed(range(len(extents))))
    places: dict[int, Expr] = dict(zip(others, outer, strict=True))
    places[first], places[second] = apply("add", along, integer(down)), apply("add", along, integer(right))
    return PendingArray(session.builder, x.cell([places[k] for k in range(x.rank)], session.location()), extents)


def _are_equal(one: Any, other: Any) -> bool:
    if isinstance(one, int) or isinstance(other, int):
        return isinstance(one, int) and isinstance(other, int) and one == other
    return bool(one.expr == other.expr)


def _diag(v: Any, k: Any = 0) -> Any:
    if v.ndim == 2:
        return _diagonal(v, k)
    session = session_of("np.diag")
    if v.ndim != 1:
        raise session.fault(ShapeError, f"np.diag of an array of rank {v.ndim}", "it takes a vector or a matrix")
    x = tensor_of(session, v, "x")
    extent = given_extent(v.shape[0] + abs(k), session.location())
    down, right = integer(max(-k, 0)), integer(max(k, 0))

    def cell(along: Expr) -> Cell:
        return Cell(x.cell([along]), [apply("add", along, down), apply("add", along, right)])

    return computed("diagonal", [extent, extent], 1, cell, accumulate="add", dtype=str(x.dtype))


def _take(a: Any, indices: Any, axis: Any = None) -> Any:
    if axis is None:
        a, axis = (a if a.ndim == 1 else np.ravel(a)), 0
    k = one_axis(a, axis)
    # Of a list those below 0 count from the end.
    indices = list(indices) if isinstance(indices, tuple) else indices
    return tensor_of(session_of("np.take"), a, "x")[(*(slice(None),) * k, indices)]


def _take_along_axis(arr: Any, indices: Any, axis: Any = -1) -> Any:
    session = session_of("np.take_along_axis")
    x, places, k = tensor_of(session, arr, "x"), tensor_of(session, indices, "places"), one_axis(arr, axis)
    if not is_integer(places.element_type):
        fact = f"positions of type {places.element_type}"
        raise session.fault(DtypeError, fact, "positions are integers")

    def cell(*variables: Expr) -> Cell:
        place = cast(places.cell(variables).expr, "int64")
        boundaries = [Boundary.CHECK if j == k else Boundary.SKIP for j in range(x.rank)]
        return Cell(x.cell(replaced(variables, k, place), session.location(), boundaries))

    return computed("taken", places.extents, places.rank, cell)


def _cumulative(accumulate: str) -> Callable[..., Any]:
    def function(x: Any, /, *, axis: Any = None, dtype: Any = None, include_initial: bool = False) -> Any:
        found = accumulated(accumulate, x, 0 if axis is None and x.ndim == 1 else one_axis(x, axis), dtype)
        if not include_initial:
            return found
        k = one_axis(x, 0 if axis is None else axis)
        shape = tuple(1 if j == k else x.shape[j] for j in range(x.ndim))
        first = filled(np.full, shape, 0 if accumulate == "add" else 1, dtype=str(found.dtype))
        return np.concatenate([first if isinstance(first, SymbolicArray) else np.asarray(first), found], k)

    return function


def _polyval(p: Any, x: Any) -> Any:
    p, x = (each if isinstance(each, SymbolicArray) else np.asarray(each) for each in (p, x))
    dtype = np.result_type(str(p.dtype), str(x.dtype))
    dtype = np.dtype(np.int64) if dtype.kind in "bi" else dtype
    return looped(_horner, p.astype(dtype), x.astype(dtype), filled(np.full, x.shape, 0, dtype=str(dtype)))


def _horner(p: Any, x: Any, total: Any) -> Any:
    for k in range(p.shape[0]):
        total = total * x + p[k]
    return total


def _vander(x: Any, N: Any = None, increasing: bool = False) -> Any:
    count = x.shape[0] if N is None else N
    powers = filled(np.arange, count)
    return np.power(x[:, None], powers if increasing else count - 1 - powers)


CELLS: Mapping[Any, Callable[..., Any]] = {
    np.cumsum: partial(accumulated, "add"),
    np.cumprod: partial(accumulated, "multiply"),
    np.cumulative_sum: _cumulative("add"),
    np.cumulative_prod: _cumulative("multiply"),
    np.polyval: _polyval,
    np.vander: _vander,
    np.triu: _triangle("ge"),
    np.tril: _triangle("le"),
    np.diagonal: _diagonal,
    np.diag: _diag,
    np.take: _take,
    np.take_along_axis: _take_along_axis,
}
