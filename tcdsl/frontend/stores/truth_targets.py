"""``|=`` and ``&=`` onto numbers that exist already: a cell that the statement writes becomes 0 or 1, the others stay.

::

    T[i] |= x[i, k] > 0       found[i] |= x[i, k] > 0         (bool, starts false)
                              touched[i] |= true              (the same points)
                              T[i] = (T[i] != 0 or found[i]) where touched, else T[i]

Accumulators or and and combine truth values; a numeric cell would have to be converted before the first of them.
"""

from __future__ import annotations

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.stores.chosen_cells import Cells, record_choice, record_touched
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import apply, constant, truth
from tcdsl.ir.expressions import Apply, Expr
from tcdsl.ranges.sketches.sketch import Sketch

__all__ = ["record_truth"]


def record_truth(sketch: Sketch, target: SymbolicTensor, builder: ProgramBuilder) -> SymbolicTensor:
    """Record ``sketch``, which accumulates truth values anew in the shape of ``target``, onto ``target``."""
    found = builder.record(sketch, target.label)
    # `fst` keeps the accesses of the value, so that the points are the same.
    always = Apply("fst", (truth(True), sketch.value), "bool", sketch.span)
    touched = record_touched(sketch, target, always, builder)

    def combined(cell: Cells) -> Expr:
        held = cell(target)
        before = apply("ne", held, constant(0, held.dtype), span=sketch.span)
        return apply("or_" if sketch.accumulate == "or" else "and_", before, cell(found), span=sketch.span)

    return record_choice(touched, target, combined, sketch, builder)
