"""The driver: compiled code that runs a table of nests. Compiled once per machine, like a generated module.

A row of the table holds five words: the address of a nest, where its outermost loop begins and ends, the number of
blocks that the loop is cut into for threads, or 1 for a nest that runs as it is, and the address of its places. A nest
that fails writes its reason into the frame, and the driver stops; it returns the number of nests that ran to their end.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from tcdsl.codegen.compiling import compile_driver
from tcdsl.codegen.frame import EXCLUSIVE, PLACES_WORD, STATUS_WORD
from tcdsl.codegen.native import call_nest, load_int, load_word, store_word

__all__ = ["bind", "execute"]


def _execute(table: int, nests: int, frame: int) -> int:
    status = frame + 8 * STATUS_WORD
    places = frame + 8 * PLACES_WORD
    for n in range(nests):
        row = table + 40 * n
        store_word(places, load_word(row + 32))
        call_nest(load_word(row), load_word(row + 8), load_word(row + 16), frame)
        if load_word(status) != 0:
            return n
    return nests


@njit(inline="always")
def _extent(frame: int, row: int) -> tuple[int, int]:
    # The bytes from the first to behind the last cell.
    slot = frame + 8 * load_word(row)
    itemsize = load_word(row + 24)
    low = high = load_word(slot)
    for axis in range(load_word(row + 8)):
        extent = load_word(row + 40 + 8 * axis)
        if extent == 0:
            return low, low
        reach = (extent - 1) * load_word(slot + 8 * (1 + axis)) * itemsize
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high + itemsize


@njit(inline="always")
def _overlap(frame: int, one: int, other: int) -> Any:
    low, high = _extent(frame, one)
    other_low, other_high = _extent(frame, other)
    return low < other_high and other_low < high


def _bind(bindings: int, objects: int, count: int, frame: int, header: int, kind: int) -> int:
    # For each array: is it as the plan says? Then its address, and its strides, go into the frame. A row of bindings
    # holds the word of the address, the rank, the element type's object, its size, the flags that must be set, and the
    # shape. The result is 0, or -1 - k for the first array that is not as planned, or 1 + k if array k, which is
    # exclusive, overlaps another one.
    row = bindings
    for k in range(count):
        array = load_word(objects + 8 * k) + header
        # The last word before the fields is the object's type.
        if load_word(array - 8) != kind:
            return -1 - k
        slot = frame + 8 * load_word(row)
        ndim = load_word(row + 8)
        needed = load_word(row + 32) & (EXCLUSIVE - 1)
        itemsize = load_word(row + 24)
        if load_int(array + 8) != ndim or load_word(array + 40) != load_word(row + 16):
            return -1 - k
        if load_int(array + 48) & needed != needed:
            return -1 - k
        store_word(slot, load_word(array))
        dimensions = load_word(array + 16)
        strides = load_word(array + 24)
        for axis in range(ndim):
            stride = load_word(strides + 8 * axis)
            if load_word(dimensions + 8 * axis) != load_word(row + 40 + 8 * axis) or stride % itemsize != 0:
                return -1 - k
            store_word(slot + 8 * (1 + axis), stride // itemsize)
        row += 40 + 8 * ndim
    row = bindings
    for k in range(count):
        if load_word(row + 32) & EXCLUSIVE:
            other = bindings
            for m in range(count):
                if m != k and _overlap(frame, row, other):
                    return 1 + k
                other += 40 + 8 * load_word(other + 8)
        row += 40 + 8 * load_word(row + 8)
    return 0


execute = compile_driver(_execute, parameters=3)
bind = compile_driver(_bind, parameters=6)
