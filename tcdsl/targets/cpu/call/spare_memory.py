"""The memory of large temporaries, which waits for the next call; the system may have it back at any time.

The system clears fresh memory page by page, which takes longer than most of what calls then do with it. So the last
blocks are kept, and the system is told that nobody needs what they hold: where it needs the pages for others, it takes
them, and the next call gets cleared ones.
"""

from __future__ import annotations

import mmap
from collections import deque
from typing import Any

import numpy as np

from tcdsl.targets.cpu.layout.aligned import aligned

__all__ = ["block_of", "spare"]

Array = np.ndarray[Any, np.dtype[Any]]

_LARGE = 1 << 22  # Bytes from which on pages are large ones; what is smaller, the C library keeps.
_MOST = 2  # Blocks that wait.
_TIMES = 4  # A block may be so many times as large as what is wanted of it.

_FREE = getattr(mmap, "MADV_FREE", None)
_LARGE_PAGES = getattr(mmap, "MADV_HUGEPAGE", None)

_waiting: deque[Array] = deque(maxlen=_MOST)


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
        pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
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
