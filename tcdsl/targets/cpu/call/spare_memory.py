"""The memory of large temporaries and results, which waits for the next call; the system may have it back at any time.

The system clears fresh memory page by page, which takes longer than most of what calls then do with it. So the last
blocks are kept, and of large ones the system is told that nobody needs what they hold: where it needs the pages for
others, it takes them, and the next call gets cleared ones. The block of a result waits from when nothing refers to the
array any more. To tell that takes as long as a pass over small pages: smaller blocks are few instead.
"""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable
from math import prod
from sys import getrefcount
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.lowering.loop_passes.placement import ALIGNMENT

__all__ = ["MANY_CELLS", "aligned", "array_of", "block_of", "spare"]

Array = np.ndarray[Any, np.dtype[Any]]

_SMALL = 1 << 17  # Bytes from which on the C library gives memory back to the system.
MANY_CELLS = _SMALL // 8
"""Arrays with fewer are smaller than that."""
_LARGE = 1 << 22  # Bytes from which on pages are large ones.
_HUGE = 1 << 21  # Bytes of a large page.
_MOST = 8  # Blocks that wait.
_MOST_BYTES = 1 << 30  # What they hold, of all but the last two.
_TIMES = 4  # A block may be so many times as large as what is wanted of it.

_FREE = getattr(mmap, "MADV_FREE", None)
_LARGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)

_waiting: deque[Array] = deque()

# Blocks that are not large, with the place of their first cache line: the last ones, also while they are in use.
_recent: deque[tuple[Array, int]] = deque()
_MOST_RECENT = 32
_MOST_RECENT_BYTES = 1 << 24


def aligned(make: Callable[..., Array], shape: tuple[int, ...], dtype: str) -> Array:
    """``aligned(np.zeros, (3, 4), "float32")``: a row-major array that begins on a cache line.

    Vectors that are loaded from it straddle no two lines.
    """
    kind = numpy_dtype(dtype)
    count = kind.itemsize * prod(shape)
    memory = make(count + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + count].view(kind).reshape(shape)


def _references(block: tuple[Array, int]) -> int:
    return getrefcount(block[0])


_UNUSED = _references((np.empty(0, np.uint8), 0))  # References of a block that has no view.


def _view(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> Array:
    # An array in one of the recent blocks. Other threads take blocks meanwhile, but none that is not in the queue.
    for _ in range(len(_recent)):
        try:
            block = _recent.popleft()
        except IndexError:
            break
        fits = _references(block) == _UNUSED and size <= block[0].size - ALIGNMENT <= _TIMES * size
        found = np.ndarray(shape, dtype, *block) if fits else None
        _recent.append(block)
        if found is not None:
            return found
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    found = np.ndarray(shape, dtype, memory, start)
    _recent.append((memory, start))
    held = sum([each.size for each, _start in tuple(_recent)])
    while len(_recent) > _MOST_RECENT or held > _MOST_RECENT_BYTES:
        try:
            held -= _recent.popleft()[0].size
        except IndexError:  # taken by another thread
            break
    return found


def block_of(size: int) -> Array:
    """Memory of at least ``size`` bytes, which begins on a cache line and holds anything."""
    if _SMALL <= size < _LARGE:
        return _view((size,), np.dtype(np.uint8), size)
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
    if _SMALL <= size < _LARGE:
        return _view(shape, dtype, size)
    if size < _LARGE or _FREE is None:
        return np.empty(shape, dtype)
    return np.asarray(_Result(block_of(size), shape, dtype))
