"""Rule 1: an index variable that stands bare on several axes must find equal extents.

``C[i, j] += A[i, k] * B[k, j]`` requires that A has as many columns as B has rows. Axes that are read count, and
those of an existing target; a new target may be larger or smaller than what is read. A variable that an explicit range
bounds from above skips what is out of range instead, and so does an existing target along a variable that is shifted
elsewhere: ``out[i] = a[i + 1] - a[i]`` takes an ``out`` of one cell less than ``a``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from tcdsl.ir.build import apply
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.ranges.sketches.explicit_ranges import Ends
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess

__all__ = ["check_equal_extents"]


def check_equal_extents(inference: Inference, accesses: Sequence[AxisAccess], explicit: Mapping[str, Ends]) -> None:
    """Require equal extents where one variable stands alone; a fault where they are known to differ."""
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
    fact = "the index `{}` runs over {}, which has the extent {}, and over {}, which has the extent {}"
    span = right.span or left.span
    skip = f" skip what is out of range by a condition, `{name} < n`," if skippable else ""
    hint = f"make the extents equal,{skip} or read one of the two with a boundary such as get(..., 0.0)"
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
