"""Sparse tensors read at positions that are data: ``t_y[n, b] += t_x[ids[n], b]`` where ``t_x[z, z] = 1``.

isl can invert neither an index that is data nor ``i*P + p`` with a size P, but a diagonal says by itself where its
cells are: the read finds 1 where ``b = ids[n]``, so the statement becomes a scatter, ``t_y[n, ids[n]] += 1``.
"""

from __future__ import annotations

from collections.abc import Sequence

import islpy as isl

from tcdsl.ir.build import apply, cast
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Expr, IndexValue, index_variables, substitute
from tcdsl.ir.program import Access, Neutral, Statement
from tcdsl.polyhedra.affine import NotAffine, equated, function_of
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.spaces import dimension_names
from tcdsl.polyhedra.writes import both

__all__ = ["composed_with_data"]


def composed_with_data(
    writer: Statement,
    extents: Sequence[Expr],
    indices: Sequence[Expr],
    target: Access,
    points: isl.Set,
    condition: Expr | None,
    factor: Expr,
) -> Statement | None:
    """``target += factor * read``, summed over ``points``, where ``indices`` of the read find a cell of ``writer``.

    ``extents`` are those of the tensor that is read, within which all indices are. ``None`` if the cells of ``writer``
    are not those of a diagonal, with one variable for each axis.
    """
    axes: dict[str, list[tuple[Expr, Expr]]] = {}
    for place, position, extent in zip(writer.target.indices, indices, extents, strict=True):
        if not isinstance(place, IndexValue):
            return None
        axes.setdefault(place.name, []).append((position, extent))
    own = writer.domain.variables
    if set(axes) != set(own) or not writer.domain.set.is_equal(box(own, [axes[name][0][1] for name in own])):
        return None
    values: dict[Expr, Expr] = {}
    moved: dict[Expr, Expr] = {}
    fixed = index_variables(factor).union(*map(index_variables, (condition,) if condition is not None else ()))
    for name, found in axes.items():
        positions = [position for position, _ in found]
        # An index that isl cannot speak of comes first: variables that meet it take its value.
        first, *others = sorted(positions, key=lambda position: _is_affine(position, points))
        # It is within the tensor's extent, so an int64 holds it.
        values[IndexValue(name)] = cast(first, "int64")
        for other in others:
            if _is_affine(first, points):
                points = equated(points, first, other)
            elif (
                isinstance(other, IndexValue)
                and other not in moved
                and _is_free(other.name, points, fixed, found)
                and _takes(target.indices, other, first)
            ):
                moved[other] = first
                points = _without(points, other.name)
            else:
                dtype = INTEGER if INTEGER in (first.dtype, other.dtype) else "int64"
                condition = both(condition, apply("eq", cast(first, dtype), cast(other, dtype)))
    value = apply("mul", factor, substitute(writer.value, values))
    if writer.accumulate == "subtract":
        value = apply("neg", value)
    place_of = Access(target.tensor, tuple(substitute(axis, moved) for axis in target.indices), target.span)
    return Statement(place_of, "add", Neutral(), value, Domain.from_set(points), condition)


def _takes(indices: Sequence[Expr], variable: IndexValue, position: Expr) -> bool:
    # Whether a position may take the place of a variable in indices: one of another type only where it stands alone.
    return position.dtype == "int64" or all(
        axis == variable or variable.name not in index_variables(axis) for axis in indices
    )


def _is_affine(position: Expr, points: isl.Set) -> bool:
    try:
        function_of(position, points)
    except NotAffine:
        return False
    return True


def _is_free(name: str, points: isl.Set, fixed: frozenset[str], found: Sequence[tuple[Expr, Expr]]) -> bool:
    """Whether a variable is bound by nothing but the extent of the axis that it indexes."""
    if name in fixed:
        return False
    [extent] = {extent for position, extent in found if position == IndexValue(name)}
    points = points.reset_tuple_id()
    without = _without(points, name).insert_dims(isl.dim_type.set, dimension_names(points).index(name), 1)
    return bool(points.is_equal(without.intersect(box([name], [extent], points))))


def _without(points: isl.Set, name: str) -> isl.Set:
    return points.reset_tuple_id().project_out(isl.dim_type.set, dimension_names(points).index(name), 1)
