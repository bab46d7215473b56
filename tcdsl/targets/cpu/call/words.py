"""What the driver's text calls, in plain Python: words of memory, and machine code at an address."""

from __future__ import annotations

import ctypes
import threading
import time

__all__ = [
    "address_of",
    "call_nest",
    "handle_signals",
    "load_byte",
    "load_int",
    "load_shared",
    "load_word",
    "next_number",
    "on_threads",
    "read_clock",
    "store_word",
    "this_thread",
]


def address_of(held: object) -> int:
    """Where an object lies."""
    return id(held)


def load_word(address: int) -> int:
    """The word at ``address``."""
    return ctypes.c_int64.from_address(address).value


def load_int(address: int) -> int:
    """The 32-bit integer at ``address``."""
    return ctypes.c_int32.from_address(address).value


def load_byte(address: int) -> int:
    """The byte at ``address``."""
    return ctypes.c_int8.from_address(address).value


def store_word(address: int, value: int) -> None:
    """Write a word of memory."""
    ctypes.c_int64.from_address(address).value = value


def load_shared(address: int) -> int:
    """The word at ``address``, which other threads write."""
    return load_word(address)


def next_number(address: int) -> int:
    """The word at ``address``, which goes up by one: every thread gets another number."""
    number = load_word(address)
    store_word(address, number + 1)
    return number


def call_nest(address: int, *words: int) -> None:
    """Call the nest at ``address``, or the function of the driver."""
    ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * len(words))(address)(*words)


def on_threads(parallel_for: int, function: int, data: int, threads: int) -> None:
    """Call the machine code at ``function`` as ``(0, 0, 0, data)`` on so many threads; here on one after the other."""
    for _ in range(threads):
        ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 4)(function)(0, 0, 0, data)


def read_clock() -> int:
    """The ticks of a clock that goes on evenly; how long one is, the machine knows."""
    return time.perf_counter_ns()


def this_thread() -> int:
    """The number of the thread that this runs on."""
    return threading.get_ident()


def handle_signals() -> int:
    """Have Python handle the signals that have arrived; not 0 if that raises an exception."""
    return 0
