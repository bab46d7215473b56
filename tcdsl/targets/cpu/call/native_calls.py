"""Calls without Python: machine code that finds the record of a call by its shapes, and runs it on the caller's memory.

Words are those of `tcdsl.targets.protocol.native_words`. This text becomes machine code as that of
`tcdsl.targets.cpu.call.driver` does.
"""

from __future__ import annotations

from tcdsl.targets.cpu.call.words import call_nest, load_word, store_word
from tcdsl.targets.cpu.layout.call_block import FIRST_ROW, INPUTS, MADE, NUMBER, ROW_WORDS, TABLE
from tcdsl.targets.cpu.layout.frame import INTERRUPT_WORD, STATUS_WORD
from tcdsl.targets.protocol.native_words import (
    ALIGNED_TO,
    ANSWER_WORDS,
    BLOCK,
    BUCKETS,
    ENDLESS,
    EXECUTE,
    EXECUTE_ROUNDS,
    HEAD,
    HEAD_WORDS,
    ITEMS,
    KEY,
    KEY_WORDS,
    LOOK,
    MASK,
    NEXT,
    NUMBERS,
    OPERANDS,
    ROWS,
    SAME_NUMBER,
    TEMPORARIES,
    TEMPORARIES_AT,
)

__all__ = ["find_record", "go_on", "run_record"]


def find_record(table: int, operands: int) -> int:
    """Write the key of the operands behind them, and the answer behind that; the address of the record, or 0."""
    at = operands
    row = table + 8 * OPERANDS
    for _ in range(load_word(table)):
        at += 8 * _words_of(load_word(row))
        row += 16
    key = at
    _write_key(table, operands, key)
    words = load_word(table + 8 * KEY_WORDS)
    bucket = 0
    for k in range(words):
        bucket = (31 * bucket + load_word(key + 8 * k)) & load_word(table + 8 * MASK)
    record = load_word(load_word(table + 8 * BUCKETS) + 8 * bucket)
    while record != 0:
        known = record + 8 * load_word(record + 8 * KEY)
        same = 0
        for k in range(words):
            same += 1 if load_word(known + 8 * k) == load_word(key + 8 * k) else 0
        if same == words:
            for k in range(load_word(table + 8 * ANSWER_WORDS)):
                store_word(key + 8 * (words + k), load_word(known + 8 * (words + k)))
            return record
        record = load_word(record + 8 * NEXT)
    return 0


def _words_of(rank: int) -> int:
    return 1 + 2 * rank if rank >= 0 else 1


def _write_key(table: int, operands: int, key: int) -> None:
    at = operands
    to = key
    row = table + 8 * OPERANDS
    for _ in range(load_word(table)):
        rank = load_word(row)
        if rank < 0:
            store_word(to, load_word(at) if rank == SAME_NUMBER else 0)
            to += 8
        else:
            store_word(to, _row_major(at, rank, load_word(row + 8)))
            for axis in range(rank):
                store_word(to + 8 * (1 + axis), load_word(at + 8 * (1 + axis)))
            to += 8 * (1 + rank)
        at += 8 * _words_of(rank)
        row += 16


def _row_major(at: int, rank: int, itemsize: int) -> int:
    # As NumPy says it: axes of one cell may have any stride.
    found = 1
    step = itemsize
    for k in range(rank):
        extent = load_word(at + 8 * (rank - k))
        if extent == 0:
            return 1
        if extent != 1 and load_word(at + 8 * (2 * rank - k)) != step:
            found = 0
        step = step * extent
    return found


def run_record(record: int, operands: int, memory: int) -> int:
    """Run the nests in as much memory as the answer wants, whose address is given; not 0 if Python has to."""
    frame = memory + ALIGNED_TO - memory % ALIGNED_TO
    head = load_word(record + 8 * HEAD)
    for k in range(load_word(record + 8 * HEAD_WORDS)):
        store_word(frame + 8 * k, load_word(head + 8 * k))
    store_word(frame + 8 * INTERRUPT_WORD, load_word(record + 8 * LOOK))
    temporaries = frame + load_word(record + 8 * TEMPORARIES_AT)
    item = record + 8 * ITEMS
    for _ in range(load_word(record + 8 * TEMPORARIES)):
        store_word(frame + 8 * load_word(item), temporaries + load_word(item + 8))
        item += 16
    for _ in range(load_word(record + 8 * NUMBERS)):
        store_word(frame + 8 * load_word(item), load_word(operands + 8 * load_word(item + 8)))
        item += 16
    block = load_word(record + 8 * BLOCK)
    row = block + 8 * FIRST_ROW
    for _ in range(load_word(block + 8 * INPUTS)):
        place = load_word(item)
        given = operands + 8 * place if place >= 0 else record - 8 * (place + 1)
        if not _enter(row, frame, given):
            return 1
        item += 8
        row += 8 * (ROW_WORDS + load_word(row + 16))
    for _ in range(load_word(block + 8 * MADE)):
        place = load_word(item)
        address = load_word(operands + 8 * place) if place >= 0 else temporaries - (place + 1)
        store_word(frame + 8 * load_word(row), address)
        item += 8
        row += 8 * (ROW_WORDS + load_word(row + 16))
    table = block + 8 * load_word(block + 8 * TABLE)
    rows = load_word(record + 8 * ROWS)
    in_rounds = load_word(record + 8 * EXECUTE_ROUNDS)
    if in_rounds == 0:
        call_nest(load_word(record + 8 * EXECUTE), table, rows, frame)
    else:
        call_nest(in_rounds, table, 0, rows, frame, ENDLESS, 1, 0, 0)
    return load_word(frame + 8 * STATUS_WORD)


def _enter(row: int, frame: int, given: int) -> bool:
    # The key says that the array has the shape of the row; it may be misaligned still.
    slot = frame + 8 * load_word(row)
    if load_word(row + 40) & NUMBER != 0:
        store_word(slot, frame + 8 * load_word(row + 8))
        return True
    rank = load_word(row + 16)
    itemsize = load_word(row + 32)
    address = load_word(given)
    if address % itemsize != 0:
        return False
    store_word(slot, address)
    for axis in range(rank):
        stride = load_word(given + 8 * (1 + rank + axis))
        if stride % itemsize != 0:
            return False
        store_word(slot + 8 * (1 + axis), stride // itemsize)
    return True


def go_on(frame: int) -> int:
    """Whether a call is to end: the caller could not raise what Python's handling of a signal raises."""
    return 0
