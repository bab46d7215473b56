"""Which sets are thin: so few points beside their surroundings that their loops may cost more for each of them."""

from __future__ import annotations

import islpy as isl

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
    for k in range(count):
        line = part.project_out(isl.dim_type.set, k + 1, count - k - 1).project_out(isl.dim_type.set, 0, k)
        if not (
            line.dim_has_any_lower_bound(isl.dim_type.set, 0) and line.dim_has_any_upper_bound(isl.dim_type.set, 0)
        ):
            continue
        width = line.dim_max(0).sub(line.dim_min(0)).max_val()
        if width.is_int() and width.to_python() < _WIDTH:
            return True
    return False
