"""Sets with other dimensions: reordered, projected, or with some of their dimensions taken as given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import islpy as isl

from tcdsl.polyhedra.limits import new_question

__all__ = [
    "arranged",
    "at_sizes",
    "constant_range",
    "dimension_names",
    "has_end",
    "named",
    "parameter_names",
    "twice",
]


def dimension_names(points: isl.Set) -> tuple[str, ...]:
    """The names of the dimensions of ``points``."""
    return tuple(str(points.get_dim_name(isl.dim_type.set, k)) for k in range(points.dim(isl.dim_type.set)))


def parameter_names(points: isl.Set) -> tuple[str, ...]:
    """The names of the parameters of ``points``."""
    return tuple(str(points.get_dim_name(isl.dim_type.param, k)) for k in range(points.dim(isl.dim_type.param)))


def named(points: isl.Set, variables: Sequence[str]) -> isl.Set:
    """``points`` with its first dimensions called ``variables``."""
    for k, name in enumerate(variables):
        points = points.set_dim_name(isl.dim_type.set, k, name)
    return points


def at_sizes(points: isl.Set, sizes: Mapping[str, int]) -> isl.Set:
    """``points`` with those of its parameters that are among ``sizes`` replaced by their values."""
    names = parameter_names(points)
    for k in reversed(range(len(names))):
        if names[k] in sizes:
            points = points.fix_val(isl.dim_type.param, k, isl.Val(sizes[names[k]]))
            points = points.project_out(isl.dim_type.param, k, 1)
    return points


def has_end(points: isl.Set, position: int, largest: bool) -> bool:
    """Whether the dimension at ``position`` is bounded from above (``largest``) or below, for all parameters."""
    # isl takes the equation of `j % 2 == 0` for a bound on both sides, unless its unknown quotient is projected out.
    plain = points.remove_divs()
    side = isl.Set.dim_has_upper_bound if largest else isl.Set.dim_has_lower_bound
    return bool(side(plain, isl.dim_type.set, position))


def constant_range(points: isl.Set, name: str) -> range | None:
    """From the smallest to the largest value of a dimension, if constants bound it, whatever the sizes."""
    line = arranged(points, (name,))
    line = line.project_out(isl.dim_type.param, 0, line.dim(isl.dim_type.param))
    if line.is_empty():
        return range(0)
    if not (has_end(line, 0, largest=False) and has_end(line, 0, largest=True)):
        return None
    return range(line.dim_min_val(0).to_python(), line.dim_max_val(0).to_python() + 1)


def arranged(points: isl.Set, variables: Sequence[str], given: Iterable[str] = ()) -> isl.Set:
    """``points`` over ``variables``, in this order; ``given`` dimensions become parameters, others are projected out.

    Names of dimensions and parameters must differ. A variable that ``points`` lacks is an unbounded dimension, unless
    it is a parameter, which becomes a dimension.
    """
    new_question()
    keep = {*variables, *given}
    for k in reversed(range(points.dim(isl.dim_type.set))):
        if points.get_dim_name(isl.dim_type.set, k) not in keep:
            points = points.project_out(isl.dim_type.set, k, 1)
    names = dimension_names(points)
    first = points.dim(isl.dim_type.param)
    points = points.reset_tuple_id().move_dims(isl.dim_type.param, first, isl.dim_type.set, 0, len(names))
    for k, name in enumerate(names):
        points = points.set_dim_name(isl.dim_type.param, first + k, name)
    for k, name in enumerate(variables):
        position = points.find_dim_by_name(isl.dim_type.param, name)
        if position < 0:
            points = points.insert_dims(isl.dim_type.set, k, 1)
        else:
            points = points.move_dims(isl.dim_type.set, k, isl.dim_type.param, position, 1)
        points = points.set_dim_name(isl.dim_type.set, k, name)
    return points


def twice(points: isl.Set) -> tuple[isl.Set, tuple[str, ...]]:
    """The pairs of points of a set, and the names of the second one's dimensions: ``i'`` beside ``i``."""
    others = tuple(f"{name}'" for name in dimension_names(points))
    return points.reset_tuple_id().flat_product(named(points, others).reset_tuple_id()), others
