"""The driver for nests that are split among threads: a module of its own, because it starts them when it is loaded."""

from __future__ import annotations

from numba import prange

from tcdsl.targets.cpu.layout.frame import COUNTER_WORD, PLACES_WORD, STATUS_WORD
from tcdsl.targets.cpu.machine.native import call_nest, load_word, next_number, store_word
from tcdsl.targets.cpu.machine.numba_modules import compile_driver

__all__ = ["execute"]


def _execute(table: int, nests: int, frame: int, threads: int) -> int:
    status = frame + 8 * STATUS_WORD
    counter = frame + 8 * COUNTER_WORD
    places = frame + 8 * PLACES_WORD
    for n in range(nests):
        row = table + 40 * n
        store_word(places, load_word(row + 32))
        address = load_word(row)
        begin = load_word(row + 8)
        end = load_word(row + 16)
        blocks = load_word(row + 24)
        if blocks <= 1:
            call_nest(address, begin, end, frame)
        else:
            store_word(counter, 0)
            # The threads take blocks as they come: rows of a triangle differ in length, and threads in speed.
            for _ in prange(min(threads, blocks)):
                block = next_number(counter)
                while block < blocks and load_word(status) == 0:
                    first = begin + block * (end - begin) // blocks
                    last = begin + (block + 1) * (end - begin) // blocks
                    call_nest(address, first, last, frame)
                    block = next_number(counter)
        if load_word(status) != 0:
            return n
    return nests


execute = compile_driver(_execute, parameters=4, parallel=True)
