"""Sets of points of one statement, divided by conditions: sets of isl where conditions are affine, else masks on data.

Both kinds answer the same questions, so that `tcdsl.autodiff.cost.expression_cost` counts without knowing which it has.

`cardinality` and `coordinates` are those of the points of isl sets for given sizes. isl itself has no parametric
counting in its Python interface, and enumerates a million points in seconds. Its sets become systems of linear
constraints (`tcdsl.autodiff.cost.integer_systems`), a disjoint one per convex piece, with a variable more for each
rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Protocol, Self

import islpy as isl
import numpy as np

from tcdsl.autodiff.cost.integer_systems import IntegerRow, System
from tcdsl.ir.build import apply, integer
from tcdsl.ir.domain import text_of
from tcdsl.ir.expressions import Apply, Constant, Expr, Local, SizeValue, transform
from tcdsl.ir.interpreter.point_values import LocalDefinitions, PointValues
from tcdsl.polyhedra.affine import NotAffine, condition_set

__all__ = ["AffinePoints", "ListedPoints", "PointSet", "at_values", "cardinality", "coordinates"]


class PointSet(Protocol):
    """Some of the points of a statement, as many as ``count``."""

    @property
    def count(self) -> int:
        """How many points there are."""

    def where(self, condition: Expr, local: LocalDefinitions) -> Self:
        """The points at which a bool expression holds. `NotAffine` if this kind of set cannot tell."""

    def minus(self, other: Self) -> Self:
        """The points that are not in ``other``."""

    def union(self, other: Self) -> Self:
        """The points of either set."""


class AffinePoints:
    """The points of an isl set without parameters, for given ``sizes``."""

    def __init__(self, points: isl.Set, sizes: Mapping[str, int]) -> None:
        self.points = points
        self.sizes = sizes

    @cached_property
    def count(self) -> int:
        """How many points there are."""
        return cardinality(self.points)

    def where(self, condition: Expr, local: LocalDefinitions) -> AffinePoints:
        """The points at which an affine condition holds; `NotAffine` for any other."""
        holds = condition_set(at_values(_written_out(condition, local), self.sizes), self.points)
        return AffinePoints(self.points.intersect(holds.reset_tuple_id()), self.sizes)

    def minus(self, other: AffinePoints) -> AffinePoints:
        """The points that are not in ``other``."""
        return AffinePoints(self.points.subtract(other.points), self.sizes)

    def union(self, other: AffinePoints) -> AffinePoints:
        """The points of either set."""
        return self if other is self else AffinePoints(self.points.union(other.points).coalesce(), self.sizes)


class ListedPoints:
    """Those of the points of ``values`` that ``mask`` marks."""

    def __init__(self, values: PointValues, mask: np.ndarray) -> None:
        self.values = values
        self.mask = mask

    @cached_property
    def numbers(self) -> np.ndarray:
        """The numbers of the points."""
        return np.flatnonzero(self.mask)

    @property
    def count(self) -> int:
        """How many points there are."""
        return len(self.numbers)

    def where(self, condition: Expr, local: LocalDefinitions) -> ListedPoints:
        """The points at which a condition holds."""
        mask = np.zeros_like(self.mask)
        mask[self.numbers] = self.values.of(condition, self.numbers, local)
        return ListedPoints(self.values, mask)

    def minus(self, other: ListedPoints) -> ListedPoints:
        """The points that are not in ``other``."""
        return ListedPoints(self.values, self.mask & ~other.mask)

    def union(self, other: ListedPoints) -> ListedPoints:
        """The points of either set."""
        return self if other is self else ListedPoints(self.values, self.mask | other.mask)


def at_values(expr: Expr, sizes: Mapping[str, int]) -> Expr:
    """``expr`` with sizes replaced by their values, so that products with them become affine."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, SizeValue):
            return integer(sizes[node.name])
        if isinstance(node, Apply) and all(isinstance(part, Constant) for part in node.arguments):
            return apply(node.primitive, *node.arguments)
        return node

    return transform(expr, rule)


def _written_out(condition: Expr, local: LocalDefinitions) -> Expr:
    # Local definitions of numbers that isl can speak of; floats are data.
    def rule(node: Expr) -> Expr:
        if not isinstance(node, Local):
            return node
        if node.dtype.startswith("float"):
            raise NotAffine(node)
        found = local[node.name]
        return _written_out(found.value, found.around)

    return transform(condition, rule) if local else condition


def cardinality(points: isl.Set) -> int:
    """``cardinality(isl.Set("{ [i, j] : 0 <= i <= 9 and 0 <= j <= i }"))`` is 55. ``ValueError`` for infinite sets."""
    return _cardinality(text_of(points))


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


def _rows(matrix: isl.Mat) -> list[IntegerRow]:
    return [
        tuple(matrix.get_element_val(row, column).to_python() for column in range(matrix.cols()))
        for row in range(matrix.rows())
    ]
