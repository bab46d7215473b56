"""Stores as sketches, and sketches as statements of the program: what all ways to write a tensor statement share.

``|=`` and ``&=`` onto numbers that exist already are three statements: a cell that is written becomes 0 or 1, the
others stay::

    T[i] |= x[i, k] > 0       found[i] |= x[i, k] > 0         (bool, starts false)
                              touched[i] |= true              (the same points)
                              T[i] = (T[i] != 0 or found[i]) where touched, else T[i]

Accumulators or and and combine truth values; a numeric cell would have to be converted before the first of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.target_states import Existing, TargetState
from tcdsl.frontend.stores.chosen_cells import Cells, record_choice, record_touched
from tcdsl.frontend.stores.partial_resets import record_partial_reset
from tcdsl.frontend.stores.stores import TargetStore
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import apply, constant, truth
from tcdsl.ir.expressions import Apply, Expr, IndexValue, Read, walk
from tcdsl.ir.program import Access
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.rows.ranks import RowRanks

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
    if not isinstance(state, Existing):
        made = builder.record(sketch, state.label)
        made.rows = _rows(sketch, builder.rows)
        return made
    if sketch.dtype != state.tensor.dtype:
        made = _record_truth(sketch, state.tensor, builder)
    elif sketch.restarts is not None:
        made = record_partial_reset(sketch, state.tensor, builder)
    else:
        made = builder.record(sketch, state.label)
    made.rows = state.tensor.rows
    return made


def _rows(sketch: Sketch, rows: Callable[[str], RowRanks | None]) -> RowRanks:
    # Of a new target: `y[n, o] += x[n, i] * w[o, i]` where x has a batch axis and an output axis has the batch axis n.
    # Leading axes that are indexed by a variable which runs over a batch axis of something read are batch axes,
    # trailing ones indexed by a variable of an input axis are input axes; the others are output axes.
    row_of: dict[str, str] = {}
    for node in walk(sketch.value):
        known = rows(node.tensor) if isinstance(node, Read) else None
        if isinstance(node, Read) and known is not None:
            for axis, row in zip(node.indices, known.tags, strict=True):
                if isinstance(axis, IndexValue) and row != "output":
                    row_of.setdefault(axis.name, row)
    indices = sketch.target.indices
    found = [row_of.get(axis.name, "output") if isinstance(axis, IndexValue) else "output" for axis in indices]
    batch = next((k for k, row in enumerate(found) if row != "batch"), len(found))
    inputs = next((k for k, row in enumerate(reversed(found[batch:])) if row != "input"), len(found) - batch)
    return RowRanks(batch, len(found) - batch - inputs, inputs)


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
