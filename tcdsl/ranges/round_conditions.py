"""What must hold of sizes in every round of a loop, as a condition on the sizes around the loop."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import islpy as isl

from tcdsl.ir.build import all_of, apply
from tcdsl.ir.expressions import Apply, Expr, size_names
from tcdsl.ir.program import AxisExtent, Size
from tcdsl.ir.sizes.loop_sizes import is_equality
from tcdsl.polyhedra.affine import (
    NotAffine,
    condition_set,
    expression_of,
    expression_of_condition,
    universe,
    with_variable,
)

__all__ = ["largest_over_rounds", "over_all_rounds", "sizes_of_round"]


_VALUE = "value"


def sizes_of_round(number: str, sizes: Mapping[str, Size]) -> frozenset[str]:
    """The sizes that change with the size ``number``, itself included."""
    found = {number}
    for name, size in sizes.items():
        if not isinstance(size.source, AxisExtent) and size_names(size.source) & found:
            found.add(name)
    return frozenset(found)


def over_all_rounds(condition: Expr, context: isl.Set, around: isl.Set, of_round: Collection[str]) -> Expr | None:
    """The condition on the other sizes under which ``condition`` holds in all rounds; ``None`` if it always does.

    ``context`` is what is known about the sizes in a round, ``around`` what is known about the other ones also where
    there is no round. Raises `tcdsl.polyhedra.affine.NotAffine`.
    """
    wrong = _without(context.subtract(condition_set(condition, context)), of_round)
    if wrong.is_empty():
        return None
    found = expression_of_condition(around.subtract(wrong).coalesce().gist(around))
    if is_equality(found) and not is_equality(condition):
        # ``M == 0`` says that there is no round, where an equality says that shapes fit.
        assert isinstance(found, Apply)
        ends = [apply(each, *found.arguments) for each in ("le", "ge")]
        return all_of([each for each in ends if not around.is_subset(condition_set(each, around))])
    return found


def largest_over_rounds(extent: Expr, context: isl.Set, of_round: Collection[str]) -> Expr:
    """The largest value of ``extent`` in any round, as an expression of the other sizes; 0 where there is no round.

    ``context`` is what is known about the sizes in a round. Raises `tcdsl.polyhedra.affine.NotAffine`.
    """
    values = with_variable(universe((), sorted(size_names(extent))), _VALUE, extent).intersect_params(context)
    values = _without(values, of_round)
    if not values.dim_is_bounded(isl.dim_type.set, 0):
        raise NotAffine(extent)
    largest = values.lexmax_pw_multi_aff().get_pw_aff(0)
    none = isl.PwAff.zero_on_domain(isl.LocalSpace.from_space(largest.get_domain_space()))
    return expression_of(largest.union_max(none))


def _without(points: isl.Set, names: Collection[str]) -> isl.Set:
    for name in names:
        position = points.find_dim_by_name(isl.dim_type.param, name)
        if position >= 0:
            points = points.project_out(isl.dim_type.param, position, 1)
    return points
