"""The driver: machine code that takes the arrays of a call and runs a table of nests. Compiled once per machine.

A row of the table holds five words: the address of a nest, where its outermost loop begins and ends, the number of
blocks that the loop is cut into for threads, or 1 for a nest that runs as it is and 0 for one that has nothing to do,
and the address of its places. A nest that fails writes its reason into the frame, and the driver stops; it returns the
number of nests that ran to their end.

`tcdsl.targets.cpu.layout.call_block` says what is in the block of words that describes a call. This text becomes
machine code by `tcdsl.targets.cpu.emission.driver_emission`; it runs in Python too, slowly.
"""

from __future__ import annotations

from tcdsl.targets.cpu.call.words import (
    address_of,
    call_nest,
    handle_signals,
    load_byte,
    load_int,
    load_shared,
    load_word,
    next_number,
    on_threads,
    read_clock,
    store_word,
    this_thread,
)
from tcdsl.targets.cpu.layout.call_block import (
    ARRAY_FIELDS,
    ARRAY_FLAGS,
    ARRAY_TYPE,
    BEGIN,
    BEGIN_AT,
    BEGIN_COUNTED,
    BIND_ONLY,
    BLOCKS_PER_THREAD,
    CONDITION,
    CONTIGUOUS,
    END,
    EXTENTS,
    FIRST_ROW,
    HOLD_NUMBER,
    INPUTS,
    KNOWN_APART,
    LOOKS,
    MADE,
    NESTS,
    NO_CELLS,
    NOT_AS_PLANNED,
    NUMBER,
    OVERLAPPING,
    PAUSED,
    RANGED,
    ROUND_WORK,
    ROW_WORDS,
    TABLE,
    TUPLE_ITEMS,
    WRITTEN,
)
from tcdsl.targets.cpu.layout.frame import (
    COUNTER_WORD,
    DONE_WORD,
    ENDED_WORD,
    INTERRUPTED,
    PLACES_WORD,
    ROW_WORD,
    STATUS_WORD,
    THREAD_WORD,
)

__all__ = ["execute", "execute_parallel", "execute_rounds", "execute_timed", "look_for_interrupts", "run", "share"]


def execute(table: int, nests: int, frame: int) -> int:
    """Run so many nests of the table, one after the other."""
    store_word(frame + 8 * THREAD_WORD, this_thread())
    for n in range(nests):
        row = table + 40 * n
        if load_word(row + 24) != 0:
            store_word(frame + 8 * PLACES_WORD, load_word(row + 32))
            call_nest(load_word(row), load_word(row + 8), load_word(row + 16), frame)
            if load_word(frame + 8 * STATUS_WORD) != 0:
                return n
    return nests


def execute_parallel(table: int, nests: int, frame: int, threads: int, parallel_for: int, shared: int) -> int:
    """Like `execute`, with nests that are cut into blocks on several threads.

    ``parallel_for`` is the function that starts them, ``shared`` the address of `share`.
    """
    store_word(frame + 8 * THREAD_WORD, this_thread())
    for n in range(nests):
        row = table + 40 * n
        store_word(frame + 8 * PLACES_WORD, load_word(row + 32))
        blocks = load_word(row + 24)
        if blocks == 1:
            call_nest(load_word(row), load_word(row + 8), load_word(row + 16), frame)
        elif blocks != 0:
            _on_threads(row, frame, threads, parallel_for, shared)
        if load_word(frame + 8 * STATUS_WORD) != 0:
            return n
    return nests


def _on_threads(row: int, frame: int, threads: int, parallel_for: int, shared: int) -> None:
    store_word(frame + 8 * COUNTER_WORD, 0)
    store_word(frame + 8 * ENDED_WORD, 0)
    store_word(frame + 8 * ROW_WORD, row)
    on_threads(parallel_for, shared, frame, min(threads, load_word(row + 24)))


def execute_rounds(
    table: int, first: int, rows: int, frame: int, budget: int, threads: int, parallel_for: int, shared: int
) -> int:
    """Like `execute_parallel`, of a table that has rows of control, beginning with the row ``first``.

    After rounds of as much work as ``budget`` it stops, and returns `PAUSED` less the number of the row to go on with;
    the word `DONE_WORD` of the frame is the work that it has done.
    On one thread ``parallel_for`` is not needed.
    """
    store_word(frame + 8 * THREAD_WORD, this_thread())
    n = first
    left = budget
    while n < rows:
        row = table + 40 * n
        address = load_word(row)
        if address == 0 and load_word(row + 8) != RANGED:
            n = _next_of_control(table, n, frame)
            if load_word(row + 8) == END:
                left -= load_word(row + 24)
                if left <= 0:
                    store_word(frame + 8 * DONE_WORD, budget - left)
                    return PAUSED - n
        else:
            store_word(frame + 8 * PLACES_WORD, load_word(row + 32))
            if address == 0:
                address = load_word(row + 24)
                row = _ranged_row(row, frame, threads)
            blocks = load_word(row + 24)
            if blocks != 0:
                if blocks == 1 or threads < 2:
                    call_nest(address, load_word(row + 8), load_word(row + 16), frame)
                else:
                    _on_threads(row, frame, threads, parallel_for, shared)
                if load_word(frame + 8 * STATUS_WORD) != 0:
                    return n
            n += 1
    return rows


