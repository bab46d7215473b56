"""Numba's types for the element types, and the wide integers that indices may need."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import models, register_model

from tcdsl.ir.dtypes import DTYPES, WIDE_INTEGERS

__all__ = ["WideInteger", "dtype_of", "type_of"]


class WideInteger(types.Type):
    """``WideInteger("int128")``: signed integers of more than 64 bits."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        super().__init__(name=dtype)


@register_model(WideInteger)
class _WideIntegerModel(models.PrimitiveModel):
    def __init__(self, data_model_manager: Any, kind: WideInteger) -> None:
        super().__init__(data_model_manager, kind, ir.IntType(int(kind.dtype.removeprefix("int"))))


_TYPES = {dtype: types.boolean if dtype == "bool" else getattr(types, dtype) for dtype in DTYPES}
_TYPES.update((dtype, WideInteger(dtype)) for dtype in WIDE_INTEGERS)
_DTYPES = {kind: dtype for dtype, kind in _TYPES.items()}


def type_of(dtype: str) -> Any:
    """Numba's type of a value of ``dtype``."""
    return _TYPES[dtype]


def dtype_of(kind: Any) -> str | None:
    """The element type that Numba calls ``kind``; ``None`` for anything else."""
    return _DTYPES.get(kind)
