"""What stands in a statement: cells of tensors, ``A[i, k]``, and what combines them.

::

    O[i, j] += A[i, k] * B[k, j]        cells, multiplied; also `+`, `==` and `cond(a, b, c)`
    O[n] >= I[m, n]                     a statement too: `>=` is max and `<=` is min

An `IndexedTensor` whose tensor is an output without a statement is what a statement writes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.staging.held_memory import held
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.operators import BoundLater, IndexSymbol, StatementSymbol
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.frontend.tile.index_expressions import IndexExpression, as_index
from tcdsl.frontend.tile.sizes import kind_of
from tcdsl.frontend.tile.user_lines import fault, location
from tcdsl.span import Span
from tcdsl.tracebacks import user_facing

__all__ = ["Cells", "Combined", "IndexedTensor", "access", "cond"]

_ELEMENTWISE = "a statement combines cells by `*`, `+`, `==` and `cond(a, b, c)`"
_NUMBERS = bool | int | float | np.generic | SymbolicNumber | SymbolicSize


def _elementwise(written: str) -> Any:
    def method(self: Cells, *others: object) -> Any:
        raise fault(
            DslSyntaxError,
            f"`{written}` of cells in a statement",
            f"{_ELEMENTWISE}; elementwise operations take whole tensors, in a statement of their own: `D = A - B`",
        )

    return method


class Cells(StatementSymbol):
    """What a statement computes at each point."""

    __slots__ = ("span",)
    __array_ufunc__ = None
    __hash__ = object.__hash__

    span: Span | None

    def __add__(self, other: object) -> Any:
        return Combined("add", self, other)

    def __radd__(self, other: object) -> Any:
        return Combined("add", other, self)

    def __mul__(self, other: object) -> Any:
        return Combined("mul", self, other)

    def __rmul__(self, other: object) -> Any:
        return Combined("mul", other, self)

    def __eq__(self, other: object) -> Any:
        return Combined("eq", self, other)

    __sub__ = __rsub__ = _elementwise("-")
    __neg__ = _elementwise("-")
    __truediv__ = __rtruediv__ = _elementwise("/")
    __floordiv__ = __rfloordiv__ = _elementwise("//")
    __mod__ = __rmod__ = _elementwise("%")
    __pow__ = __rpow__ = _elementwise("**")
    __lt__, __gt__, __ne__ = _elementwise("<"), _elementwise(">"), _elementwise("!=")
    __and__, __or__, __xor__ = _elementwise("&"), _elementwise("|"), _elementwise("^")
    __ge__, __le__ = _elementwise(">="), _elementwise("<=")
    __abs__, __invert__ = _elementwise("abs"), _elementwise("~")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise fault(
            DslSyntaxError,
            "cells of a statement as an array",
            "indices stand in statements, `O[i] = A[i]`; a whole tensor is converted without them",
        )


class Combined(Cells):
    """Cells that a primitive combines; ``cond`` is the third where the first two are equal, and 0 elsewhere."""

    __slots__ = ("parts", "primitive")

    def __init__(self, primitive: str, *parts: object) -> None:
        self.primitive = primitive
        self.parts = tuple(map(as_cells, parts))
        self.span = location()


class Number(Cells):
    """A number in a statement."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value.bound() if isinstance(value, BoundLater) else value
        self.span = location()


class IndexedTensor(Cells):
    """``tensor[indices]``, in the order of the tensor's own axes."""

    __slots__ = ("indices", "tensor")

    def __init__(self, tensor: Any, indices: tuple[IndexExpression, ...]) -> None:
        self.tensor = tensor
        self.indices = indices
        self.span = location()

    def _store(self, accumulate: str, value: object, written: str) -> Any:
        contract = getattr(self.tensor, "contract", None)
        if contract is None:
            raise fault(
                DslSyntaxError,
                f"`{written}` writes to a tensor that is no TensorOutput",
                "make the target first: `O = TensorOutput(N)`, one for each statement",
            )
        return contract(accumulate, self, value)

    @user_facing
    def __ge__(self, other: object) -> Any:
        return self._store("max", other, ">=")

    @user_facing
    def __le__(self, other: object) -> Any:
        return self._store("min", other, "<=")

    @user_facing
    def __iadd__(self, other: object) -> Any:
        return self._store("add", other, "+=")

    @user_facing
    def __imul__(self, other: object) -> Any:
        return self._store("multiply", other, "*=")

    def _no_aggregation(self, other: object) -> Any:
        raise fault(
            DslSyntaxError,
            "no such aggregation",
            "a statement is written with `+=` (sum), `*=` (product), `>=` (max), `<=` (min) or `=`",
        )

    __isub__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = __imatmul__ = _no_aggregation
    __iand__ = __ior__ = __ixor__ = __ilshift__ = __irshift__ = _no_aggregation


def access(tensor: Any, key: Any) -> IndexedTensor:
    """``tensor[key]``, one index for each axis. `ShapeError` for another number of indices."""
    given = tuple(key) if isinstance(key, tuple | list) else (key,)
    indices = tuple(map(as_index, given))
    rank = tensor.rank
    if len(indices) != rank:
        count = "1 index" if len(indices) == 1 else f"{len(indices)} indices"
        called = getattr(tensor, "called", None)
        label = (getattr(tensor, "label", "") or "the tensor") if called is None else called()
        if called is not None:
            made = "TensorOutput()" if rank == 0 else f"TensorOutput(...) with {rank} size{'s' * (rank > 1)}"
            fact = f"{count} on `{label}`, which {made} has made of rank {rank}"
            hint = "give TensorOutput one size for each index: `O = TensorOutput(N)`, `O[n] += ...`"
        else:
            fact = f"{count} on `{label}`, which has rank {rank}"
            hint = "write one index for each axis"
        raise fault(ShapeError, fact, hint)
    lens = getattr(tensor, "lens", None)
    # The statement is recorded later: memory counts as it is now.
    return IndexedTensor(held(tensor), indices if lens is None else lens.stored(indices))


def as_cells(value: object) -> Cells:
    """A part of a statement: cells, or a number, or a tensor of rank 0."""
    if isinstance(value, Cells):
        return value
    if isinstance(value, SymbolicArray | GraphTensor):
        if value.ndim:  # type: ignore[union-attr]
            label = getattr(value, "label", "") or "a tensor"
            raise fault(
                DslSyntaxError, f"`{label}` stands in a statement without indices", "write its cells: `A[i, j]`"
            )
        return IndexedTensor(value, ())
    if isinstance(value, IndexSymbol):
        raise fault(
            DslSyntaxError,
            "an index as a value in a statement",
            "`index(dims, axis)` is the tensor that holds the positions along an axis",
        )
    if isinstance(value, _NUMBERS):
        return Number(value)
    raise fault(DslSyntaxError, f"{kind_of(value)} in a statement", f"{_ELEMENTWISE}, and numbers")


@user_facing
def cond(left: object, right: object, value: object) -> Combined:
    """``O[i] >= cond(A[i, j], M[i], C[j])``: cells of ``value`` where ``left`` and ``right`` are equal, 0 elsewhere."""
    return Combined("cond", left, right, value)
