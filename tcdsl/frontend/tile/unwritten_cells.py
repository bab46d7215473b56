"""What cells hold that a statement of Tile does not write: 0, or cells of a default.

Sums start at 0. Of other accumulators the sizes may say that all cells are written or none, and so where they start;
else a second statement keeps what is written::

    O[n] >= I[m, n]             O[n] max= I[m, n]    from -inf, or from 0 where M is 0

    O[2 * i] >= I[i]            O_1[2 * i] max= I[i]
                                O[i] = O_1[i]        over the cells that the first one writes, from 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import islpy as isl

from tcdsl.errors import ShapeError
from tcdsl.frontend.arrays.arithmetic import axes, element_of, record_elementwise
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.stores.partial_resets import record_choice, record_touched
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value, as_truth, cast_value
from tcdsl.ir.build import apply, constant, index, neutral_constant, truth
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Start, Statement, Tensor
from tcdsl.polyhedra.affine import NotAffine, expression_of_condition
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.spaces import named, parameter_names
from tcdsl.polyhedra.writes import affine_target, cell_map
from tcdsl.ranges.range_inference import resolve
from tcdsl.ranges.sketches.sketch import Sketch

__all__ = ["record_with_unwritten_cells"]


def record_with_unwritten_cells(session: Session, sketch: Sketch, default: Any) -> SymbolicTensor:
    """Record ``sketch``; cells that it does not write are those of ``default``, or 0 if that is ``None``."""
    if default is None:
        start = _start_by_sizes(session, sketch)
        if start is not None:
            return session.builder.record(replace(sketch, start=start), sketch.label)
    return _with_unwritten_cells(session, sketch, session.builder.record(sketch, sketch.label), default)


def _written_cells(statement: Statement, variables: Sequence[str]) -> isl.Set | None:
    # The cells that a statement writes; None where data or products of sizes decide.
    if statement.condition is not None or not affine_target(statement):
        return None
    return named(cell_map(statement.domain.set, statement.target.indices).range(), variables)


def _start_by_sizes(session: Session, sketch: Sketch) -> Start | None:
    # What all cells start from, if for each choice of sizes all of them are written or none is.
    resolved = resolve(sketch, session.builder)
    variables = axes(session, len(sketch.extents))
    written = _written_cells(resolved.statements[-1], variables)
    if written is None:
        return None
    whole = box(variables, resolved.tensors[-1].shape)
    context = session.builder.known().about(parameter_names(whole.intersect(written)))
    unwritten = whole.intersect_params(context).subtract(written)
    if unwritten.is_empty():
        return sketch.start
    sizes = unwritten.params()
    if not written.intersect_params(sizes).is_empty():
        return None
    try:
        nothing = expression_of_condition(sizes.gist(context).coalesce())
    except NotAffine:
        return None
    dtype = compute_dtype(sketch.dtype)
    return Fill(apply("where", nothing, constant(0, dtype), neutral_constant(sketch.accumulate, dtype)))


def _with_unwritten_cells(session: Session, sketch: Sketch, made: SymbolicTensor, default: Any) -> SymbolicTensor:
    # `made` with 0, or cells of the default, where the statement of the sketch has written nothing.
    builder, span = session.builder, sketch.span
    statement = builder.recording.statements[-1]
    kept = None if default is None else _as_start(session, sketch, made, default)
    variables = axes(session, made.rank)
    written = _written_cells(statement, variables)
    if written is None:
        return _chosen_by_flags(session, sketch, made, kept)
    whole = box(variables, made.extents)
    if whole.intersect_params(builder.known().about(parameter_names(whole.intersect(written)))).is_subset(written):
        return made
    start: Start = Neutral() if kept is None else Keep(kept.name)
    indices = tuple(map(index, variables))
    name = builder.fresh_name(sketch.label)
    builder.add_statement(
        Statement(
            Access(name, indices, span),
            "assign",
            start,
            made.cell(indices, span).expr,
            Domain.from_set(written),
            span=span,
        ),
        Tensor(name, made.element_type, made.extents, "" if name == sketch.label else sketch.label, span),
    )
    return SymbolicTensor(builder, name, made.element_type, made.extents, sketch.label)


def _as_start(session: Session, sketch: Sketch, made: SymbolicTensor, default: Any) -> SymbolicTensor:
    extents = default.extents
    if (extents, default.element_type) == (made.extents, made.element_type):
        return default  # type: ignore[no-any-return]
    if len(extents) != len(made.extents):
        raise ShapeError.at(
            f"the default of `{sketch.label}` has rank {len(extents)}, not {len(made.extents)}",
            sketch.span,
            "`use_default` takes a tensor of the output's shape",
        )
    for axis, (given, wanted) in enumerate(zip(extents, made.extents, strict=True)):
        message = f"the default of `{sketch.label}` has the extent {valued(given)} on axis {axis}, not {valued(wanted)}"
        session.builder.require_equal(given, wanted, message, sketch.span)
    # It starts from a tensor of the same type and the same extents, and not only of equal ones.
    value, _ = element_of(default, session)
    return record_elementwise(session, cast_value(value, made.element_type), made.extents, f"{sketch.label}_default")


def _chosen_by_flags(
    session: Session, sketch: Sketch, made: SymbolicTensor, kept: SymbolicTensor | None
) -> SymbolicTensor:
    # Where no set says which cells are written, flags do.
    builder, dtype = session.builder, made.element_type
    if kept is None:
        zero = Value(constant(0, compute_dtype(dtype)), None, dtype)
        kept = record_elementwise(session, zero, made.extents, sketch.label)
    # Always true, with the accesses of the value, which say at which points.
    value = as_truth(Value(sketch.value, None, dtype))
    always = Apply("fst", (truth(True), value.expr), "bool", sketch.span)
    touched = record_touched(sketch, made, always, builder)
    return record_choice(touched, kept, lambda cell: cell(made), sketch, builder)
