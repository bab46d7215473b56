"""Arrays that begin on a cache line, for vector loads that do not straddle two."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.lowering.loop_passes.placement import ALIGNMENT

__all__ = ["aligned"]

Array = np.ndarray[Any, np.dtype[Any]]


def aligned(make: Callable[..., Array], shape: tuple[int, ...], dtype: str) -> Array:
    """``aligned(np.zeros, (3, 4), "float32")``: a row-major array that begins on a cache line."""
    kind = numpy_dtype(dtype)
    count = kind.itemsize * prod(shape)
    memory = make(count + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + count].view(kind).reshape(shape)
