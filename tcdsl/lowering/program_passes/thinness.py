"""Which sets are thin: so few points beside their surroundings that their loops may cost more for each of them."""

from __future__ import annotations

import islpy as isl

from tcdsl.ir.build import apply, index, integer
from tcdsl.polyhedra.affine import condition_set
from tcdsl.polyhedra.spaces import dimension_names, twice

__all__ = ["is_thin"]

# A variable with at most so many values on a part, whatever the sizes, makes the part thin.
_WIDTH = 16


def is_thin(points: isl.Set) -> bool:
    """Whether each convex part of ``points`` has a variable of constant, small extent: rows and columns of a border.

    ``{ [i, j] : i = 0 }`` and ``{ [i, j] : N - 2 <= j < N }`` are thin, a triangle or every second row is not. A set
    without variables is thin, and so is an empty one.
    """
    return all(_is_thin(isl.Set.from_basic_set(part)) for part in points.get_basic_sets())


def _is_thin(part: isl.Set) -> bool:
    count = part.dim(isl.dim_type.set)
    if count == 0 or part.is_empty():
        return True
    return any(_is_short(part.project_out(isl.dim_type.set, k + 1, count - k - 1), k) for k in range(count))


def _is_short(points: isl.Set, position: int) -> bool:
    # Whether no two values of the variable, for the same sizes, are far apart.
    line = points.project_out(isl.dim_type.set, 0, position)
    (name,) = dimension_names(line)
    pairs, (other,) = twice(line)
    distance = apply("sub", index(other), index(name))
    return bool(pairs.intersect(condition_set(apply("ge", distance, integer(_WIDTH)), pairs)).is_empty())
