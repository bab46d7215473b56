"""The rows of what a statement in index notation makes.

::

    y[n, o] += x[n, i] * w[o, i]        x has a batch axis and an output axis: n is a batch axis of y

The leading axes of a new target that are indexed by a variable which runs over a batch axis of something read are batch
axes, the trailing ones indexed by a variable of an input axis are input axes; the others are output axes.
"""

from __future__ import annotations

from collections.abc import Callable

from tcdsl.ir.expressions import IndexValue, Read, walk
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.rows.ranks import RowRanks

__all__ = ["statement_rows"]


def statement_rows(sketch: Sketch, rows: Callable[[str], RowRanks | None]) -> RowRanks:
    """The rows of the target that ``sketch`` makes, from those of the tensors that it reads."""
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
