"""Domains: sets of integer points, parametric in sizes, kept by the Integer Set Library (isl).

isl answers every question about ranges, emptiness, images and bounds; nothing here does Presburger arithmetic. A
`Domain` itself is text, so programs hash, compare, print, pickle and load without isl, which takes 100 ms to import.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.ir.nodes import Hashed, node_class
from tcdsl.recent import Recent

if TYPE_CHECKING:
    import islpy as isl

__all__ = ["Domain", "text_of"]


# The sets behind texts: isl reads one in the time in which it prints fifty.
_SETS: Recent[str, isl.Set] = Recent(4096)


def text_of(thing: isl.Set | isl.Space) -> str:
    """The notation of isl, complete also where isl has no operations left (`tcdsl.polyhedra.limits`)."""
    # isl frees a printer that it stops, which islpy reads once more. Printing takes no long time.
    context = thing.get_ctx()
    most = context.get_max_operations()
    context.set_max_operations(0)
    try:
        return str(thing)
    finally:
        context.set_max_operations(most)


def _set_of(text: str) -> isl.Set:
    found = _SETS.get(text)
    if found is None:
        import islpy as isl

        found = _SETS[text] = isl.Set(text)
    return found


@node_class
@dataclass(frozen=True, slots=True)
class Domain(Hashed):
    """The points of a statement's index variables: ``Domain(("i", "j"), "[N] -> { [i, j] : 0 <= i < N and j = i }")``.

    ``variables`` are in row-major order. ``text`` is isl's notation; build domains with `from_set`, which makes the
    text canonical, so that equal sets from equal steps compare equal. Names of variables and sizes are identifiers.
    """

    variables: tuple[str, ...]
    text: str

    @staticmethod
    def from_set(points: isl.Set) -> Domain:
        """The domain of an isl set whose dimensions are named; coalesced, unused parameters dropped, sizes sorted."""
        import islpy as isl

        points = points.coalesce().remove_redundancies()
        variables = tuple([str(points.get_dim_name(isl.dim_type.set, k)) for k in range(points.dim(isl.dim_type.set))])
        for k in reversed(range(points.dim(isl.dim_type.param))):
            if not points.involves_dims(isl.dim_type.param, k, 1):
                points = points.project_out(isl.dim_type.param, k, 1)
        used = [str(points.get_dim_name(isl.dim_type.param, k)) for k in range(points.dim(isl.dim_type.param))]
        if used != sorted(used):
            # align_params appends what the model space lacks and keeps the model's order first.
            space = isl.Space.create_from_names(isl.DEFAULT_CONTEXT, set=list(variables), params=sorted(used))
            points = points.align_params(space)
        points = points.reset_tuple_id()
        text = text_of(points)
        if _SETS.get(text) is None:
            _SETS[text] = points
        return Domain(variables, text)

    @property
    def set(self) -> isl.Set:
        """The domain as an isl set."""
        return _set_of(self.text)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the sizes that the domain depends on."""
        import islpy as isl

        points = self.set
        return tuple(str(points.get_dim_name(isl.dim_type.param, k)) for k in range(points.dim(isl.dim_type.param)))

    def is_empty(self) -> bool:
        """Whether there is no point, whatever the sizes."""
        return bool(self.set.is_empty())

    def points(self, sizes: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
        """The points for given sizes, in row-major order."""
        return map(tuple, self.cells(sizes).tolist())

    def cells(self, sizes: Mapping[str, int]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """`points` as an array that is not to be changed, a row for each."""
        return _points(self.text, tuple([sizes[name] for name in self.parameters]))


@lru_cache(maxsize=64)
def _points(text: str, sizes: tuple[int, ...]) -> np.ndarray[Any, np.dtype[np.int64]]:
    import islpy as isl

    points = _set_of(text)
    for k, size in enumerate(sizes):
        points = points.fix_val(isl.dim_type.param, k, isl.Val(size))
    axes = range(points.dim(isl.dim_type.set))
    if not axes or points.is_empty():
        return np.zeros((0 if points.is_empty() else 1, len(axes)), np.int64)
    if points.is_box() and points.is_bounded():
        # As most sets are; isl names points one by one.
        ends = [(points.dim_min_val(k).to_python(), points.dim_max_val(k).to_python()) for k in axes]
        steps = np.indices([high + 1 - low for low, high in ends], np.int64)
        return steps.reshape(len(axes), steps[:1].size).T + np.array([low for low, _ in ends], np.int64)
    parts = points.project_out(isl.dim_type.param, 0, len(sizes)).make_disjoint().get_basic_sets()
    scanned = [cells for part in parts if (cells := _scanned(part)) is not None]
    if len(scanned) < len(parts):
        found: list[isl.Point] = []
        points.foreach_point(found.append)
        rows = [[p.get_coordinate_val(isl.dim_type.set, k).to_python() for k in axes] for p in found]
        each = np.array(rows, np.int64).reshape(len(rows), len(axes))
    elif len(scanned) == 1:
        return scanned[0]
    else:
        each = np.concatenate(scanned)
    return each[np.lexsort(each.T[::-1])]


def _scanned(points: isl.BasicSet) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """The points in row-major order, axis by axis: between the ends that the earlier coordinates give.

    Nothing where an axis leaves numbers out, or has an end that is not bounded or beyond 64 bits: isl, which names
    points one by one, then takes a hundred times as long.
    """
    import islpy as isl

    count = points.dim(isl.dim_type.set)
    found = np.zeros((1, 0), np.int64)
    for axis in range(count):
        part = points.project_out(isl.dim_type.set, axis + 1, count - axis - 1)
        if part.dim(isl.dim_type.div):
            return None
        lows, highs = [], []
        largest = [int(np.abs(column).max(initial=0)) for column in found.T]
        for constraint in part.get_constraints():
            *before, factor = (constraint.get_coefficient_val(isl.dim_type.set, k).to_python() for k in range(axis + 1))
            number = constraint.get_constant_val().to_python()
            if abs(number) + sum(abs(a) * b for a, b in zip(before, largest, strict=True)) >= 2**62:
                return None
            rest = found @ np.array(before, np.int64) + number
            if factor > 0 or (factor and constraint.is_equality()):
                lows.append(-(rest // factor) if factor > 0 else -(-rest // -factor))
            if factor < 0 or (factor and constraint.is_equality()):
                highs.append(rest // -factor if factor < 0 else -rest // factor)
        if not lows or not highs:
            return None
        low, high = np.max(lows, 0), np.min(highs, 0)
        lengths = np.maximum(high + 1 - low, 0)
        places = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found = np.column_stack([np.repeat(found, lengths, 0), np.repeat(low, lengths) + places])
    return found
