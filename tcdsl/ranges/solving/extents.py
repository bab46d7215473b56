"""Extents of axes: those that must be equal, and those of a target that a statement creates.

Rule 1: an index variable that stands bare on several axes must find equal extents.

``C[i, j] += A[i, k] * B[k, j]`` requires that A has as many columns as B has rows. Axes that are read count, and
those of an existing target; a new target may be larger or smaller than what is read. A variable that an explicit range
bounds from above skips what is out of range instead, and so does an existing target along a variable that is shifted
elsewhere: ``out[i] = a[i + 1] - a[i]`` takes an ``out`` of one cell less than ``a``.

A new target has 1 + the largest index over the ranges of its variables. An axis whose variables have no values has the
extent 0. A negative index is a fault, which the statement's author mends by shifting the index.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress

import islpy as isl

from tcdsl.ir.build import apply, conjuncts, integer, truth
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, IndexValue, SizeValue, children, is_affine_index, reads
from tcdsl.polyhedra.affine import NotAffine, function_of
from tcdsl.polyhedra.size_algebra import SizeInterval
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.polyhedra.spaces import has_end
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import free_variables
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess, Ends, Level
from tcdsl.ranges.solving.for_all import interval_box, needed_variables
from tcdsl.span import Span

__all__ = ["check_ends_are_sizes", "check_equal_extents", "inferred_extent"]


def check_equal_extents(inference: Inference, accesses: Sequence[AxisAccess], explicit: Mapping[str, Ends]) -> None:
    """Require equal extents where one variable stands alone; a fault where they are known to differ."""
    if inference.sketch.mode == "valid":
        return
    first: dict[str, AxisAccess] = {}
    shifted = frozenset().union(*(_shifted(access.form) for access in accesses if access.form is not None))
    for access in accesses:
        if access.form is None or access.extent is None or (access.written and inference.sketch.mode != "existing"):
            continue
        name = access.form.bare
        if name is None or _skips(name, access, explicit, shifted):
            continue
        other = first.setdefault(name, access)
        if other is not access:
            _require_equal(inference, name, other, access, skippable=not (name in explicit and explicit[name].highs))


def check_ends_are_sizes(inference: Inference, root: Level, explicit: Mapping[str, Ends]) -> None:
    """A fault where data says how long a new target would be: ``y[j] = x[j], j <= n`` with an array n of rank 0.

    With a number it has n + 1 cells, and data would leave it as long as x.
    """
    bare = {access.form.bare for access in root.accesses if access.written and access.form is not None}
    for condition in conjuncts(*root.conditions):
        if not isinstance(condition, Apply) or condition.primitive not in ("lt", "le", "gt", "ge"):
            continue
        below = condition.arguments if condition.primitive in ("lt", "le") else condition.arguments[::-1]
        index, end = below
        if not isinstance(index, IndexValue) or index.name not in bare or explicit.get(index.name, Ends()).highs:
            continue
        if any(reads(end)) and not free_variables(end):
            label, name = inference.label(inference.sketch.target.tensor), index.name
            inference.fault(
                f"`{inference.text(end)}` is data, which cannot say how long {label} is",
                condition.span,
                hint=f"declare the extents of `{label}`, as in `{label} = output(N)`, or add a condition on a size, "
                f"`{name} < N`; a number in the place of the array would be one",
            )


def _skips(name: str, access: AxisAccess, explicit: Mapping[str, Ends], shifted: Set[str]) -> bool:
    if name in explicit and explicit[name].highs:
        return explicit[name].skips
    return access.written and name in shifted


def _shifted(form: Polynomial) -> frozenset[str]:
    # The variables that something is added to: i and k in `i + k`, i in `i - 1`, none in `i` and in `2*i`.
    one = Polynomial.number(1)
    alone = form.bare is not None
    return frozenset(
        name for name in form.variables if not alone and form.linear_in(name) and form.coefficient(name) == one
    )


def _require_equal(inference: Inference, name: str, left: AxisAccess, right: AxisAccess, skippable: bool) -> None:
    algebra = inference.algebra
    extents = left.bounds[1], right.bounds[1]
    difference = extents[0] - extents[1]
    if algebra.zero(difference):
        return
    places = [f"axis {access.axis} of {inference.label(access.tensor)}" for access in (left, right)]
    said = [None if each.written else inference.scope.tensor(each.tensor).end(each.axis) for each in (left, right)]
    runs = (f"{{}}, which has the extent {{}}{_by(each)}" for each in said)
    fact = f"the index `{{}}` runs over {', and over '.join(runs)}"
    span = right.span or left.span
    skip = f" skip what is out of range by a condition, `{name} < n`," if skippable else ""
    hint = f"make the extents equal,{skip} or read one of the two with a boundary such as get(..., 0.0)"
    end = next((each.text for each in said if each is not None and re.search(rf"\b{name}\b", each.text)), "")
    if skippable and end:
        hint = (
            f"write `{end}` behind this value too, or declare the extents of what is too short, as in `y = output(n)`"
        )
    sketch = inference.sketch
    if (left.written or right.written) and sketch.previous and sketch.accumulate != "assign":
        # Mostly a loop that reuses a name.
        label = inference.label(sketch.target.tensor)
        hint = (
            f"`{label}` exists already and keeps its extents: for a tensor with others use another name, or write "
            f"`{label} = output()` before the statement in an @op function"
        )
    if algebra.nonzero(difference):
        texts = [inference.text(extent) for extent in extents]
        inference.fault(fact.format(name, places[0], texts[0], places[1], texts[1]), span, hint=hint)
        return
    numbers = [inference.number(extent) for extent in extents]
    message = fact.format(name, places[0], numbers[0], places[1], numbers[1])
    condition = apply("eq", *map(algebra.expr, extents))
    inference.require(condition, f"{message}\n{hint}", span)


def _by(condition: Span | None) -> str:
    # The condition that says how long something is.
    if condition is None:
        return ""
    text = f"`{condition.text}`" if condition.text else "the condition"
    return f" by {text} in line {condition.line}"


def inferred_extent(
    inference: Inference, access: AxisAccess, intervals: Mapping[str, SizeInterval]
) -> Polynomial | None:
    """The extent of the target along the axis of ``access``; None after a fault. The access counts as settled."""
    form = access.form
    open_extent = f"the extent of axis {access.axis} of {inference.label(access.tensor)} cannot be inferred"
    if form is None:
        return _extent_of_remainders(inference, access, intervals, open_extent)
    least, most = (_extreme(inference, form, intervals, largest) for largest in (False, True))
    if least is None or most is None:
        inference.fault(
            f"{open_extent} from `{inference.text(access.index)}`",
            access.span,
            *(f"known: {inference.range_text(name, intervals[name])}" for name in intervals if name in form.variables),
            hint="declare the extents of the target",
        )
        return None
    names = needed_variables(form.variables, intervals)
    lengths = [_longest(inference, intervals[name], intervals) for name in names]
    _require_no_negative_index(inference, access, least, lengths)
    access.settled = True
    return _not_below_zero(inference, most + 1, lengths)


def _extent_of_remainders(
    inference: Inference, access: AxisAccess, intervals: Mapping[str, SizeInterval], open_extent: str
) -> Polynomial | None:
    # `y[(i + 2) % N]` reaches every position below N where i has at least N values, whatever the 2 is. So does
    # `y[3 * i % N] = x[i]`, which is an error where cells meet.
    index = access.index.operand if isinstance(access.index, Cast) else access.index
    if isinstance(index, Apply) and index.primitive == "mod":
        divided, divisor = index.arguments
        with suppress(NotAffine):
            extent = inference.algebra.form(divisor.operand if isinstance(divisor, Cast) else divisor)
            names = _stepping_variables(inference, divided)
            if len(names) == 1 and not extent.variables:
                (name,) = names
                if inference.algebra.nonnegative(intervals[name].length - extent):
                    access.settled = True
                    return extent
    because = "" if is_affine_index(index) else ", because it depends on data"
    fact = f"{open_extent} from `{inference.text(index)}`{because}"
    inference.fault(fact, access.span, hint="declare the extents of the target")
    return None


def _stepping_variables(inference: Inference, divided: Expr) -> Set[str]:
    # The variables that an index goes on with in steps of 1, or of any size where cells must not meet; `NotAffine` if
    # it goes in another way. What is the same at all points may be data.
    try:
        form = inference.algebra.form(divided)
    except NotAffine:
        moving = [divided]
        if isinstance(divided, Cast) or (isinstance(divided, Apply) and divided.primitive in ("add", "sub")):
            moving = [each for each in children(divided) if free_variables(each)]
        if moving == [divided] or len(moving) > 1:
            raise
        return _stepping_variables(inference, moving[0]) if moving else frozenset()
    steps = [abs(form.coefficient(name).value or 0) for name in form.variables if form.linear_in(name)]
    disjoint = inference.sketch.accumulate == "assign"
    if len(steps) < len(form.variables) or not all(step == 1 or (disjoint and step) for step in steps):
        raise NotAffine(divided)
    return frozenset(form.variables)


def _extreme(
    inference: Inference, form: Polynomial, intervals: Mapping[str, SizeInterval], largest: bool
) -> Polynomial | None:
    algebra = inference.algebra
    found = algebra.bound(form, intervals, largest)
    if found is not None or not form.quasi_affine:
        return found
    names = needed_variables(form.variables, intervals)
    try:
        points = interval_box(algebra, intervals, names)
        values = isl.Map.from_pw_aff(function_of(algebra.expr(form), points)).intersect_domain(points).range()
    except NotAffine:
        return None
    if values.is_empty() or not has_end(values, 0, largest):
        return None
    return algebra.form_of_function(values.dim_max(0) if largest else values.dim_min(0))


def _longest(inference: Inference, interval: SizeInterval, intervals: Mapping[str, SizeInterval]) -> Polynomial:
    longest = inference.algebra.bound(interval.length, intervals, True)
    return Polynomial.number(1) if longest is None else longest


def _require_no_negative_index(
    inference: Inference, access: AxisAccess, least: Polynomial, lengths: list[Polynomial]
) -> None:
    algebra = inference.algebra
    if algebra.nonnegative(least):
        return
    fact = f"{access.place(inference)} would begin at {inference.text(least)}, below 0"
    hint = f"shift the index: `{inference.text(access.form - least)}`" if access.form is not None else ""
    if algebra.negative(least) and not any(map(algebra.negative, lengths)):
        inference.fault(fact, access.span, hint=hint)
        return
    holds = apply("ge", algebra.expr(least), integer(0))
    for length in lengths:
        if not algebra.nonnegative(length - 1):
            holds = apply("or_", apply("le", algebra.expr(length), integer(0)), holds)
    inference.require(holds, f"{fact}: {inference.values(least)}\n{hint}", access.span)


def _not_below_zero(inference: Inference, extent: Polynomial, lengths: list[Polynomial]) -> Polynomial:
    # extent is right where all lengths are positive; elsewhere the extent is 0.
    algebra = inference.algebra
    doubtful = [length for length in lengths if not algebra.nonnegative(length - 1)]
    if not doubtful:
        return extent
    remaining = [_where_empty(inference, extent, length) for length in doubtful]
    if all(form is not None and form.value == 0 for form in remaining):
        return extent
    if all(form is not None and algebra.nonnegative(-form) for form in remaining) or all(
        _vanishes(inference, extent, length) for length in doubtful
    ):
        return algebra.at_least_zero(extent)
    positive: Expr = truth(True)
    for length in doubtful:
        positive = apply("and_", positive, apply("ge", algebra.expr(length), integer(1)))
    return algebra.form(apply("where", positive, algebra.expr(extent), integer(0)))


def _where_empty(inference: Inference, extent: Polynomial, length: Polynomial) -> Polynomial | None:
    # The extent where length is 0, if length is known not to be negative: solve length == 0 for one of its sizes.
    if not inference.algebra.nonnegative(length):
        return None
    for (_, monomial), scale in length.terms.items():
        if len(monomial) == 1 and abs(scale) == 1 and isinstance(monomial[0], SizeValue):
            (size,) = monomial
            solution = Polynomial.of(size) - length * scale
            if size not in solution.sizes():
                return extent.substituted(size, solution)
    return None


def _vanishes(inference: Inference, extent: Polynomial, length: Polynomial) -> bool:
    algebra = inference.algebra
    both = apply("and_", apply("le", algebra.expr(length), integer(0)), apply("gt", algebra.expr(extent), integer(0)))
    if isinstance(both, Constant):
        return not both.value
    try:
        return algebra.impossible(both)
    except NotAffine:
        return False
