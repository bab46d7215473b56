"""Where the temporaries of a call lie in the block that holds them all."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

__all__ = ["ALIGNMENT", "aligned_count", "placed"]

ALIGNMENT = 64
"""Temporaries begin on a cache line."""


def placed(counts: Sequence[int], lives: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """The offset of each, and the size of the block, for temporaries of so many bytes that live from nest to nest.

    The largest ones come first, each at the lowest place that is free: where no temporary that lives at the same
    time as this one lies. Placing by size keeps the block close to the largest number of bytes that live at once,
    which no order can go below.
    """
    offsets = [0] * len(counts)
    found: list[tuple[int, int, tuple[int, int]]] = []
    size = 0
    for k in sorted(range(len(counts)), key=lambda k: -counts[k]):
        count, life = counts[k], lives[k]
        offset = 0
        for begin, end, other in found:
            # In the order of their places, so the first gap that is long enough is the lowest.
            if other[0] <= life[1] and life[0] <= other[1]:
                if begin >= offset + count:
                    break
                offset = max(offset, end)
        offsets[k] = offset
        end = offset + aligned_count(count)
        if count and life[0] <= life[1]:
            insort(found, (offset, end, life))
            size = max(size, end)
    return offsets, size


def aligned_count(count: int) -> int:
    """So many bytes, up to the next place where a temporary may begin."""
    return -(-count // ALIGNMENT) * ALIGNMENT
