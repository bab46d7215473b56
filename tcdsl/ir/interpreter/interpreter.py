"""The reference interpreter: a program, executed as it stands.

::

    interpret(matmul, [A, B]).outputs[0]

It does what the nodes say, in the order in which they stand, in float64, with none of what lowering does: obvious, and
what everything else is compared with. A statement's value is computed at all points (`point_values`) and then goes to
their cells, point by point (`tensor_values`). It shares range inference with the compiler, so it says nothing about
that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, DtypeError, raise_diagnostics
from tcdsl.ir.dtypes import same_kind
from tcdsl.ir.interpreter.tensor_values import TensorValues
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes

__all__ = ["Interpretation", "interpret"]


@dataclass(frozen=True, slots=True)
class Interpretation:
    """What a program computed: its outputs in order, and for each input that it updates, the new array."""

    outputs: list[np.ndarray]
    updates: dict[str, np.ndarray]


def interpret(program: Program, inputs: Sequence[Any]) -> Interpretation:
    """``interpret(program, [A, B])``: run ``program`` on arrays, which it does not change.

    Floats are computed in float64 and rounded to their declared type only in the results; an input that is declared as
    one floating type may be given as another. Raises `ShapeError` as `tcdsl.ir.sizes.size_binding.SizePlan` does, or
    where a statement that promises to write each cell once does not; `DtypeError` for arrays of another kind;
    `DataIndexError` for indices read from data.
    """
    given = [np.asarray(array) for array in inputs]
    sizes = bind_sizes(program, [array.shape for array in given])
    _check_types(program, given)
    values = TensorValues(program, given, sizes)
    for tensor in program.tensors:
        values(tensor.name)
    with np.errstate(all="ignore"):
        return Interpretation(
            [values(name).astype(program.tensor(name).dtype) for name in program.outputs],
            {name: values(new).astype(program.tensor(name).dtype) for name, new in program.updates},
        )


def _check_types(program: Program, given: Sequence[np.ndarray]) -> None:
    raise_diagnostics(
        [
            Diagnostic(
                DtypeError,
                f"{tensor.label or tensor.name} is declared as {tensor.dtype}, but the array given is {array.dtype}",
                tensor.span,
            )
            for tensor, array in zip(program.inputs, given, strict=True)
            if not same_kind(str(array.dtype), tensor.dtype)
        ]
    )
