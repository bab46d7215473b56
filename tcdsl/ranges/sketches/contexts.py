"""What is known about the sizes that one statement uses: the rest of a large program would only slow isl down."""

from __future__ import annotations

from collections.abc import Iterable

import islpy as isl

from tcdsl.ir.expressions import Read, SizeValue, size_names, walk
from tcdsl.ir.program import AxisExtent
from tcdsl.polyhedra.scope import ProgramScope
from tcdsl.polyhedra.spaces import parameter_names
from tcdsl.ranges.sketches.sketch import Sketch

__all__ = ["sketch_sizes", "statement_context"]

# Projecting costs more than it saves where only a few sizes could go.
_FEW = 6


def sketch_sizes(sketch: Sketch, scope: ProgramScope) -> frozenset[str]:
    """The names of the sizes in a sketch and in the shapes of the tensors that it reads."""
    found: set[str] = set()
    extents = (extent for extent in sketch.extents if extent is not None)
    ends = (end for given in sketch.ranges for end in (given.low, given.high))
    for expr in (*sketch.target.indices, *extents, *ends, sketch.value, *sketch.conditions, *sketch.filters):
        for node in walk(expr):
            if isinstance(node, SizeValue):
                found.add(node.name)
            elif isinstance(node, Read):
                found.update(name for extent in scope.tensor(node.tensor).shape for name in size_names(extent))
    return frozenset(found)


def statement_context(scope: ProgramScope, names: Iterable[str]) -> isl.Set:
    """The scope's context as far as it speaks of ``names`` and of the sizes made from them; exact for those."""
    context = scope.context()
    parameters = parameter_names(context)
    if len(parameters) <= _FEW:
        return context
    keep = set(names)
    for name in parameters:  # an expression's sizes are defined before it
        source = scope.size(name).source
        if isinstance(source, AxisExtent):
            continue
        used = size_names(source)
        if name in keep:
            keep |= used
        elif used & keep:
            keep.add(name)
    drop = [k for k, name in enumerate(parameters) if name not in keep]
    if len(drop) <= _FEW:
        return context
    while drop:
        last = drop.pop()
        count = 1
        while drop and drop[-1] == last - count:
            drop.pop()
            count += 1
        context = context.project_out(isl.dim_type.param, last - count + 1, count)
    return context
