"""Shape inference: constraints between the rows of shapes, solved while a graph is built. See the README."""

from __future__ import annotations

from tcdsl.rows.inference.closing import close
from tcdsl.rows.inference.result_shapes import compose, einsum, equate, pointwise, transpose
from tcdsl.rows.inference.variables.origin import Origin
from tcdsl.rows.inference.variables.shape import Axis, Shape, known, number, parameter, scalar
from tcdsl.rows.inference.variables.transaction import all_or_nothing, keeping

__all__ = [
    "Axis",
    "Origin",
    "Shape",
    "all_or_nothing",
    "close",
    "compose",
    "einsum",
    "equate",
    "keeping",
    "known",
    "number",
    "parameter",
    "pointwise",
    "scalar",
    "transpose",
]
