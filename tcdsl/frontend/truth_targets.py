"""``|=`` and ``&=`` onto numbers that exist already: a cell that the statement writes becomes 0 or 1, the others stay.

::

    T[i] |= x[i, k] > 0       found[i] |= x[i, k] > 0         (bool, starts false)
                              touched[i] |= true              (the same points)
                              T[i] = (T[i] != 0 or found[i]) where touched, else T[i]

Accumulators or and and combine truth values; a numeric cell would have to be converted before the first of them.
"""

from __future__ import annotations

from dataclasses import replace

from tcdsl.frontend.environment import Builder
from tcdsl.frontend.sharing import fresh_name
from tcdsl.frontend.symbols import SymbolicTensor
from tcdsl.ir.build import apply, cast, constant, index, truth
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Boundary, Expr, Read
from tcdsl.ir.program import Access, Neutral
from tcdsl.shapes.sketch import Sketch

__all__ = ["record_truth"]


def record_truth(sketch: Sketch, target: SymbolicTensor, builder: Builder) -> SymbolicTensor:
    """Record ``sketch``, which accumulates truth values anew in the shape of ``target``, onto ``target``."""
    span = sketch.span
    found = builder.record(sketch, target.label)
    # `fst` keeps the accesses of the value, so that the points are the same.
    always = Apply("fst", (truth(True), sketch.value), "bool", span)
    access = replace(sketch.target, tensor=builder.new_version(f"{target.label}_touched"))
    touched = builder.record(replace(sketch, target=access, accumulate="or", value=always), target.label)
    taken = set(builder.size_names())
    variables = tuple(fresh_name(f"axis_{k}", taken) for k in range(target.rank))
    indices = tuple(index(variable) for variable in variables)

    def cell(tensor: SymbolicTensor) -> Expr:
        dtype = compute_dtype(tensor.dtype)
        return Read(tensor.name, indices, (Boundary.SKIP,) * len(indices), dtype, span=span)

    held = cell(target)
    before = apply("ne", held, constant(0, held.dtype), span=span)
    result = apply("or_" if sketch.accumulate == "or" else "and_", before, cell(found), span=span)
    value = apply("where", cell(touched), cast(result, held.dtype, span), held, span=span)
    name = builder.new_version(target.label)
    whole = Sketch(
        Access(name, indices, span),
        target.dtype,
        target.extents,
        "existing",
        "assign",
        Neutral(),
        value,
        variables,
        label=target.label,
        span=span,
    )
    return builder.record(whole, target.label)
