"""Tile eDSL in Python: ``from tcdsl.tile import *``.

::

    def matmul(A, B):
        I, J, K = TensorDims(3)
        i, j, k = TensorIndexes(3)
        A.bind_dims(I, K)
        B.bind_dims(K, J)
        C = TensorOutput(I, J)
        C[i, j] += A[i, k] * B[k, j]
        return C

    op(matmul)(a, b)                                # arrays in, an array out
    np.asarray(matmul(Tensor(a), Tensor(b)))        # tensors in, a tensor out

The names ``abs``, ``max``, ``min``, ``pow`` and ``round`` hide Python's builtins, which they are for Python's numbers
and lists.
"""

from __future__ import annotations

import sys
from typing import Any

from tcdsl.frontend.tile.cells import cond
from tcdsl.frontend.tile.functions import DType, TileFunction, cast, gather, select, shape
from tcdsl.frontend.tile.index_expressions import TensorIndex, TensorIndexes
from tcdsl.frontend.tile.lenses import TensorLens
from tcdsl.frontend.tile.rearrangements import SortDirection, argsort, reshape, scatter
from tcdsl.frontend.tile.sizes import TensorDim, TensorDims
from tcdsl.tensors.tile.makers import Tensor, TensorOutput, index
from tcdsl.tracebacks import missing_name

__all__ = [
    "DType",
    "SortDirection",
    "Tensor",
    "TensorDim",
    "TensorDims",
    "TensorIndex",
    "TensorIndexes",
    "TensorLens",
    "TensorOutput",
    "abs",
    "acos",
    "acosh",
    "argsort",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "ceil",
    "cond",
    "cos",
    "cosh",
    "erf",
    "exp",
    "floor",
    "gather",
    "index",
    "log",
    "max",
    "min",
    "pow",
    "reshape",
    "round",
    "scatter",
    "select",
    "shape",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]

abs = TileFunction("abs")
ceil = TileFunction("ceil")
floor = TileFunction("floor")
round = TileFunction("round")
cos = TileFunction("cos")
sin = TileFunction("sin")
tan = TileFunction("tan")
cosh = TileFunction("cosh")
sinh = TileFunction("sinh")
tanh = TileFunction("tanh")
acos = TileFunction("acos")
asin = TileFunction("asin")
atan = TileFunction("atan")
acosh = TileFunction("acosh")
asinh = TileFunction("asinh")
atanh = TileFunction("atanh")
erf = TileFunction("erf")
exp = TileFunction("exp")
log = TileFunction("log")
max = TileFunction("max")
min = TileFunction("min")
pow = TileFunction("pow")
sqrt = TileFunction("sqrt")
sigmoid = TileFunction("sigmoid")


def __getattr__(name: str) -> Any:
    raise missing_name(f"module {__name__}", name, sys.modules[__name__], __all__)
