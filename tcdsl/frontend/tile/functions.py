"""Functions of whole tensors: elementwise ones, `select`, `cast`, `shape`, `index` and `gather`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.arrays.row_alignment import axis_variable
from tcdsl.frontend.names.language_functions import PrimitiveFunction
from tcdsl.frontend.staging.session import Session, current_session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor, algebra_of
from tcdsl.frontend.symbols.operators import BoundLater
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray
from tcdsl.frontend.symbols.values import Value
from tcdsl.frontend.tile.cells import Cells
from tcdsl.frontend.tile.sizes import extent_expression, kind_of, known_size
from tcdsl.frontend.tile.user_lines import fault
from tcdsl.ir.build import index as index_variable
from tcdsl.ir.dtypes import DTYPES
from tcdsl.tracebacks import user_facing

__all__ = [
    "DType",
    "TileFunction",
    "axis_of",
    "cast",
    "checked_dims",
    "gather",
    "record_index",
    "select",
    "shape",
]


class TileFunction(PrimitiveFunction):
    """An elementwise function. What is a builtin of that name in Python is it for numbers and lists of Python's."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Apply it to tensors, sizes and numbers."""
        if any(isinstance(each, Cells) for each in arguments):
            raise fault(
                DslSyntaxError,
                f"`{self.__name__}` of cells in a statement",
                f"elementwise functions take whole tensors, in a statement of their own: `E = {self.__name__}(A)`",
            )
        given = [each.bound() if isinstance(each, BoundLater) else each for each in arguments]
        return super().__call__(*given, **keywords)

    def _computed(self, *arguments: Any, **keywords: Any) -> Any:
        plain = getattr(builtins, self.__name__, None)
        if plain is not None and not any(isinstance(each, np.ndarray) for each in arguments):
            return plain(*arguments, **keywords)
        return super()._computed(*arguments, **keywords)


class DType(Enum):
    """Element types by their names in Tile."""

    BOOLEAN = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT8 = "uint8"
    UINT16 = "uint16"
    UINT32 = "uint32"
    UINT64 = "uint64"
    FLOAT16 = "float16"
    FLOAT32 = "float32"
    FLOAT64 = "float64"


def _known(value: Any) -> Any:
    return value.bound() if isinstance(value, BoundLater) else value


@user_facing
def select(condition: Any, true: Any, false: Any) -> Any:
    """``select(A < 0.0, 0.0, A)``: cells of ``true`` where the condition holds, of ``false`` elsewhere."""
    operands = [_known(each) for each in (condition, true, false)]
    algebra = algebra_of(operands)
    return np.where(*operands) if algebra is None else algebra.combine("where", *operands)


@user_facing
def cast(tensor: Any, dtype: Any) -> Any:
    """``cast(A, DType.FLOAT32)``: the tensor converted; types of NumPy and their names are taken too."""
    name = dtype.value if isinstance(dtype, DType) else getattr(dtype, "__tcdsl_name__", dtype)
    try:
        name = str(np.dtype(name))
    except TypeError:
        name = str(name)
    if name not in DTYPES:
        raise fault(DtypeError, f"{dtype!r} is no element type", "write one of `DType`, such as `DType.FLOAT32`")
    tensor = _known(tensor)
    algebra = algebra_of((tensor,))
    session = current_session()
    if algebra is None and session is not None:
        algebra = session.builder.algebra
    return np.asarray(tensor).astype(name) if algebra is None else algebra.cast(tensor, name)


@user_facing
def shape(tensor: Any) -> Any:
    """``shape(A)``: the sizes of a tensor as a tensor of rank 1 of integers."""
    algebra = algebra_of((tensor,))
    if algebra is None:
        return np.array(np.shape(tensor), "int64")
    made = algebra.literal(list(tensor.shape))
    return made if tensor.ndim else algebra.cast(made, "int64")


def checked_dims(dims: Any) -> tuple[Any, ...]:
    """Sizes that a function is given, a list or tuple of them, one alone, or a tensor, whose sizes they are."""
    if isinstance(dims, SymbolicArray | GraphTensor):
        return tuple(dims.shape)  # type: ignore[union-attr]
    given = tuple(dims) if isinstance(dims, list | tuple) else (dims,)
    sizes = tuple(map(known_size, given))
    for each, size in zip(given, sizes, strict=True):
        if size is None:
            raise fault(DslSyntaxError, f"{kind_of(each)} as a size", "sizes are integers and `TensorDim`s: `(N, M)`")
        if isinstance(size, int) and size < 0:
            raise fault(ShapeError, f"a size of {size}", "sizes are 0 or more")
    return sizes


def axis_of(axis: Any, rank: int, what: str) -> int:
    """The axis, counted from the end where it is negative. `ShapeError` for one that a tensor of this rank lacks."""
    number = known_size(axis)
    if not isinstance(number, int) or not -rank <= number < rank:
        shown = number if isinstance(number, int) else type(axis).__name__
        hint = f"axes are {-rank} to {rank - 1}" if rank else "it has no axes"
        raise fault(ShapeError, f"{what} along axis {shown} of a tensor of rank {rank}", hint)
    return number % rank


def record_index(sizes: Sequence[Any], axis: int, session: Session, _: Sequence[Any]) -> PendingArray:
    """The positions along ``axis`` in a tensor of these sizes."""
    place = index_variable(axis_variable(len(sizes) - 1 - axis))
    return PendingArray(session.builder, Value(place, None, "int64"), tuple(map(extent_expression, sizes)))


@user_facing
def gather(tensor: Any, indices: Any, axis: Any = 0) -> Any:
    """``gather(X, Y, axis=1)``: the parts of ``X`` at the positions along ``axis`` that ``Y`` holds.

    The axes of ``Y`` stand in the place of that axis. A position out of range is an error when it is computed.
    """
    algebra = algebra_of((tensor, indices))
    if algebra is None:
        try:
            return np.take(tensor, indices, axis)
        except (TypeError, ValueError) as error:
            raise fault(DtypeError, f"`gather`: {error}", "give an array, and positions, which are integers") from None
    rank = tensor.ndim
    chosen = axis_of(axis, rank, "gather")
    # As one operation, so that a tensor of integers among the indices is one of the graph too.
    return algebra.operation("gather", (tensor, indices), partial(_record_gather, chosen))


def _record_gather(axis: int, session: Session, given: Sequence[Any]) -> Any:
    tensor, indices = given
    return session.builder.algebra.view(tensor, (*(slice(None),) * axis, indices))
