"""The same numbers in other memory: Fortran order, strides, negative strides, read-only."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["laid_out"]


def laid_out(array: np.ndarray, pick: Callable[[int, int], int]) -> np.ndarray:
    """``array`` with a layout that ``pick(low, high)`` chooses; contiguous most often."""
    form = pick(0, 9)
    if form == 5 and array.ndim:
        return np.asfortranarray(array)
    if form == 6 and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
        wide[..., 1::2] = array
        return wide[..., 1::2]
    if form == 7 and array.ndim:
        return np.ascontiguousarray(array[::-1])[::-1]
    if form == 8:
        frozen = array.copy()
        frozen.flags.writeable = False
        return frozen
    if form == 9 and array.ndim > 1:
        return np.ascontiguousarray(np.moveaxis(array, 0, -1)[..., ::-1])[..., ::-1].transpose(
            -1, *range(array.ndim - 1)
        )
    return array
