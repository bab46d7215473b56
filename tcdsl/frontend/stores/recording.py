"""Stores as sketches, and sketches as statements of the program: what all ways to write a tensor statement share.

``|=`` and ``&=`` onto numbers that exist already are three statements: a cell that is written becomes 0 or 1, the
others stay::

    T[i] |= x[i, k] > 0       found[i] |= x[i, k] > 0         (bool, starts false)
                              touched[i] |= true              (the same points)
                              T[i] = (T[i] != 0 or found[i]) where touched, else T[i]

Accumulators or and and combine truth values; a numeric cell would have to be converted before the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.target_states import Existing, TargetState
from tcdsl.frontend.stores.chosen_cells import Cells, record_choice, record_touched
from tcdsl.frontend.stores.partial_resets import record_partial_reset
from tcdsl.frontend.stores.stores import TargetStore
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import apply, constant, truth
from tcdsl.ir.expressions import Apply, Expr
from tcdsl.ir.program import Access
from tcdsl.ranges.sketches.sketch import Sketch

__all__ = ["record_sketch", "sketch_of"]


def sketch_of(
    state: TargetState, stored: TargetStore, target: Access, value: Expr, variables: Sequence[str], **parts: Any
) -> Sketch:
    """The sketch of a statement that stores ``value`` as ``stored`` says; ``parts`` are further fields of `Sketch`."""
    return Sketch(
        target,
        stored.dtype,
        (None,) * len(target.indices) if state.extents is None else state.extents,
        state.mode,
        stored.accumulate,
        stored.start,
        value,
        tuple(variables),
        label=state.label,
        previous=state.previous,
        weak=stored.weak,
        sized=state.sized,
        **parts,
    )


def record_sketch(sketch: Sketch, state: TargetState, builder: ProgramBuilder) -> SymbolicTensor:
    """Record ``sketch`` onto a target in ``state``, and return the new version of the target."""
    if isinstance(state, Existing) and sketch.dtype != state.tensor.dtype:
        return _record_truth(sketch, state.tensor, builder)
    if isinstance(state, Existing) and sketch.restarts is not None:
        return record_partial_reset(sketch, state.tensor, builder)
    return builder.record(sketch, state.label)


def _record_truth(sketch: Sketch, target: SymbolicTensor, builder: ProgramBuilder) -> SymbolicTensor:
    # The sketch accumulates truth values anew in the shape of the target.
    found = builder.record(sketch, target.label)
    # `fst` keeps the accesses of the value, so that the points are the same.
    always = Apply("fst", (truth(True), sketch.value), "bool", sketch.span)
    touched = record_touched(sketch, target, always, builder)

    def combined(cell: Cells) -> Expr:
        held = cell(target)
        before = apply("ne", held, constant(0, held.dtype), span=sketch.span)
        return apply("or_" if sketch.accumulate == "or" else "and_", before, cell(found), span=sketch.span)

    return record_choice(touched, target, combined, sketch, builder)