def execute_timed(
    table: int, first: int, rows: int, frame: int, budget: int, threads: int, parallel_for: int, shared: int, times: int
) -> int:
    """Like `execute_rounds`, which it has run each nest, and notes the ticks that it takes, and how often it ran.

    ``times`` is the address of two words for each row; two more are for all ticks, and for how often it was called.
    """
    n = first
    left = budget
    begun = read_clock()
    while n < rows:
        row = table + 40 * n
        if load_word(row) == 0 and load_word(row + 8) != RANGED:
            n = _next_of_control(table, n, frame)
            if load_word(row + 8) == END:
                left -= load_word(row + 24)
                if left <= 0:
                    store_word(frame + 8 * DONE_WORD, budget - left)
                    _add_ticks(times + 16 * rows, begun)
                    return PAUSED - n
        else:
            begin = read_clock()
            if execute_rounds(table, n, n + 1, frame, budget, threads, parallel_for, shared) == n:
                return n
            _add_ticks(times + 16 * n, begin)
            n += 1
    _add_ticks(times + 16 * rows, begun)
    return rows


def _add_ticks(cell: int, begin: int) -> None:
    store_word(cell, load_word(cell) + read_clock() - begin)
    store_word(cell + 8, load_word(cell + 8) + 1)


def _ranged_row(row: int, frame: int, threads: int) -> int:
    # A row like others of the nest whose loop depends on the round, made of the cells that say where it begins.
    own = load_word(frame + 8 * load_word(row + 16))
    store_word(own, load_word(row + 24))
    length = load_word(own + 16) - load_word(own + 8)
    small = threads < 2 or load_word(own + 24) < ROUND_WORK
    store_word(own + 24, 1 if small else max(1, min(length, threads * BLOCKS_PER_THREAD)))
    return own


def _next_of_control(table: int, n: int, frame: int) -> int:
    # Do what a row of control says; which row is next.
    row = table + 40 * n
    kind = load_word(row + 8)
    word = frame + 8 * load_word(row + 16)
    second = load_word(row + 24)
    other = load_word(row + 32)
    if kind == END:
        number = load_word(word) + 1
        store_word(word, number)
        return other if number < load_word(word + 8) else n + 1
    if kind <= BEGIN_COUNTED:
        count = second if kind == BEGIN else load_word(load_word(frame + 8 * second))
        store_word(word, 0)
        store_word(word + 8, count)
        return other if count <= 0 else n + 1
    if kind == BEGIN_AT:
        store_word(word, load_word(load_word(frame + 8 * second)))
        return other if load_word(word) >= load_word(word + 8) else n + 1
    if kind == CONDITION:
        return other if load_byte(load_word(word)) == 0 else n + 1
    if kind == HOLD_NUMBER:
        store_word(load_word(frame + 8 * second), load_word(word))
    else:
        held = load_word(word)
        store_word(word, load_word(frame + 8 * second))
        store_word(frame + 8 * second, held)
    return n + 1


def share(arrays: int, rounds: int, steps: int, frame: int) -> None:
    """One thread's share of a nest.

    The threads take blocks as they come: rows of a triangle differ in length, and threads in speed. The thread of the
    call then looks for interrupts until the others have ended.
    """
    row = load_word(frame + 8 * ROW_WORD)
    address = load_word(row)
    begin = load_word(row + 8)
    end = load_word(row + 16)
    blocks = load_word(row + 24)
    block = next_number(frame + 8 * COUNTER_WORD)
    while block < blocks and load_shared(frame + 8 * STATUS_WORD) == 0:
        first = begin + block * (end - begin) // blocks
        last = begin + (block + 1) * (end - begin) // blocks
        call_nest(address, first, last, frame)
        next_number(frame + 8 * ENDED_WORD)
        block = next_number(frame + 8 * COUNTER_WORD)
    if load_word(frame + 8 * THREAD_WORD) == this_thread():
        looks = 0
        while load_shared(frame + 8 * ENDED_WORD) < blocks and load_shared(frame + 8 * STATUS_WORD) == 0:
            looks += 1
            if looks % LOOKS == 0 and look_for_interrupts(frame) != 0:
                return


def look_for_interrupts(frame: int) -> int:
    """Whether the call is to end: not 0 if a nest has failed, or Python's handling of a signal raised an exception."""
    if load_shared(frame + 8 * STATUS_WORD) != 0:
        return 1
    if load_word(frame + 8 * THREAD_WORD) != this_thread() or handle_signals() == 0:
        return 0
    store_word(frame + 8 * STATUS_WORD, INTERRUPTED)
    return 1


