"""The driver: compiled code that takes the arrays of a call and runs a table of nests. Compiled once per machine.

A row of the table holds five words: the address of a nest, where its outermost loop begins and ends, the number of
blocks that the loop is cut into for threads, or 1 for a nest that runs as it is, and the address of its places. A nest
that fails writes its reason into the frame, and the driver stops; it returns the number of nests that ran to their end.

`tcdsl.targets.cpu.layout.call_block` says what is in the block of words that describes a call.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from tcdsl.targets.cpu.layout.call_block import (
    ARRAY_FIELDS,
    ARRAY_TYPE,
    BIND_ONLY,
    CONTIGUOUS,
    EXTENTS,
    FIRST_ROW,
    INPUTS,
    KNOWN_APART,
    MADE,
    NESTS,
    NOT_AS_PLANNED,
    NUMBER,
    OVERLAPPING,
    ROW_WORDS,
    TABLE,
    TUPLE_ITEMS,
    WRITTEN,
)
from tcdsl.targets.cpu.layout.frame import PLACES_WORD, STATUS_WORD
from tcdsl.targets.cpu.machine.native import call_nest, load_int, load_word, store_word
from tcdsl.targets.cpu.machine.numba_modules import compile_driver

__all__ = ["execute", "run"]

_FLAGS = WRITTEN - 1


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
def _next_row(row: int) -> Any:
    return row + 8 * (ROW_WORDS + load_word(row + 16))


@njit(inline="always")
def _enter(block: int, row: int, frame: int, items: int) -> Any:
    # Is the array as the row says? Then its address, and its strides, go into the frame.
    slot = frame + 8 * load_word(row)
    flags = load_word(row + 40)
    if flags & NUMBER:
        store_word(slot, frame + 8 * load_word(row + 8))
        return True
    array = load_word(items + 8 * load_word(row + 8)) + load_word(block + 8 * ARRAY_FIELDS)
    ndim = load_word(row + 16)
    itemsize = load_word(row + 32)
    # The last word before the fields is the object's type.
    if load_word(array - 8) != load_word(block + 8 * ARRAY_TYPE):
        return False
    if load_int(array + 8) != ndim or load_word(array + 40) != load_word(row + 24):
        return False
    if load_int(array + 48) & flags & _FLAGS != flags & _FLAGS:
        return False
    store_word(slot, load_word(array))
    dimensions = load_word(array + 16)
    strides = load_word(array + 24)
    for axis in range(ndim):
        stride = load_word(strides + 8 * axis)
        if load_word(dimensions + 8 * axis) != load_word(row + 8 * (ROW_WORDS + axis)) or stride % itemsize != 0:
            return False
        store_word(slot + 8 * (1 + axis), stride // itemsize)
    if flags & WRITTEN and load_int(array + 48) & CONTIGUOUS == 0:
        return _cells_apart(slot, row)
    return True


@njit(inline="always")
def _cells_apart(slot: int, row: int) -> bool:
    # Every axis must step over all that the axes with smaller strides reach.
    ndim = load_word(row + 16)
    for axis in range(ndim):
        extent = load_word(row + 8 * (ROW_WORDS + axis))
        if extent == 0:
            return True
    for axis in range(ndim):
        stride = abs(load_word(slot + 8 * (1 + axis)))
        reach = 1
        for other in range(ndim):
            extent = load_word(row + 8 * (ROW_WORDS + other))
            step = abs(load_word(slot + 8 * (1 + other)))
            if extent > 1 and (step < stride or (step == stride and other < axis)):
                reach += step * (extent - 1)
        if load_word(row + 8 * (ROW_WORDS + axis)) > 1 and stride < reach:
            return False
    return True


@njit(inline="always")
def _bytes(slot: int, row: int, modulus: int) -> tuple[int, int]:
    # The bytes from the first to behind the last cell, from where the array begins; without the axes whose steps are
    # multiples of ``modulus``, unless that is 0.
    itemsize = load_word(row + 32)
    low = high = 0
    for axis in range(load_word(row + 16)):
        reach = load_word(slot + 8 * (1 + axis)) * itemsize
        if modulus != 0 and reach % modulus == 0:
            continue
        reach *= load_word(row + 8 * (ROW_WORDS + axis)) - 1
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high + itemsize


@njit(inline="always")
def _apart_by_residues(slot: int, row: int, other_slot: int, other: int, owner_slot: int, owner: int) -> bool:
    # Columns of one table: modulo the length of a row the cells of one array lie in a stretch, on a circle, that those
    # of the other one do not meet. The moduli tried are the strides of ``owner``.
    for axis in range(load_word(owner + 16)):
        modulus = abs(load_word(owner_slot + 8 * (1 + axis))) * load_word(owner + 32)
        if modulus == 0:
            continue
        low, high = _bytes(slot, row, modulus)
        other_low, other_high = _bytes(other_slot, other, modulus)
        ahead = (load_word(other_slot) + other_low - load_word(slot) - low) % modulus
        if ahead >= high - low and modulus - ahead >= other_high - other_low:
            return True
    return False


@njit(inline="always")
def _all_apart(block: int, frame: int) -> bool:
    # Whether no cell of an array that is written belongs to another array, as far as this simple test can tell.
    count = load_word(block + 8 * INPUTS) + load_word(block + 8 * MADE)
    extents = frame + 8 * load_word(block + 8 * EXTENTS)
    row = block + 8 * FIRST_ROW
    for k in range(count):
        slot = frame + 8 * load_word(row)
        low, high = _bytes(slot, row, 0)
        for axis in range(load_word(row + 16)):
            if load_word(row + 8 * (ROW_WORDS + axis)) == 0:
                low, high = 0, -(1 << 60)
        store_word(extents + 16 * k, load_word(slot) + low)
        store_word(extents + 16 * k + 8, load_word(slot) + high)
        row = _next_row(row)
    row = block + 8 * FIRST_ROW
    for k in range(count):
        if load_word(row + 40) & WRITTEN:
            low, high = load_word(extents + 16 * k), load_word(extents + 16 * k + 8)
            slot = frame + 8 * load_word(row)
            other = block + 8 * FIRST_ROW
            for m in range(count):
                if m != k and low < load_word(extents + 16 * m + 8) and load_word(extents + 16 * m) < high:
                    other_slot = frame + 8 * load_word(other)
                    if not _apart_by_residues(slot, row, other_slot, other, slot, row) and not _apart_by_residues(
                        slot, row, other_slot, other, other_slot, other
                    ):
                        return False
                other = _next_row(other)
        row = _next_row(row)
    return True


def _run(block: int, frame: int, inputs: int, made: int, mode: int) -> Any:
    # ``inputs`` and ``made`` are tuples of arrays. The result is that of `execute`, or what kept the arrays from being
    # entered.
    offset = load_word(block + 8 * TUPLE_ITEMS)
    row = block + 8 * FIRST_ROW
    for _ in range(load_word(block + 8 * INPUTS)):
        if not _enter(block, row, frame, inputs + offset):
            return NOT_AS_PLANNED
        row = _next_row(row)
    for _ in range(load_word(block + 8 * MADE)):
        if not _enter(block, row, frame, made + offset):
            return NOT_AS_PLANNED
        row = _next_row(row)
    if mode & KNOWN_APART == 0 and not _all_apart(block, frame):
        return OVERLAPPING
    if mode & BIND_ONLY:
        return 0
    return _execute_table(block + 8 * load_word(block + 8 * TABLE), load_word(block + 8 * NESTS), frame)


_execute_table: Any = njit(inline="always")(_execute)
execute = compile_driver(_execute, parameters=3)
run = compile_driver(_run, parameters=5)
