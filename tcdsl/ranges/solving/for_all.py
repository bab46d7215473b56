"""One round of rule 2 by isl: the interval of a variable that keeps accesses in range for all values of the solved
ones.

For what arithmetic on linear forms cannot decide: ``A[i // 2]``, ``A[min(i, j)]``, and reads in a branch, which
must be in range only where the branch is taken: ``x[i - 1] if i > 0 else x[i]``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr
from tcdsl.polyhedra.affine import NotAffine, condition_set, expression_of_condition
from tcdsl.polyhedra.read_pieces import is_affine_condition
from tcdsl.polyhedra.size_algebra import SizeAlgebra, SizeInterval
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.polyhedra.spaces import has_end
from tcdsl.ranges.sketches.sketch import free_variables
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess, Ends
from tcdsl.ranges.solving.constraints import Constraints, form_in_range, named_sizes

__all__ = ["for_all_ends", "interval_box", "needed_variables", "range_constraints", "relevant_guard"]


def relevant_guard(
    access: AxisAccess, name: str, solved: Mapping[str, SizeInterval], algebra: SizeAlgebra
) -> tuple[Expr, ...]:
    """The guards that decide whether an access is made, as far as solved variables and ``name`` do.

    A guard on data or on unsolved variables may hold anywhere, so the access counts as made.
    """
    known = {*solved, name}
    kept = []
    for condition in access.guard:
        if free_variables(condition) <= known:
            named = named_sizes(condition, algebra)
            if is_affine_condition(named):
                kept.append(named)
    return tuple(kept)


def range_constraints(constraints: Constraints, intervals: Mapping[str, SizeInterval], names: Sequence[str]) -> None:
    """Add the ranges of ``names``."""
    for name in names:
        constraints.at_least(name, intervals[name].low)
        constraints.at_most(name, intervals[name].high)


def interval_box(
    algebra: SizeAlgebra, intervals: Mapping[str, SizeInterval], names: Sequence[str], variables: Sequence[str] = ()
) -> isl.Set:
    """The points over ``names``, or over ``variables``, where each of ``names`` lies in its interval. `NotAffine`."""
    constraints = Constraints(algebra)
    range_constraints(constraints, intervals, names)
    return constraints.set(variables or names)


def needed_variables(names: frozenset[str], intervals: Mapping[str, SizeInterval]) -> list[str]:
    """``names`` and the variables that their ranges depend on, in the order of ``intervals``."""
    needed = set(names)
    for name in reversed(list(intervals)):
        if name in needed:
            needed |= intervals[name].low.variables | intervals[name].high.variables
    return [name for name in intervals if name in needed]


def for_all_ends(
    algebra: SizeAlgebra, name: str, accesses: Sequence[AxisAccess], solved: Mapping[str, SizeInterval], lazily: bool
) -> Ends:
    """The ends of ``name`` that accesses give; none where they leave it unbounded. ``lazily``: only where made."""
    guards = {access: relevant_guard(access, name, solved, algebra) if lazily else () for access in accesses}
    used = frozenset().union(
        *(access.form.variables for access in accesses if access.form is not None),
        *(free_variables(guard) for conditions in guards.values() for guard in conditions),
    )
    others = needed_variables(used - {name}, solved)
    try:
        kept = box = interval_box(algebra, solved, others, [*others, name])
        for access in accesses:
            kept = kept.intersect(_allowed(algebra, access, guards[access], box))
    except NotAffine:
        return Ends()
    some = box.params()
    bad = box.subtract(kept).project_out(isl.dim_type.set, 0, len(others))
    line = isl.Set.universe(bad.get_space()).subtract(bad).intersect_params(algebra.context)
    # Where a solved variable has no values everything is in range; there the ends are continued from elsewhere.
    line = line.gist_params(some).intersect_params(algebra.context).coalesce()
    return _ends_of(algebra, line)


def _allowed(algebra: SizeAlgebra, access: AxisAccess, guard: Sequence[Expr], box: isl.Set) -> isl.Set:
    form, extent = access.bounds
    if not form.quasi_affine:
        raise NotAffine(access.index)
    allowed = condition_set(form_in_range(algebra, form, extent), box)
    for condition in guard:
        allowed = allowed.union(condition_set(condition, box).complement())
    return allowed


def _ends_of(algebra: SizeAlgebra, line: isl.Set) -> Ends:
    if line.is_empty():  # for all sizes, as with the extent 0
        return Ends([Polynomial.number(0)], [Polynomial.number(-1)])
    ends = Ends()
    low = line.dim_min(0) if has_end(line, 0, largest=False) else None
    high = line.dim_max(0) if has_end(line, 0, largest=True) else None
    if low is not None:
        ends.lows.append(algebra.form_of_function(low))
    if high is not None:
        form = algebra.form_of_function(high)
        if low is not None:
            form = _empty_elsewhere(algebra, ends.lows[0], form, high.domain())
        ends.highs.append(form)
    return ends


def _empty_elsewhere(algebra: SizeAlgebra, low: Polynomial, high: Polynomial, domain: isl.Set) -> Polynomial:
    # No value is right for sizes outside the domain: there the range must be empty, as it usually is by itself.
    outside = algebra.context.subtract(domain.params())
    if outside.is_empty():
        return high
    length = algebra.expr(high - low + 1)
    try:
        if outside.intersect(condition_set(apply("gt", length, integer(0)), outside)).is_empty():
            return high
    except NotAffine:
        pass  # too many cases to ask about: said below, whether needed or not
    inside = expression_of_condition(domain.params().gist(algebra.context))
    return algebra.form(apply("where", inside, algebra.expr(high), algebra.expr(low - 1)))
