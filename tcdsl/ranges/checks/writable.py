"""A target that its first statement has made too small for a later one: points would be left out that were meant.

::

    y[2*i] = x[i]           y has 2*N - 1 cells
    y[2*i + 1] += x[i]      reaches one more

    s[0] = x[0]             s has one cell
    s[i + 1] = s[i] + x[i + 1]

A variable that stands alone on the target narrows, and one whose end is stated skips what is out of range. Reads of the
target itself are no reason to want more cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

import islpy as isl

from tcdsl.ir.expressions import Expr, is_affine_index
from tcdsl.polyhedra.affine import NotAffine, expression_of_condition, function_of, sizes_condition
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.ranges.checks.loop_hints import spoken
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess, Level
from tcdsl.ranges.solving.regions import Ranges, Region, ends_of, region_of

__all__ = ["check_writable"]


def check_writable(inference: Inference, root: Level, region: Region, ranges: Ranges) -> None:
    """A fault, or an assertion where it depends on sizes, for a tensor whose extents an earlier statement has inferred
    and that has no cells for some points of this one.
    """
    sketch = inference.sketch
    if sketch.mode != "existing" or sketch.sized is None:
        return
    written = [access for access in root.accesses if access.written]
    candidates = [access for access in written if _may_lose(access, ranges)]
    nothing = region.points.intersect_params(inference.algebra.context).is_empty()
    if not candidates and not nothing:
        return
    own = (sketch.target.tensor, sketch.previous)
    free = replace(root, accesses=[access for access in root.accesses if access.tensor not in own])
    # Without its target's extents a variable may be unbounded, which is no fault here.
    trial = Inference(sketch, inference.scope)
    wanted = region_of(trial, free, free.variables, None, ranges).points
    if not wanted.is_bounded() or wanted.intersect_params(inference.algebra.context).is_empty():
        return
    meant = _in_cells(inference, wanted, written, candidates)
    lost = {id(access): points for access in candidates if not (points := _beyond(inference, meant, access)).is_empty()}
    first = next((access for access in candidates if id(access) in lost), None)
    if first is not None:
        _assume(trial, _beyond(trial, wanted, first))
        _report_lost(inference, lost, first, meant, _hint(inference, trial, written, wanted))
    elif nothing:
        _assume(trial, wanted)
        label = inference.label(sketch.target.tensor)
        shown = ", ".join(inference.text(access.extent) for access in written if access.extent is not None)
        inference.fault(
            f"the statement can write no cell of `{label}`, whatever the sizes are",
            sketch.span,
            f"`{label}` has the shape [{shown}], which the first statement on it has given it",
            hint=_hint(inference, trial, written, wanted),
        )


def _assume(trial: Inference, points: isl.Set) -> None:
    # The advice is for sizes where there are such points.
    with suppress(NotAffine):
        trial.algebra.assume(expression_of_condition(points.params()))


def _may_lose(access: AxisAccess, ranges: Ranges) -> bool:
    form = access.form
    if form is None or access.extent is None or form.bare is not None or not is_affine_index(access.index):
        return False
    stated = (ranges.explicit[name] for name in form.variables if name in ranges.explicit)
    return form.quasi_affine and not any(ends.highs and ends.skips for ends in stated)


def _in_cells(
    inference: Inference, points: isl.Set, written: list[AxisAccess], candidates: list[AxisAccess]
) -> isl.Set:
    # Those below 0 would be lost on a target of any size, and those that the other axes leave out are left out.
    for access in written:
        if access.form is None or access.extent is None or not access.form.quasi_affine:
            continue
        place = function_of(inference.algebra.expr(access.form), points)
        points = points.intersect(place.nonneg_set())
        if access not in candidates:
            points = points.intersect(place.lt_set(function_of(_extent(inference, access), points)))
    return points


def _extent(inference: Inference, access: AxisAccess) -> Expr:
    return inference.algebra.expr(inference.algebra.spoken(access.bounds[1]))


def _beyond(inference: Inference, points: isl.Set, access: AxisAccess) -> isl.Set:
    place = function_of(inference.algebra.expr(access.bounds[0]), points)
    beyond = points.intersect(place.ge_set(function_of(_extent(inference, access), points)))
    return beyond.intersect_params(inference.algebra.context)


def _report_lost(
    inference: Inference, lost: Mapping[int, isl.Set], first: AxisAccess, meant: isl.Set, hint: str
) -> None:
    context = inference.algebra.context
    allowed = context.subtract(lost[id(first)].params())
    for points in lost.values():
        allowed = allowed.subtract(points.params())
    condition = sizes_condition(allowed, context)
    largest = _largest(inference, meant, first)
    known = condition is not None
    reached = "" if largest is None else f" {(inference.number if known else inference.text)(largest)}"
    extent = (inference.number if known else inference.text)(first.bounds[1])
    fact = (
        f"{first.place(inference)} reaches position{reached}, but its first statement{_source(inference)} has given "
        f"{inference.label(first.tensor)} the extent {extent} there"
    )
    if condition is not None:
        inference.require(condition, f"{fact}\n{hint}", first.span, assumed=False)
    else:
        inference.fault(fact, first.span, hint=hint)


def _source(inference: Inference) -> str:
    span = inference.sketch.sized
    return f", `{span.text}`," if span is not None and span.text else ""


def _largest(inference: Inference, points: isl.Set, access: AxisAccess) -> Polynomial | None:
    known = points.intersect_params(inference.algebra.context)
    place = isl.Map.from_pw_aff(function_of(inference.algebra.expr(access.bounds[0]), known))
    ends = ends_of(inference, place.intersect_domain(known).range(), 0)
    return None if ends is None else ends[1]


def _hint(inference: Inference, trial: Inference, written: list[AxisAccess], wanted: isl.Set) -> str:
    """How to declare the target; ``trial`` does not know of the extents that its present ones must equal."""
    label = inference.label(inference.sketch.target.tensor)
    extents = [spoken(trial, _needed(inference, trial, access, wanted)) for access in written]
    return (
        f"declare `{label}` before that statement, with all its cells, as in `{label} = output({', '.join(extents)})`, "
        "or leave points out by a condition"
    )


def _needed(inference: Inference, trial: Inference, access: AxisAccess, wanted: isl.Set) -> Polynomial:
    extent = access.extent
    assert extent is not None
    if access.form is None or not access.form.quasi_affine:
        return extent
    largest = _largest(trial, wanted, access)
    known = any(True for _ in extent.sizes())
    if largest is None or (known and inference.algebra.zero(largest + 1 - extent)):
        return extent
    algebra = trial.algebra
    # A number of cells that a first statement has given by fixed indices is no number that is meant.
    if algebra.nonnegative(largest + 1 - extent) or not known:
        return largest + 1
    return extent if algebra.nonnegative(extent - largest - 1) else algebra.extreme([largest + 1, extent], largest=True)
