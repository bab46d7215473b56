"""Index expressions as domains need them: sizes that isl cannot hold are named, and what is not affine counts as data.

``A[i + N*M]`` becomes ``A[i + N_times_M]``; the index of ``A[i // N]`` or ``A[i * j]`` is checked at run time like
one that is read. So is that of ``y[t - 3] = x[t]`` in a round ``t`` under a condition on data: that it holds in no
round for which the index is out of range, only the call can tell.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.build import cast
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Constant,
    Expr,
    Read,
    SizeValue,
    index_variables,
    is_affine_index,
    size_names,
    transform,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.text.domain_text import domain_name, is_domain_name
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.ranges.sketches.inference_state import Inference
from tcdsl.ranges.sketches.sketch import Sketch, renamed_free

__all__ = ["normalized_sketch"]

_DATA_BOUNDARIES = {"check": Boundary.CHECK, "skip": Boundary.SKIP, "clamp": Boundary.CLAMP}


def normalized_sketch(inference: Inference) -> Sketch:
    """The sketch with sizes in indices named and boundaries of data indices as the sketch's ``oob`` asks."""
    sketch = _with_other_names(inference.sketch)

    def rule(node: Expr) -> Expr:
        return _normalized_read(inference, node) if isinstance(node, Read) else node

    named = [_named(inference, transform(index, rule)) for index in sketch.target.indices]
    indices = (
        index if extent is None or not _may_be_left(inference, index, extent) else cast(index, INTEGER)
        for index, extent in zip(named, sketch.extents, strict=True)
    )
    return replace(
        sketch,
        target=replace(sketch.target, indices=tuple(indices)),
        value=transform(sketch.value, rule),
        conditions=tuple(transform(condition, rule) for condition in sketch.conditions),
        filters=tuple(transform(condition, rule) for condition in sketch.filters),
    )


def _with_other_names(sketch: Sketch) -> Sketch:
    # Those of reductions get other names where they are collected.
    names: dict[str, str] = {}
    free = FreshNames(filter(is_domain_name, sketch.variables))
    for name in sketch.variables:
        if not is_domain_name(name):
            names[name] = free.fresh(domain_name(name))
    if not names:
        return sketch

    def other(expr: Expr) -> Expr:
        return renamed_free(expr, names)

    ranges = (
        replace(r, variable=names.get(r.variable, r.variable), low=other(r.low), high=other(r.high))
        for r in sketch.ranges
    )
    return replace(
        sketch,
        target=replace(sketch.target, indices=tuple(map(other, sketch.target.indices))),
        value=other(sketch.value),
        variables=tuple(names.get(name, name) for name in sketch.variables),
        ranges=tuple(ranges),
        conditions=tuple(map(other, sketch.conditions)),
        filters=tuple(map(other, sketch.filters)),
    )


def _normalized_read(inference: Inference, read: Read) -> Read:
    indices = []
    boundaries = []
    shape = inference.scope.tensor(read.tensor).shape
    named = (_named(inference, index) for index in read.indices)
    for index, extent, boundary in zip(named, shape, read.boundaries, strict=True):
        by_data = not _has_form(inference, index) or _may_be_left(inference, index, extent)
        if boundary is Boundary.SKIP and is_affine_index(index) and by_data:
            index, boundary = cast(index, INTEGER), _DATA_BOUNDARIES[inference.sketch.oob]
        indices.append(index)
        boundaries.append(boundary)
    if tuple(indices) == read.indices and tuple(boundaries) == read.boundaries:
        return read
    return replace(read, indices=tuple(indices), boundaries=tuple(boundaries))


def _has_form(inference: Inference, index: Expr) -> bool:
    try:
        inference.algebra.form(index)
    except NotAffine:
        return False
    return True


def _may_be_left(inference: Inference, index: Expr, extent: Expr) -> bool:
    # Whether it is what is added to the number of a round that may be out of range, where data decides if that runs.
    if not size_names(index) or index_variables(index) or inference.sketch.mode == "valid":
        return False
    rounds, said = inference.scope.undecided_rounds
    numbers = size_names(index) & rounds
    if not numbers or not is_affine_index(index) or not _has_form(inference, index):
        return False
    algebra = inference.trial().algebra
    for condition in said:
        algebra.assume(condition)
    position, end = algebra.form(index), algebra.extent(extent)
    counted = position
    for name in numbers:
        counted = counted.substituted(SizeValue(name), Polynomial.number(0))
    counted = position - counted
    ends = (position, counted), (end - position - 1, end - counted - 1)
    return any(algebra.nonnegative(part) and not algebra.nonnegative(whole) for whole, part in ends)


def _named(inference: Inference, index: Expr) -> Expr:
    # Only sums of sizes are named; index variables keep the form in which they were written.
    def rule(node: Expr) -> Expr:
        if node.dtype != "int64" or index_variables(node) or not _opaque(node):
            return node
        try:
            return inference.algebra.expr(inference.algebra.form(node))
        except NotAffine:
            return node

    return transform(index, rule)


def _opaque(node: Expr) -> bool:
    # A product of sizes or a quotient by one, which isl cannot hold.
    if not isinstance(node, Apply):
        return False
    left_right = node.arguments
    if node.primitive == "mul":
        return not any(isinstance(argument, Constant) for argument in left_right)
    return node.primitive in ("floor_div", "mod") and not isinstance(left_right[1], Constant)
