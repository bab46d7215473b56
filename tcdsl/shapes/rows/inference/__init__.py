"""Shape inference: constraints between the rows of shapes, solved while a graph is built. See the README."""

from __future__ import annotations

from tcdsl.shapes.rows.inference.closing import close
from tcdsl.shapes.rows.inference.einsum import einsum
from tcdsl.shapes.rows.inference.keeping import keeping
from tcdsl.shapes.rows.inference.operations import compose, equal, pointwise, stores_into, transpose
from tcdsl.shapes.rows.inference.origin import Origin
from tcdsl.shapes.rows.inference.shape import Axis, Shape, known, number, parameter, scalar, unknown
from tcdsl.shapes.rows.inference.undoing import all_or_nothing

__all__ = [
    "Axis",
    "Origin",
    "Shape",
    "all_or_nothing",
    "close",
    "compose",
    "einsum",
    "equal",
    "keeping",
    "known",
    "number",
    "parameter",
    "pointwise",
    "scalar",
    "stores_into",
    "transpose",
    "unknown",
]
