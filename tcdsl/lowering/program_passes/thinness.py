"""Which sets are thin: so few points beside their surroundings that their loops may cost more for each of them."""

from __future__ import annotations

import islpy as isl

from tcdsl.polyhedra.limits import new_question

__all__ = ["is_thin"]

# A variable with at most so many values on a part, whatever the sizes, makes the part thin.
_WIDTH = 16


def is_thin(points: isl.Set) -> bool:
    """Whether each convex part of ``points`` has a variable of constant, small extent: rows and columns of a border.

    ``{ [i, j] : i = 0 }`` and ``{ [i, j] : N - 2 <= j < N }`` are thin, a triangle or every second row is not. A set
    without variables is thin, and so is an empty one.
    """
    new_question()
    return all(_is_thin(isl.Set.from_basic_set(part)) for part in points.get_basic_sets())


def _is_thin(part: isl.Set) -> bool:
    count = part.dim(isl.dim_type.set)
    if count == 0 or part.is_empty():
        return True
    return any(_is_short(part.project_out(isl.dim_type.set, k + 1, count - k - 1), k) for k in range(count))


def _is_short(points: isl.Set, position: int) -> bool:
    # Whether no two values of the variable, for the same sizes, are far apart.
    line = points.project_out(isl.dim_type.set, 0, position).reset_tuple_id()
    distances = isl.Map.from_domain_and_range(line, line).deltas()
    return bool(distances.lower_bound_val(isl.dim_type.set, 0, _WIDTH).is_empty())
