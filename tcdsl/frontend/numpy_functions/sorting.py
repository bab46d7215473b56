"""Order and places: sorting by merging, search by halving, and what follows from both; loops of the language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError
from tcdsl.frontend.numpy_functions.loops import looped
from tcdsl.frontend.numpy_functions.recording import Cell, computed, filled, tensor_of
from tcdsl.frontend.numpy_functions.shapes import one_axis
from tcdsl.frontend.staging.declarations import given_extent
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import cast
from tcdsl.ir.dtypes import is_floating, is_integer
from tcdsl.ir.expressions import Expr

__all__ = ["SORTING"]


# -- loops of the language -------------------------------------------------------------------------------------


def _merged(keys: Any, order: Any) -> Any:
    # Runs of twice as many cells in each pass; equal cells stay in the order in which they are, and NaN goes last.
    rows, n = keys.shape
    width = 1
    while width < n:
        merged, places = keys * 1, order * 1
        for row in range(rows):
            left, right = 0, 0
            for t in range(n):
                start = t // (2 * width) * (2 * width)
                middle, stop = min(start + width, n), min(start + 2 * width, n)
                left = start if t == start else left
                right = middle if t == start else right
                one, other = keys[row, min(left, n - 1)], keys[row, min(right, n - 1)]
                later = other < one or (one != one and other == other)  # noqa: PLR0124
                first = left < middle and (right >= stop or not later)
                merged[row, t] = one if first else other
                places[row, t] = order[row, min(left, n - 1)] if first else order[row, min(right, n - 1)]
                left = left + 1 if first else left
                right = right if first else right + 1
        keys, order = merged, places
        width = 2 * width
    return order


def _halved(cells: Any, wanted: Any, found: Any, right: Any) -> Any:
    # How many of the sorted cells go before each wanted one, NaN last: of `left` cells half are known to, or not to.
    left = cells.shape[0]
    while left > 0:
        half = (left + 1) // 2
        cell = cells[found + (half - 1)]
        before = (wanted < cell) | ((cell != cell) & (wanted == wanted))  # noqa: PLR0124
        after = (cell < wanted) | ((wanted != wanted) & (cell == cell))  # noqa: PLR0124
        found = np.where(np.logical_not(before) if right else after, found + half, found)
        left = left - half
    return found


# -- rows ------------------------------------------------------------------------------------------------------


def _rows_of(a: Any, axis: Any) -> tuple[Any, int]:
    # The cells along an axis as rows.
    k = one_axis(a, axis)
    moved = np.moveaxis(a, k, -1) if k != a.ndim - 1 else a
    return moved.astype("int8") if str(a.dtype) == "bool" else moved, k


def _argsort(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    """Equal cells stay in the order in which they are."""
    if axis is None:
        a, axis = np.ravel(a), 0
    moved, k = _rows_of(a, axis)
    rows = np.reshape(moved, (-1, moved.shape[-1])) if moved.ndim != 2 else moved
    places = filled(np.full, rows.shape, filled(np.arange, rows.shape[1]), dtype="int64")
    found = np.reshape(looped(_merged, rows, places), moved.shape)
    return np.moveaxis(found, -1, k) if k != a.ndim - 1 else found


def _sort(a: Any, axis: Any = -1, kind: Any = None, *, stable: Any = None) -> Any:
    if axis is None:
        a, axis = np.ravel(a), 0
    return np.take_along_axis(a, _argsort(a, axis), one_axis(a, axis))


def _searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    session = session_of("np.searchsorted")
    if side not in ("left", "right"):
        raise session.fault(DslSyntaxError, f"np.searchsorted from the side {side!r}", "use left or right")
    cells = tensor_of(session, a if sorter is None else np.take(a, sorter), "cells")
    wanted = tensor_of(session, v, "wanted")
    flat = np.reshape(wanted, (-1,)) if wanted.rank != 1 else wanted
    begun = filled(np.zeros, flat.shape[0], "int64")
    found = looped(_halved, cells, flat, begun, side == "right")
    return np.reshape(found, wanted.shape) if wanted.rank != 1 else found


def _digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """Of bins that increase."""
    return _searchsorted(bins, x, "left" if right else "right")


def _interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None) -> Any:
    session = session_of("np.interp")
    x, xp, fp = (tensor_of(session, each, "x").astype("float64") for each in (x, xp, fp))
    last = xp.shape[0] - 1
    place = np.minimum(np.maximum(_searchsorted(xp, x, "right") - 1, 0), np.maximum(last - 1, 0))
    after = np.minimum(place + 1, last)
    step = xp[after] - xp[place]
    slope = (fp[after] - fp[place]) / np.where(step == 0, 1.0, step)
    found = np.where(x == xp[-1], fp[-1], slope * (x - xp[place]) + fp[place])
    found = np.where(x < xp[0], fp[0] if left is None else left, found)
    return np.where(x > xp[-1], fp[-1] if right is None else right, found)


def _median(a: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Over one axis or all, of at least one cell."""
    rows, k = (np.ravel(a), 0) if axis is None else (a, one_axis(a, axis))
    ordered, n = _sort(rows, k), rows.shape[k]
    ahead = (slice(None),) * k
    low, high, last = (ordered[(*ahead, place)] for place in ((n - 1) // 2, n // 2, n - 1))
    found = (low * 1.0 + high) / 2.0
    return _kept(np.where(last == last, found, last), a, axis, keepdims)  # noqa: PLR0124


def _kept(found: Any, a: Any, axis: Any, keepdims: bool) -> Any:
    if not keepdims:
        return found
    return found[(None,) * a.ndim] if axis is None else np.expand_dims(found, one_axis(a, axis))


def _quantile(a: Any, q: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Over one axis or all, by the method `linear`."""
    if np.ndim(q):
        a = a.astype("float64")
        return np.stack([_quantile(a, each, axis, keepdims=keepdims) for each in q])
    rows, k = (np.ravel(a), 0) if axis is None else (a, one_axis(a, axis))
    rows = rows if is_floating(str(rows.dtype)) else rows * 1.0
    ordered = tensor_of(session_of("np.quantile"), np.moveaxis(_sort(rows, k), k, -1), "ordered")
    n = ordered.shape[-1]
    place = q * (n - 1)
    low = np.floor(place * np.ones(1)).astype("int64")
    part = (place - low).astype(rows.dtype)
    before, after = (ordered[..., each] for each in (low, np.minimum(low + 1, n - 1)))
    apart = after - before
    found = np.where(part >= 0.5, after - apart * (1.0 - part), before + apart * part)[..., 0]
    last = ordered[..., n - 1]
    return _kept(np.where(last == last, found, last), a, axis, keepdims)  # noqa: PLR0124


def _percentile(a: Any, q: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """Over one axis or all, by the method `linear`."""
    shares = [each / 100 for each in q] if np.ndim(q) else q / 100
    return _quantile(a, shares, axis, keepdims=keepdims)


def _bincount(x: Any, weights: Any = None, minlength: Any = 0) -> Any:
    """With as many cells as `minlength` says; larger numbers are an error."""
    session = session_of("np.bincount")
    if isinstance(minlength, int) and minlength == 0:
        fact = "np.bincount without `minlength`, so that data says how many cells there are"
        raise session.fault(DslSyntaxError, fact, "give it: `np.bincount(x, minlength=n)`")
    given = None if weights is None else tensor_of(session, weights, "weights").astype("float64")
    return _counted(tensor_of(session, x, "x"), given, minlength)


def _counted(places: SymbolicTensor, weights: Any, length: Any) -> SymbolicTensor:
    session = session_of("counting")
    if not is_integer(places.element_type):
        raise session.fault(DtypeError, f"positions of type {places.element_type}", "positions are integers")
    given = None if weights is None else tensor_of(session, weights, "weights")

    def cell(along: Expr) -> Cell:
        place = cast(places.cell([along]).expr, "int64")
        return Cell(Value.of(1) if given is None else given.cell([along]), [place])

    return computed("counts", [given_extent(length, session.location())], 1, cell, accumulate="add")


def _histogram(a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None) -> Any:
    """Bins are a number or edges that increase; there is at least one cell, or a range."""
    cells = np.ravel(a)
    if isinstance(bins, int | np.integer) or not np.ndim(bins):
        first, last = (np.min(cells), np.max(cells)) if range is None else (bound * np.ones(1)[0] for bound in range)
        off = np.where(first == last, 0.5, 0.0)
        dtype = str(a.dtype) if is_floating(str(a.dtype)) else "float64"
        edges = filled(np.linspace, first - off, last + off, bins + 1).astype(dtype)
        count = bins
    else:
        edges, count = bins, bins.shape[0] - 1
    places = np.where(cells == edges[-1], count - 1, _searchsorted(edges, cells, "right") - 1)
    there = (cells >= edges[0]) & (cells <= edges[-1])
    given = np.where(there, 1 if weights is None else np.ravel(weights), 0)
    session = session_of("np.histogram")
    places = tensor_of(session, np.minimum(np.maximum(places, 0), count - 1), "places")
    found = _counted(places, given, count)
    if density:
        found = found / np.diff(edges) / np.sum(found)
    return found, edges


SORTING: Mapping[Any, Callable[..., Any]] = {
    np.sort: _sort,
    np.argsort: _argsort,
    np.searchsorted: _searchsorted,
    np.digitize: _digitize,
    np.interp: _interp,
    np.median: _median,
    np.quantile: _quantile,
    np.percentile: _percentile,
    np.bincount: _bincount,
    np.histogram: _histogram,
}
