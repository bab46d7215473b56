"""The element types, and NumPy 2's promotion among them.

dtypes are named by their NumPy names (``"float32"``), so that programs hash, print and pickle.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "DTYPES",
    "INTEGER",
    "WIDE_INTEGERS",
    "accumulation_dtype",
    "compute_dtype",
    "is_boolean",
    "is_floating",
    "is_integer",
    "numpy_dtype",
    "same_kind",
]

DTYPES: tuple[str, ...] = (
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
)

INTEGER = "integer"
"""The type of indices that are computed from data: integers of any size, whose arithmetic never overflows.

No array and no result has it. Lowering decides how many bits it takes (`tcdsl.lowering.loop_passes.index_widths`).
"""

WIDE_INTEGERS = tuple(f"int{bits}" for bits in range(128, 449, 64))
"""The types that lowering gives to index arithmetic that int64 may not hold."""


def numpy_dtype(dtype: str) -> np.dtype:
    """``numpy_dtype("float32")`` is ``np.dtype("float32")``."""
    return np.dtype(dtype)


def is_floating(dtype: str) -> bool:
    """Whether ``dtype`` is one of the floating types."""
    return dtype.startswith("float")


def is_integer(dtype: str) -> bool:
    """Whether ``dtype`` is a signed or unsigned integer type; bool is not."""
    return dtype.startswith(("int", "uint"))


def is_boolean(dtype: str) -> bool:
    """Whether ``dtype`` is bool."""
    return dtype == "bool"


def same_kind(source: str, target: str) -> bool:
    """Whether a value of type ``source`` may be stored as ``target`` (NumPy's ``same_kind`` rule)."""
    return bool(np.can_cast(np.dtype(source), np.dtype(target), casting="same_kind"))


def compute_dtype(dtype: str) -> str:
    """The type in which a value of ``dtype`` is computed: float16 is storage only, its arithmetic is float32."""
    return "float32" if dtype == "float16" else dtype


def accumulation_dtype(dtype: str) -> str:
    """The type of a fresh sum or product of ``dtype``: 64-bit for bool and small integers, as in ``np.sum``."""
    if is_boolean(dtype) or dtype.startswith("int"):
        return "int64"
    if dtype.startswith("uint"):
        return "uint64"
    return dtype
