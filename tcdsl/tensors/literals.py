"""Leaves of graphs: data, numbers and N-dimensional literals.

::

    tc.tensor(x, batch=1)                   # 100 | -> 2     an array whose first axis is the batch
    tc.tensor([(1, 2, 3), (4, 5, 6)])       # 3 -> 2         lists are output axes, tuples input axes
    tc.tensor(batch([[1, 2], [3, 4]]))      # 2 | -> 2       batch axes
    tc.number(2.0, label="q")               # one output axis of size 1, with a label on the dimension
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, DtypeError, ShapeError
from tcdsl.frontend.given_arrays import given_array, require_plain
from tcdsl.frontend.operators import ArithmeticOperators
from tcdsl.frontend.session import current_session, session_of
from tcdsl.frontend.stacking import regrouped
from tcdsl.frontend.symbols import SymbolicArray, SymbolicSize
from tcdsl.ir.dtypes import is_floating
from tcdsl.shapes.rows.inference import known
from tcdsl.shapes.rows.inference import number as number_shape
from tcdsl.tensors.element_types import type_name
from tcdsl.tensors.initialization import Given
from tcdsl.tensors.location import user_location
from tcdsl.tensors.tensor import Tensor
from tcdsl.tracebacks import user_facing

__all__ = ["Batch", "batch", "literal_array", "number", "tensor"]


@dataclass(frozen=True, slots=True)
class Batch:
    """A level of a literal that is a batch axis: ``batch([[1, 2], [3, 4]])``, in the literal spelling ``[| |]``."""

    parts: tuple[Any, ...]


@user_facing
def batch(parts: Any) -> Batch:
    """Mark a level of a literal as a batch axis: ``tc.tensor(batch([[1, 2], [3, 4]]))`` has the shape ``2 | -> 2``."""
    return Batch(tuple(parts))


def _fault(kind: Any, fact: str, hint: str) -> Exception:
    return Diagnostic(kind, fact, user_location(), hint=hint).error()


def _level(value: Any) -> str | None:
    if isinstance(value, Batch):
        return "batch"
    if isinstance(value, list):
        return "output"
    return "input" if isinstance(value, tuple) else None


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array__") and not isinstance(value, Tensor | np.generic | type)


def _axes(value: Any) -> list[tuple[str, int]]:
    """The rows and sizes of a literal's levels, from the outside in; they must be the same everywhere."""
    row = _level(value)
    if row is None:
        # Arrays in a literal have output axes, as lists of their cells have.
        return [("output", size) for size in value.shape] if _is_array(value) else []
    parts = value.parts if isinstance(value, Batch) else value
    inner = [_axes(part) for part in parts]
    if any(each != inner[0] for each in inner[1:]):
        raise _fault(
            ShapeError,
            "the parts of a literal have different shapes",
            "all parts of one level have the same lists, tuples and lengths",
        )
    return [(row, len(parts)), *(inner[0] if inner else [])]


def _flat(value: Any) -> list[Any]:
    if _level(value) is None:
        array = given_array(value, "x", span=user_location()) if _is_array(value) else None
        return [value] if array is None else list(array.ravel())
    parts = value.parts if isinstance(value, Batch) else value
    return [cell for part in parts for cell in _flat(part)]


def literal_array(value: Any) -> tuple[np.ndarray, tuple[int, int, int]]:
    """The cells of a literal in the order of storage, and how many batch, output and input axes it has."""
    axes = _axes(value)
    order = {"batch": 0, "output": 1, "input": 2}
    cells = _flat(value)
    array = np.array(cells).reshape([size for _, size in axes])
    if array.dtype.kind not in "bifu":
        raise _fault(
            DtypeError, "a literal holds something that is no number", "write numbers, or tensors of one shape"
        )
    stored = sorted(range(len(axes)), key=lambda k: order[axes[k][0]])
    counts = [sum(row == name for row, _ in axes) for name in ("batch", "output", "input")]
    return np.ascontiguousarray(array.transpose(stored)), (counts[0], counts[1], counts[2])


