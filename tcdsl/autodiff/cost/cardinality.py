"""The points of isl sets for given sizes: how many there are, and their coordinates.

isl itself has no parametric counting in its Python interface, and enumerates a million points in seconds. Its sets
become systems of linear constraints (`tcdsl.autodiff.cost.integer_systems`), a disjoint one per convex piece, with a
variable more for each rounding.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import islpy as isl
import numpy as np

from tcdsl.autodiff.cost.integer_systems import Row, System

__all__ = ["cardinality", "coordinates"]


def cardinality(points: isl.Set) -> int:
    """``cardinality(isl.Set("{ [i, j] : 0 <= i <= 9 and 0 <= j <= i }"))`` is 55. ``ValueError`` for infinite sets."""
    return _cardinality(str(points))


@lru_cache(maxsize=4096)
def _cardinality(text: str) -> int:
    return sum(system.count() for system in _systems(isl.Set(text)))


def coordinates(points: isl.Set, block: int) -> Iterator[np.ndarray]:
    """The points as int64 arrays, a point per row, about ``block`` at a time, in no promised order."""
    for system in _systems(points):
        yield from system.points(block)


def _systems(points: isl.Set) -> Iterator[System]:
    points = points.coalesce()
    if points.n_basic_set() > 1:
        points = points.make_disjoint()
    points = points.compute_divs()
    rank = points.dim(isl.dim_type.set)
    for piece in points.get_basic_sets():
        # Roundings are unique, so that as further dimensions they leave the number of points as it is.
        lifted = piece.lift() if piece.dim(isl.dim_type.div) else piece
        variables = lifted.dim(isl.dim_type.set)
        order = (isl.dim_type.param, isl.dim_type.set, isl.dim_type.div, isl.dim_type.cst)
        yield System.of(
            variables, _rows(lifted.equalities_matrix(*order)), _rows(lifted.inequalities_matrix(*order)), rank
        )


def _rows(matrix: isl.Mat) -> list[Row]:
    return [
        tuple(matrix.get_element_val(row, column).to_python() for column in range(matrix.cols()))
        for row in range(matrix.rows())
    ]
