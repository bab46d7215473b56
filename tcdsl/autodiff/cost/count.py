"""The operation count of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcdsl.autodiff.cost.operations import OperationCount
from tcdsl.autodiff.cost.statement_cost import StatementCounter
from tcdsl.autodiff.cost.tensors import TensorValues
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes

__all__ = ["count_operations"]


def count_operations(program: Program, inputs: Sequence[Any]) -> OperationCount:
    """``count_operations(matmul, [A, B])``: the operations that ``program`` executes on these arrays.

    Exact, and quick where conditions and indices are affine: then the arrays' values are never looked at, and
    ``np.broadcast_to(0.0, shape)`` stands for an array of any size. What depends on data is found from the data.
    `tcdsl.autodiff.cost.operations` says what counts. Raises `ShapeError` and `DataIndexError` as a call would.
    """
    arrays = [np.asarray(array) for array in inputs]
    sizes = bind_sizes(program, [array.shape for array in arrays])
    counter = StatementCounter(program, TensorValues(program, arrays, sizes))
    for statement in program.statements:
        counter.add(statement)
    return OperationCount.of(counter.operations)
