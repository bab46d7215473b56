"""Plain ``=`` writes each cell at most once: every index variable on the target, and a target map that is one-to-one.

A map that is not one-to-one for any sizes is a fault (``O[i // 2]``), unless in the degenerate case that an index
variable has at most one value; one that depends on sizes is checked at the call (``O[i*P + p]`` for p < Q: ``Q <=
P``). Where no set can say what sizes do to it (``O[(i + 2) % N]``), the statement marks the cells that it writes; one
that depends on cells at index variables needs ``assign(..., unique=True)``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import islpy as isl

from tcdsl.errors import DslSyntaxError
from tcdsl.ir.accumulators import CHOICES
from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import Expr, IndexValue, Local, Read, index_variables, substitute, walk
from tcdsl.polyhedra.affine import equated, function_of, sizes_condition
from tcdsl.polyhedra.mixed_radix import digits, splits
from tcdsl.polyhedra.size_algebra import SizeInterval
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.polyhedra.spaces import arranged, twice
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import free_variables
from tcdsl.ranges.sketches.sketch_accesses import AxisAccess
from tcdsl.ranges.solving.regions import Region, ends_of

__all__ = ["check_variables_on_target", "is_injective"]

_CHOICES_OF_VALID = "`+=` (sum), `*=` (product), `>=` (max) or `<=` (min)"
_UNIQUE = 'assign(y[p[i]], "=:", x[i], unique=True) checks at run time that no cell is written twice'


def check_variables_on_target(inference: Inference, variables: Sequence[str]) -> bool:
    """Whether all index variables of the statement stand on the target; a fault for those that do not."""
    target = inference.sketch.target
    written = frozenset().union(*map(free_variables, target.indices))
    missing = [name for name in variables if name not in written]
    if missing:
        listed = ", ".join(f"`{name}`" for name in missing)
        are = "is" if len(missing) == 1 else "are"
        inference.fault(
            f"`=` writes each cell once, but {listed} {are} not on the target {inference.label(target.tensor)}",
            target.span,
            hint=f"say how the values over {listed} combine: {CHOICES}",
            kind=DslSyntaxError,
        )
    return not missing


def is_injective(
    inference: Inference, region: Region, accesses: Sequence[AxisAccess], intervals: Mapping[str, SizeInterval]
) -> bool:
    """Whether no two points of ``region`` write one cell, at least for the sizes that the assertions leave.

    If not, the statement has to look; a fault if it is wrong for all sizes, or depends on data.
    """
    outputs: list[Polynomial] = []
    open_axes: list[AxisAccess] = []
    known = region.points.intersect_params(inference.algebra.context)
    for access in accesses:
        found = None
        if access.form is not None:
            found = digits(inference.algebra, access.form, known)
            found = _asserted_digits(inference, access, known, intervals) if found is None else found
        if found is None:
            open_axes.append(access)
        else:
            outputs.extend(found)
    if _determined(outputs, region.variables):
        return True
    if open_axes:
        if not all(_of_variables(access.index) for access in open_axes):
            _report_data(inference)
        return False
    return _injective_map(inference, region, known, outputs)


def _of_variables(index: Expr) -> bool:
    # Whether index variables reach the index by arithmetic alone: a cell at none of them is one number for all points.
    nodes = list(walk(index))
    cells = [node for node in nodes if isinstance(node, Read) and index_variables(node)]
    return not cells and not any(isinstance(node, Local) for node in nodes)


def _determined(outputs: Sequence[Polynomial], variables: Sequence[str]) -> bool:
    # One output after the other with a single undetermined variable, in which it is linear, determines that variable.
    determined: set[str] = set()
    progress = True
    while progress:
        progress = False
        for form in outputs:
            open_variables = form.variables - determined
            if len(open_variables) == 1:
                (name,) = open_variables
                if form.linear_in(name) and form.coefficient(name).value:
                    determined.add(name)
                    progress = True
    return determined >= set(variables)


def _asserted_digits(
    inference: Inference, access: AxisAccess, known: isl.Set, intervals: Mapping[str, SizeInterval]
) -> list[Polynomial] | None:
    """Digits of an index with products under the assertion that they do not overlap: ``O[i*P + p]`` needs p to
    span at most P.
    """
    algebra = inference.algebra
    assert access.form is not None
    found = [each for each in splits(access.form) if len(each[0].terms) == 1 or algebra.nonnegative(each[0])]
    if not found:
        return None
    stride, high, low = min(found, key=lambda each: len(each[2].variables))
    span = _span(inference, low, known, intervals)
    leading = digits(algebra, high, known)
    if span is None or leading is None:
        return None
    _require_apart(inference, access, stride, span, high, intervals)
    return [*leading, low]


def _span(
    inference: Inference, form: Polynomial, known: isl.Set, intervals: Mapping[str, SizeInterval]
) -> Polynomial | None:
    algebra = inference.algebra
    least, most = (algebra.bound(form, intervals, largest) for largest in (False, True))
    if least is None or most is None:
        function = function_of(algebra.expr(form), known)
        values = isl.Map.from_pw_aff(function).intersect_domain(known).range()
        ends = ends_of(inference, values, 0)
        if ends is None:
            return Polynomial.number(0)
        least, most = ends
    return most - least


def _require_apart(
    inference: Inference,
    access: AxisAccess,
    stride: Polynomial,
    span: Polynomial,
    high: Polynomial,
    intervals: Mapping[str, SizeInterval],
) -> None:
    algebra = inference.algebra
    if algebra.nonnegative(stride - span - 1):
        return
    apart = apply("le", algebra.expr(span + 1), algebra.expr(stride))
    name = next(iter(high.variables)) if len(high.variables) == 1 else None
    if name is not None and name in intervals and not intervals[name].length.variables:
        apart = apply("or_", apart, apply("le", algebra.expr(intervals[name].length), integer(1)))
    spans, strides = inference.text(span + 1), inference.text(stride)
    message = (
        f"`=` writes each cell once, but {access.place(inference)} "
        f"meets cells again: its lower part spans {spans} cells, more than the stride {strides}"
    )
    inference.require(apart, f"{message}: {inference.values(span, stride)}", access.span)


def _injective_map(inference: Inference, region: Region, known: isl.Set, outputs: Sequence[Polynomial]) -> bool:
    algebra = inference.algebra
    pairs, others = twice(known)
    replacements: dict[Expr, Expr] = {
        index(name): index(other) for name, other in zip(region.variables, others, strict=True)
    }
    same = pairs
    for form in outputs:
        left = algebra.expr(form)
        right = substitute(left, replacements)
        pairs = equated(pairs, left, right)
    for variable in region.variables:
        same = equated(same, index(variable), replacements[IndexValue(variable)])
    wrong = pairs.subtract(same).params()
    if wrong.is_empty():
        return True
    shown = ", ".join(inference.text(part) for part in inference.sketch.target.indices)
    name = inference.label(inference.sketch.target.tensor)
    fact = f"`=` writes each cell once, but {name}[{shown}] is the same for different points"
    hint = f"say how the values combine: {_choices(inference)}"
    span = inference.sketch.target.span
    if region.tests:
        _report_data(inference)
        return False
    # Where extents are declared, sizes alone decide.
    if inference.sketch.mode != "valid" and _several_values(region, known).is_subset(wrong):
        inference.fault(fact, span, hint=hint)
        return False
    condition = sizes_condition(algebra.context.subtract(wrong), algebra.context)
    if condition is None:
        inference.fault(fact, span, hint=hint)
        return False
    values = inference.values(*outputs)
    inference.require(
        condition, f"{fact}, unless {inference.text(condition)}{': ' if values else ''}{values}\n{hint}", span
    )
    return True


def _choices(inference: Inference) -> str:
    return _CHOICES_OF_VALID if inference.sketch.mode == "valid" else CHOICES


def _several_values(region: Region, known: isl.Set) -> isl.Set:
    # The sizes for which every variable that can have more than one value has.
    sizes = known.params()
    for name in region.variables:
        pairs, (other,) = twice(arranged(known, (name,)))
        below = pairs.intersect(function_of(index(name), pairs).lt_set(function_of(index(other), pairs))).params()
        if not below.is_empty():
            sizes = sizes.intersect(below)
    return sizes


def _report_data(inference: Inference) -> None:
    target = inference.sketch.target
    inference.fault(
        f"`=` writes each cell once, but which cells of {inference.label(target.tensor)} are written depends on data",
        target.span,
        hint=f"say how the values combine, {_choices(inference)}, or promise that they do not meet: {_UNIQUE}",
    )
