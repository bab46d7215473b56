"""Leaves of graphs: data, numbers and N-dimensional literals.

::

    tc.tensor(x, batch=1)                   # 100 | -> 2     an array whose first axis is the batch
    tc.tensor([(1, 2, 3), (4, 5, 6)])       # 3 -> 2         lists are output axes, tuples input axes
    tc.tensor(batch([[1, 2], [3, 4]]))      # 2 | -> 2       batch axes
    tc.number(2.0, label="q")               # one output axis of size 1, with a label on the dimension
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DtypeError, ShapeError
from tcdsl.frontend.arrays.array_literals import (
    Batch,
    axes_of_literal,
    batch,
    is_literal,
    leaves_of,
    level_of,
    literal_array,
    parts_of,
)
from tcdsl.frontend.staging.given_arrays import given_array, labels_of, require_plain
from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.operators import ArithmeticOperators
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicSize
from tcdsl.ir.dtypes import is_floating
from tcdsl.rows.inference import known
from tcdsl.rows.inference import number as number_shape
from tcdsl.tensors.graphs.element_types import type_name
from tcdsl.tensors.graphs.initialization import Given
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import NodeArray, Tensor
from tcdsl.tracebacks import user_facing, user_location

__all__ = ["Batch", "batch", "literal_array", "number", "tensor"]


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(cell, Tensor) for cell in leaves_of(value))


@user_facing
def tensor(
    value: Any,
    *,
    batch: int = 0,
    input: int = 0,  # the row's name
    label: str = "",
    dtype: Any = None,
    grad: bool = False,
) -> Tensor:
    """A leaf that holds data: ``x = tc.tensor(array, batch=1)``.

    ``batch`` says how many leading axes are batch axes and ``input`` how many trailing ones are input axes. In nested
    literals lists are output axes, tuples input axes and `batch` marks batch axes; tensors among the leaves are
    stacked. What ``p.value`` gives has the rows of ``p``, unless others are stated. The data is copied; a tensor, and
    in an op what it has computed, is the same with what is stated changed.
    ``grad`` makes data differentiable. Raises `ShapeError` for more axes than there are.
    """
    if not isinstance(label, str):
        raise fault(DtypeError, f"{label!r} as a label", 'a label is a string, as in label="x"')
    _check_counts(batch, input)
    if isinstance(value, Tensor | SymbolicArray):
        return _restated(value, batch, input, label, dtype, grad)
    if is_literal(value):
        if _holds_tensors(value):
            axes_of_literal(value, user_location())
            return _restated(_stacked(value), batch, input, label, dtype, grad)
        staged = next((leaf for leaf in leaves_of(value) if isinstance(leaf, ArithmeticOperators)), None)
        if staged is not None:
            return _restated(staged.builder.algebra.literal(value), batch, input, label, dtype, grad)
        array, ranks = literal_array(value, user_location())
        if batch or input:
            if ranks[0] or ranks[2]:
                raise fault(ShapeError, "the literal says itself which axes are which", "leave out batch and input")
            ranks = (batch, array.ndim - batch - input, input)
    else:
        array = _data(value, label or "x", dtype)
        ranks = (batch, array.ndim - batch - input, input)
        if isinstance(value, NodeArray) and not batch and not input:
            ranks = value.ranks or ranks
    _check_ranks(batch, input, array.ndim)
    if dtype is not None:
        array = array.astype(type_name(dtype))
    if grad and not is_floating(str(array.dtype)):
        raise fault(DtypeError, f"a gradient of {array.dtype} data", "convert it: dtype='float64'")
    sizes = array.shape
    output, inputs = ranks[0], ranks[0] + ranks[1]
    rows = known(sizes[output:inputs], sizes[inputs:], sizes[:output], name=label or "tensor")
    return Tensor(
        (label or "tensor",), rows, str(array.dtype), initial=Given(array, labels_of(value)), differentiable=grad
    )


def _data(value: Any, label: str, dtype: Any) -> np.ndarray:
    context, place = "tc.tensor(): ", user_location()
    if dtype is not None and isinstance(value, np.ndarray) and value.dtype.kind in "fiubO":
        # What is to be converted may be of any type that holds numbers, such as one of another byte order.
        require_plain(value, label, context, place)
        return np.array(value, type_name(dtype), order="C")
    array = given_array(value, label, context, place)
    if array is None:
        array = given_array(np.asarray(value), label, context, place)
    return np.array(array, order="C")


def _check_ranks(batch: int, inputs: int, rank: int) -> None:
    if min(batch, inputs, rank - batch - inputs) < 0:
        raise fault(
            ShapeError,
            f"{batch} batch and {inputs} input axes of an array of rank {rank}",
            "batch axes lead, input axes trail, and what is between are output axes",
        )


def _check_counts(*counts: object) -> None:
    for each in counts:
        if isinstance(each, bool) or not isinstance(each, int | np.integer):
            raise fault(ShapeError, f"{each!r} as a number of axes", "write an integer, as in batch=1")


def _restated(value: Any, batch: int, inputs: int, label: str, dtype: Any, grad: bool) -> Tensor:
    # What is computed already keeps its rows, type and label unless others are stated.
    if grad and not getattr(value, "differentiable", False):
        hint = "make what it is computed from with grad=True, or a leaf: tc.tensor(t.value, grad=True)"
        raise fault(DtypeError, "a gradient of what is computed from other data", hint)
    made: Any = value
    if batch or inputs:
        _check_ranks(batch, inputs, value.ndim)
        made = value.builder.algebra.regrouped(value, batch, inputs)
    if dtype is not None:
        made = made.builder.algebra.cast(made, type_name(dtype))
    if label and isinstance(made, Tensor):
        made = made.builder.algebra.combine("id", made)
        made.labels, made.labelled = (label,), True
    result: Tensor = made
    return result


def _stacked(value: Any) -> Tensor:
    # From the inside out: each level is a new axis in front of those of its row.
    row = level_of(value)
    if row is None:
        if isinstance(value, Tensor):
            return value
        return tensor(np.asarray(value, float if isinstance(value, float) else None))
    parts = [_stacked(part) for part in parts_of(value)]
    made: Tensor = parts[0].builder.algebra.stacked(parts, row)
    return made


@user_facing
def number(value: Any, *, label: str = "") -> Any:
    """A number as a tensor with one output axis of size 1; ``label`` names the dimension, and propagates.

    It takes the floating type of what it meets. Where a function is staged, a number without a label is a weak scalar:
    ``number(learning_rate) * g``, in the literal spelling ``!.learning_rate *. g``.
    """
    if not isinstance(value, ArithmeticOperators | int | float | np.number):
        raise fault(DtypeError, f"{value!r} as a number", "tc.tensor(...) makes tensors of arrays and literals")
    if isinstance(value, ArithmeticOperators):
        is_integer = isinstance(value, SymbolicSize) or getattr(value, "weak_kind", "float") != "float"
        return value * 1.0 if is_integer else value
    if current_session() is not None and not label:
        return float(value)
    rows = known(((label, 1),)) if label else number_shape()
    return Tensor((f"{value:g}",), rows, None, initial=Given(np.array([value])))


def sizes_of(given: Any) -> tuple[int | None, ...]:
    """``o=3`` and ``o=(3, 4)`` alike as sizes; None is one that inference finds. `ShapeError` for what is no size."""
    values: Sequence[Any] = given if isinstance(given, tuple | list) else (given,)
    sizes: list[int | None] = []
    for value in values:
        if value is None:
            sizes.append(None)
            continue
        if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
            raise fault(ShapeError, f"{value!r} as the size of an axis", "sizes are integers, 0 or more")
        sizes.append(int(value.__index__()))
    return tuple(sizes)