def _next_row(row: int) -> int:
    return row + 8 * (ROW_WORDS + load_word(row + 16))


def _enter(block: int, row: int, frame: int, items: int) -> bool:
    # Is the array as the row says? Then its address, and its strides, go into the frame.
    slot = frame + 8 * load_word(row)
    flags = load_word(row + 40)
    if flags & NUMBER != 0:
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
    if load_int(array + 48) & flags & ARRAY_FLAGS != flags & ARRAY_FLAGS:
        return False
    store_word(slot, load_word(array))
    dimensions = load_word(array + 16)
    strides = load_word(array + 24)
    for axis in range(ndim):
        stride = load_word(strides + 8 * axis)
        if load_word(dimensions + 8 * axis) != load_word(row + 8 * (ROW_WORDS + axis)) or stride % itemsize != 0:
            return False
        store_word(slot + 8 * (1 + axis), stride // itemsize)
    if flags & WRITTEN != 0 and load_int(array + 48) & CONTIGUOUS == 0:
        return _cells_apart(slot, row)
    return True


def _cells_apart(slot: int, row: int) -> bool:
    # Every axis must step over all that the axes with smaller strides reach.
    ndim = load_word(row + 16)
    if _without_cells(row):
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


def _reach(slot: int, row: int, modulus: int, ahead: bool) -> int:
    # How many bytes the first bytes of the cells lie ahead of where the array begins at most, or at least; without the
    # axes whose steps are multiples of ``modulus``, unless that is 0.
    total = 0
    for axis in range(load_word(row + 16)):
        step = load_word(slot + 8 * (1 + axis)) * load_word(row + 32)
        if (modulus == 0 or step % modulus != 0) and (step > 0) == ahead:
            total += step * (load_word(row + 8 * (ROW_WORDS + axis)) - 1)
    return total


def _without_cells(row: int) -> bool:
    found = False
    for axis in range(load_word(row + 16)):
        found = found or load_word(row + 8 * (ROW_WORDS + axis)) == 0
    return found


def _apart_by_residues(slot: int, row: int, other_slot: int, other: int, owner_slot: int, owner: int) -> bool:
    # Columns of one table: modulo the length of a row the cells of one array lie in a stretch, on a circle, that those
    # of the other one do not meet. The moduli tried are the strides of ``owner``.
    for axis in range(load_word(owner + 16)):
        modulus = abs(load_word(owner_slot + 8 * (1 + axis))) * load_word(owner + 32)
        if modulus != 0:
            low = _reach(slot, row, modulus, False)
            other_low = _reach(other_slot, other, modulus, False)
            length = _reach(slot, row, modulus, True) + load_word(row + 32) - low
            other_length = _reach(other_slot, other, modulus, True) + load_word(other + 32) - other_low
            ahead = (load_word(other_slot) + other_low - load_word(slot) - low) % modulus
            if ahead >= length and modulus - ahead >= other_length:
                return True
    return False


def _all_apart(block: int, frame: int) -> bool:
    # Whether no cell of an array that is written belongs to another array, as far as this simple test can tell.
    count = load_word(block + 8 * INPUTS) + load_word(block + 8 * MADE)
    extents = frame + 8 * load_word(block + 8 * EXTENTS)
    row = block + 8 * FIRST_ROW
    for k in range(count):
        slot = frame + 8 * load_word(row)
        first = load_word(slot)
        if _without_cells(row):
            store_word(extents + 16 * k, first)
            store_word(extents + 16 * k + 8, NO_CELLS)
        else:
            store_word(extents + 16 * k, first + _reach(slot, row, 0, False))
            store_word(extents + 16 * k + 8, first + _reach(slot, row, 0, True) + load_word(row + 32))
        row = _next_row(row)
    row = block + 8 * FIRST_ROW
    for k in range(count):
        if load_word(row + 40) & WRITTEN != 0:
            low = load_word(extents + 16 * k)
            high = load_word(extents + 16 * k + 8)
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


def run(block: int, frame: int, inputs: object, made: object, mode: int) -> int:
    """Enter the arrays of the tuples ``inputs`` and ``made``, and run the nests.

    The result is that of `execute`, or what kept the arrays from being entered.
    """
    offset = load_word(block + 8 * TUPLE_ITEMS)
    row = block + 8 * FIRST_ROW
    for _ in range(load_word(block + 8 * INPUTS)):
        if not _enter(block, row, frame, address_of(inputs) + offset):
            return NOT_AS_PLANNED
        row = _next_row(row)
    for _ in range(load_word(block + 8 * MADE)):
        if not _enter(block, row, frame, address_of(made) + offset):
            return NOT_AS_PLANNED
        row = _next_row(row)
    if mode & KNOWN_APART == 0 and not _all_apart(block, frame):
        return OVERLAPPING
    if mode & BIND_ONLY != 0:
        return 0
    return execute(block + 8 * load_word(block + 8 * TABLE), load_word(block + 8 * NESTS), frame)
