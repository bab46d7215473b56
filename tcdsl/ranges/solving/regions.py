"""The points of a level: where its ranges and conditions hold and all its accesses are in range.

What isl can say becomes the domain. The rest becomes tests at run time: conditions on data, accesses that are
guarded by data, and products of index variables and sizes that have no digits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import islpy as isl

from tcdsl.ir.build import all_of, apply, conjuncts, in_range
from tcdsl.ir.expressions import Expr, reads
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.disjunctions import convex_pieces, narrowed, within
from tcdsl.polyhedra.mixed_radix import in_range_by_digits
from tcdsl.polyhedra.read_pieces import is_affine_condition
from tcdsl.polyhedra.size_algebra import SizeAlgebra, SizeInterval
from tcdsl.polyhedra.spaces import arranged, dimension_names, has_end
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import free_variables
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess, Ends, Level
from tcdsl.ranges.solving.branches import GuardedPoints, possible_points
from tcdsl.ranges.solving.constraints import Constraints, form_in_range, named_sizes
from tcdsl.ranges.solving.for_all import range_constraints

__all__ = ["Ranges", "Region", "affine_guard", "bounding_hint", "conjunction", "ends_of", "in_range_test", "region_of"]


@dataclass(frozen=True, slots=True)
class Ranges:
    """What bounds variables besides accesses: ``solved`` intervals (rule 2), else ``explicit`` ends."""

    solved: Mapping[str, SizeInterval]
    explicit: Mapping[str, Ends]


@dataclass(slots=True)
class Region:
    """The points of a level over the variables that it uses, and the tests that the points have to pass besides."""

    variables: tuple[str, ...]
    points: isl.Set
    tests: list[Expr] = field(default_factory=list)


def conjunction(conditions: Sequence[Expr]) -> Expr | None:
    """All of ``conditions``; None if there are none."""
    return all_of(conditions) if conditions else None


def affine_guard(guard: Sequence[Expr], points: isl.Set) -> tuple[isl.Set, list[Expr]]:
    """The points where the guards that a set can say hold, and the others. Other variables than those of
    ``points`` are data.
    """
    names = set(dimension_names(points))
    held, others = points, []
    for condition in guard:
        try:
            if not free_variables(condition) <= names:
                raise NotAffine(condition)
            held = held.intersect(condition_set(condition, points))
        except NotAffine:
            others.append(condition)
    return held, others


def region_of(
    inference: Inference, level: Level, variables: tuple[str, ...], base: isl.Set | None, ranges: Ranges
) -> Region:
    """The region of ``level`` over ``variables``: those that it takes from around it, whose points are ``base``,
    and its own.
    """
    constraints = Constraints(inference.algebra)
    _add_ranges(constraints, level, ranges)
    data: list[Expr] = []
    disjunctions: dict[Expr, Expr] = {}
    for condition in conjuncts(*level.conditions, *level.filters):
        named = named_sizes(condition, inference.algebra)
        try:
            if convex_pieces(named) == 1:
                constraints.condition(condition)
            elif is_affine_condition(named):
                disjunctions[named] = condition
            else:
                data.append(condition)
        except NotAffine:
            data.append(condition)
    later: list[AxisAccess] = []
    for access in level.accesses:
        if access.settled or access.extent is None:
            continue
        if access.written and access.form is None:
            continue  # a data index of the target: the statement's `oob` says what happens out of range
        if access.form is None or not access.form.quasi_affine or access.guard:
            later.append(access)
        else:
            constraints.in_range(access.form, inference.algebra.spoken(access.extent))
    points = constraints.set(variables, base)
    points, tests = narrowed(points, list(disjunctions), lambda condition: condition_set(condition, points))
    region = Region(variables, points, [disjunctions[test] for test in tests])
    _add_guarded(inference, region, later, data)
    _check_bounded(inference, level, region)
    region.tests.extend(data)
    region.points = region.points.gist_params(inference.algebra.context_of(region.points)).coalesce()
    return region


def _add_ranges(constraints: Constraints, level: Level, ranges: Ranges) -> None:
    for name in level.variables:
        if name in ranges.solved:
            range_constraints(constraints, ranges.solved, [name])
        elif name in ranges.explicit:
            ends = ranges.explicit[name]
            for low in ends.lows:
                constraints.at_least(name, low)
            for high in ends.highs:
                constraints.at_most(name, high)


def _add_guarded(inference: Inference, region: Region, accesses: Sequence[AxisAccess], data: Sequence[Expr]) -> None:
    # At all points that count the conditions on data hold, so they guard nothing.
    granted = [named_sizes(condition, inference.algebra) for condition in data]
    # Digits are found once the variables they need are bounded, so products may have to wait for each other.
    waiting = list(accesses)
    unsaid: dict[AxisAccess, Expr] = {}
    undecided: list[GuardedPoints] = []
    many: list[isl.Set] = []
    progress = True
    while progress:
        progress = False
        for access in list(waiting):
            said = _in_range_set(inference, region, access)
            if said is None:
                continue
            waiting.remove(access)
            progress = True
            guard = [condition for condition in _named_guard(inference, access) if condition not in granted]
            held, others = affine_guard(guard, region.points)
            if not others:
                allowed = said.union(region.points.subtract(held)) if guard else said
                few = within(region.points, allowed.coalesce())
                if few is None:
                    unsaid[access] = in_range_test(inference.algebra, access)
                    many.append(allowed)
                region.points = region.points if few is None else few
                continue
            undecided.append(GuardedPoints(tuple(guard), said))
            if not held.intersect_params(inference.algebra.context).is_subset(said):
                unsaid[access] = in_range_test(inference.algebra, access)
        if many and not region.points.is_bounded():
            # Tests do not bound a variable.
            region.points = reduce(isl.Set.intersect, many, region.points).coalesce()
            many.clear()
        if not region.points.is_bounded():
            # Only there, since a union of ranges makes several pieces of what is one nest with a test.
            possible = region.points.intersect(possible_points(undecided, region.points))
            progress = progress or not region.points.is_subset(possible)
            region.points = possible
    for access in waiting:
        unsaid[access] = in_range_test(inference.algebra, access)
    region.tests.extend(unsaid[access] for access in accesses if access in unsaid)


def _named_guard(inference: Inference, access: AxisAccess) -> list[Expr]:
    return [named_sizes(condition, inference.algebra) for condition in access.guard]


def _in_range_set(inference: Inference, region: Region, access: AxisAccess) -> isl.Set | None:
    # The points of region where an access is in range; None if no set says so.
    algebra = inference.algebra
    form, extent = access.form, access.extent
    if form is None or extent is None:
        return None
    condition: Expr | None
    if form.quasi_affine:
        condition = form_in_range(algebra, form, extent)
    else:
        held, _ = affine_guard(_named_guard(inference, access), region.points)
        condition = in_range_by_digits(algebra, form, extent, held.intersect_params(algebra.context))
    return None if condition is None else condition_set(condition, region.points)


def in_range_test(algebra: SizeAlgebra, access: AxisAccess) -> Expr:
    """That an access is in range where it is made, as a test at each point."""
    assert access.extent is not None
    fits = in_range(access.index, algebra.expr(access.extent))
    guard = conjunction(access.guard)
    return fits if guard is None else apply("or_", apply("not_", guard), fits)


def _check_bounded(inference: Inference, level: Level, region: Region) -> None:
    points = region.points
    if points.is_bounded():
        return
    known = points.intersect_params(inference.algebra.context)
    for name in level.variables:
        # Variables may bound each other and still be unbounded, as in `A[5*j + k]`.
        line = arranged(known, (name,))
        sides = [side for side, largest in (("below", False), ("above", True)) if not has_end(line, 0, largest)]
        if sides:
            _report_unbounded(inference, level, name, " and ".join(sides))


def _report_unbounded(inference: Inference, level: Level, name: str, sides: str) -> None:
    places = [access.place(inference) for access in level.accesses if name in free_variables(access.index)]
    inference.fault(
        f"nothing bounds the index `{name}` from {sides}",
        None if level.reduction is None else level.reduction.span,
        *(f"used in {place}" for place in places),
        hint=f"add a constraint: `O.add_constraint({name} < n)`"
        if inference.sketch.mode == "valid"
        else bounding_hint(
            name, (*level.conditions, *level.filters), f"write a range as a condition, `0 <= {name} < n`"
        ),
    )


def bounding_hint(name: str, conditions: Sequence[Expr], otherwise: str) -> str:
    """What to write where nothing but data may bound a variable; ``otherwise`` where data do not either."""
    if not any(name in free_variables(each) and any(reads(each)) for each in conjuncts(*conditions)):
        return otherwise
    return (
        f"data cannot say how far it may go: write sizes too, `if 0 <= {name} < n` in a generator, `0 <= {name} < n` "
        "behind the statement; the loop runs between the ends that data give all the same. A `for` of the function "
        "needs none"
    )


def ends_of(inference: Inference, points: isl.Set, k: int) -> SizeInterval | None:
    """The smallest and the largest value of a dimension, as forms of sizes; None if there are no points at all.

    Also None if there are no ends, which is a fault that has been noted.
    """
    algebra = inference.algebra
    if points.is_empty() or not (has_end(points, k, largest=False) and has_end(points, k, largest=True)):
        return None
    return SizeInterval(algebra.form_of_function(points.dim_min(k)), algebra.form_of_function(points.dim_max(k)))