def _holds_tensors(value: Any) -> bool:
    return any(isinstance(cell, Tensor) for cell in _flat(value))


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
    stacked. The data is copied; of a tensor, and in an op of what it has computed, only the rows change. ``grad`` makes
    it differentiable. Raises `ShapeError` for more axes than there are.
    """
    made: Tensor
    if not isinstance(label, str):
        raise _fault(DtypeError, f"{label!r} as a label", 'a label is a string, as in label="x"')
    _check_counts(batch, input)
    if isinstance(value, Tensor | SymbolicArray):
        made = _in_rows(value, batch, input)
        return made
    if _level(value) is not None:
        if _holds_tensors(value):
            made = _in_rows(_stacked(value), batch, input)
            return made
        array, ranks = literal_array(value)
        if batch or input:
            if ranks[0] or ranks[2]:
                raise _fault(ShapeError, "the literal says itself which axes are which", "leave out batch and input")
            ranks = (batch, array.ndim - batch - input, input)
    else:
        array = _data(value, label or "x", dtype)
        ranks = (batch, array.ndim - batch - input, input)
    _check_ranks(batch, input, array.ndim)
    if dtype is not None:
        array = array.astype(type_name(dtype))
    if grad and not is_floating(str(array.dtype)):
        raise _fault(DtypeError, f"a gradient of {array.dtype} data", "convert it: dtype='float64'")
    sizes = array.shape
    output, inputs = ranks[0], ranks[0] + ranks[1]
    rows = known(sizes[output:inputs], sizes[inputs:], sizes[:output], name=label or "tensor")
    return Tensor((label or "tensor",), rows, str(array.dtype), initial=Given(array), differentiable=grad)


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
        raise _fault(
            ShapeError,
            f"{batch} batch and {inputs} input axes of an array of rank {rank}",
            "batch axes lead, input axes trail, and what is between are output axes",
        )


def _check_counts(*counts: object) -> None:
    for each in counts:
        if isinstance(each, bool) or not isinstance(each, int | np.integer):
            raise _fault(ShapeError, f"{each!r} as a number of axes", "write an integer, as in batch=1")


def _in_rows(value: Any, batch: int, inputs: int) -> Any:
    # What is computed already keeps its rows unless others are stated.
    if not batch and not inputs:
        return value
    _check_ranks(batch, inputs, value.ndim)
    if isinstance(value, SymbolicArray):
        return regrouped(session_of("tensor()"), value, batch, inputs)
    return value.builder.algebra.regrouped(value, batch, inputs)


def _stacked(value: Any) -> Tensor:
    # From the inside out: each level is a new axis in front of those of its row.
    row = _level(value)
    if row is None:
        if isinstance(value, Tensor):
            return value
        return tensor(np.asarray(value, float if isinstance(value, float) else None))
    parts = [_stacked(part) for part in (value.parts if isinstance(value, Batch) else value)]
    made: Tensor = parts[0].builder.algebra.stacked(parts, row)
    return made


@user_facing
def number(value: Any, *, label: str = "") -> Any:
    """A number as a tensor with one output axis of size 1; ``label`` names the dimension, and propagates.

    It takes the floating type of what it meets. Where a function is staged, a number without a label is a weak scalar:
    ``number(learning_rate) * g``, in the literal spelling ``!.learning_rate *. g``.
    """
    if not isinstance(value, ArithmeticOperators | int | float | np.number):
        raise _fault(DtypeError, f"{value!r} as a number", "tc.tensor(...) makes tensors of arrays and literals")
    if isinstance(value, ArithmeticOperators):
        is_integer = isinstance(value, SymbolicSize) or getattr(value, "weak_kind", "float") != "float"
        return value * 1.0 if is_integer else value
    if current_session() is not None and not label:
        return float(value)
    rows = known(((label, 1),)) if label else number_shape()
    return Tensor((f"{value:g}",), rows, None, initial=Given(np.array([value])))


def sizes_of(given: Any) -> tuple[int, ...]:
    """``o=3`` and ``o=(3, 4)`` alike as sizes. `ShapeError` for what is no size."""
    values: Sequence[Any] = given if isinstance(given, tuple | list) else (given,)
    sizes = []
    for value in values:
        if isinstance(value, bool) or not hasattr(value, "__index__") or value.__index__() < 0:
            raise _fault(ShapeError, f"{value!r} as the size of an axis", "sizes are integers, 0 or more")
        sizes.append(int(value.__index__()))
    return tuple(sizes)
