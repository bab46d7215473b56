"""The memory of large temporaries and results, which waits for the next call; the system may have it back at any time.

The system clears fresh memory page by page, which takes longer than most of what calls then do with it. So the last
blocks are kept, and the system is told that nobody needs what they hold: where it needs the pages for others, it takes
them, and the next call gets cleared ones. The block of a result waits from when nothing refers to the array any more.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.lowering.loop_passes.placement import ALIGNMENT

__all__ = ["MANY_CELLS", "aligned", "array_of", "block_of", "spare"]

Array = np.ndarray[Any, np.dtype[Any]]

_LARGE = 1 << 22  # Bytes from which on pages are large ones; what is smaller, the C library keeps.
MANY_CELLS = _LARGE // 8
"""Arrays with fewer are none of the large ones."""
_HUGE = 1 << 21  # Bytes of a large page.
_MOST = 8  # Blocks that wait.
_MOST_BYTES = 1 << 30  # What they hold, of all but the last two.
_TIMES = 4  # A block may be so many times as large as what is wanted of it.

_FREE = getattr(mmap, "MADV_FREE", None)
_LARGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)

_waiting: deque[Array] = deque()


def aligned(make: Callable[..., Array], shape: tuple[int, ...], dtype: str) -> Array:
    """``aligned(np.zeros, (3, 4), "float32")``: a row-major array that begins on a cache line.

    Vectors that are loaded from it straddle no two lines.
    """
    kind = numpy_dtype(dtype)
    count = kind.itemsize * prod(shape)
    memory = make(count + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + count].view(kind).reshape(shape)


def block_of(size: int) -> Array:
    """Memory of at least ``size`` bytes, which begins on a cache line and holds anything."""
    if size < _LARGE or _FREE is None:
        return aligned(np.empty, (size,), "uint8")
    # Other threads take and leave blocks meanwhile.
    for _ in range(len(_waiting)):
        try:
            block = _waiting.popleft()
        except IndexError:
            break
        if size <= block.size <= _TIMES * size:
            return block
        _waiting.append(block)
    try:
        # What several processes could share has no large pages.
        pages = mmap.mmap(-1, -(-size // _HUGE) * _HUGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if _LARGE_PAGES is not None:
            pages.madvise(_LARGE_PAGES)
    except (OSError, OverflowError):  # too little memory, of which NumPy tells, or no large pages
        return aligned(np.empty, (size,), "uint8")
    return np.frombuffer(pages, np.uint8)


def spare(block: Array) -> None:
    """Nobody needs what ``block``, of `block_of`, holds any more: it waits for the next call."""
    pages = block.base.obj if isinstance(block.base, memoryview) else block.base
    if not isinstance(pages, mmap.mmap) or _FREE is None:
        return
    try:
        pages.madvise(_FREE)
    except OSError:  # a system that takes no pages back
        return
    _waiting.append(block)
    held = sum([each.size for each in tuple(_waiting)])
    while len(_waiting) > 2 and (len(_waiting) > _MOST or held > _MOST_BYTES):
        try:
            held -= _waiting.popleft().size
        except IndexError:  # taken by another thread
            return


class _Result:
    """What the memory of a result belongs to: the array's base, and that of all views of it."""

    __slots__ = ("__array_interface__", "_block", "_spare")

    def __init__(self, block: Array, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        place = block.__array_interface__["data"]
        self.__array_interface__ = {"version": 3, "shape": shape, "typestr": dtype.str, "data": place}
        self._block, self._spare = block, spare

    def __del__(self) -> None:
        self._spare(self._block)


def array_of(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An array that holds anything, like that of ``numpy.empty``."""
    size = dtype.itemsize * prod(shape)
    if size < _LARGE or _FREE is None:
        return np.empty(shape, dtype)
    return np.asarray(_Result(block_of(size), shape, dtype))
