"""Numba's types for the element types."""

from __future__ import annotations

from typing import Any

from numba import types

from tcdsl.ir.dtypes import DTYPES

__all__ = ["dtype_of", "type_of"]

_TYPES = {dtype: types.boolean if dtype == "bool" else getattr(types, dtype) for dtype in DTYPES}
_DTYPES = {kind: dtype for dtype, kind in _TYPES.items()}


def type_of(dtype: str) -> Any:
    """Numba's type of a value of ``dtype``."""
    return _TYPES[dtype]


def dtype_of(kind: Any) -> str | None:
    """The element type that Numba calls ``kind``; ``None`` for anything else."""
    return _DTYPES.get(kind)
