"""Updates of the cells that a statement reaches, where that is not known before: flags, and a choice by them.

::

    touched[f(i)] |= true                       the cells that the points of a statement reach
    T[i] = new[i] where touched[i], else T[i]   every cell once
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.build import apply, cast, index
from tcdsl.ir.expressions import Expr
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Access, Neutral
from tcdsl.ranges.sketches.sketch import Sketch

__all__ = ["Cells", "record_choice", "record_touched"]

Cells = Callable[[SymbolicTensor], Expr]
"""The cell of a tensor, of the target's shape, that is being chosen."""


def record_touched(sketch: Sketch, target: SymbolicTensor, value: Expr, builder: ProgramBuilder) -> SymbolicTensor:
    """Record which cells the points of ``sketch`` reach, as a bool tensor of the shape of ``target``.

    ``value`` is true; its accesses are those that a point needs.
    """
    access = replace(sketch.target, tensor=builder.fresh_name(f"{target.label}_touched"))
    flags = replace(sketch, target=access, dtype="bool", accumulate="or", start=Neutral(), value=value)
    return builder.record(replace(flags, previous="", resets=True), target.label)


def record_choice(
    touched: SymbolicTensor,
    target: SymbolicTensor,
    chosen: Callable[[Cells], Expr],
    sketch: Sketch,
    builder: ProgramBuilder,
) -> SymbolicTensor:
    """Record ``chosen`` in the cells of ``target`` that are ``touched``; the others keep what they hold."""
    names = FreshNames(builder.size_names())
    variables = tuple(names.fresh(f"axis_{k}") for k in range(target.rank))
    indices = tuple(index(variable) for variable in variables)

    def cell(tensor: SymbolicTensor) -> Expr:
        return tensor.cell(indices, sketch.span).expr

    held = cell(target)
    value = apply("where", cell(touched), cast(chosen(cell), held.dtype, sketch.span), held, span=sketch.span)
    whole = Sketch(
        Access(builder.fresh_name(target.label), indices, sketch.span),
        target.element_type,
        target.extents,
        "existing",
        "assign",
        Neutral(),
        value,
        variables,
        label=target.label,
        span=sketch.span,
    )
    made = builder.record(whole, target.label)
    builder.written.same(made.name, target.name)
    return made
