"""Calls without Python: what compiled code of others calls at an address, once Python has made a call with such shapes.

::

    native = NativeCalls([(2, 8), (-1, 8)], [1])     # an array of two axes and a number give an array of one axis
    find, run = native.functions                     # of machine code: see tcdsl.targets.protocol.native_words
    native.add(calls, arguments, [0, 1], operands)   # the shapes that the words at the address ``operands`` tell

What a function reads around it, and settings, are those of the call that was added.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np

from tcdsl.config import settings
from tcdsl.locks import lock_of_this_process
from tcdsl.runtime.calls.table import CallTable
from tcdsl.targets.protocol.native_words import (
    ANSWER_WORDS,
    ANY_NUMBER,
    BUCKETS,
    KEY_WORDS,
    MASK,
    NEXT,
    OPERANDS,
    SAME_NUMBER,
)
from tcdsl.targets.registry import target_named

__all__ = ["NativeCalls"]

_BUCKETS = 1024
_MOST = 4096  # Shapes that are kept: compiled code may be reading any of them, so none is ever given up.


class NativeCalls:
    """The calls of one function with arrays of some types; see the top of this file.

    ``operands`` are the rank of each, or -1 for a number, and the bytes of a cell; ``results`` are ranks.
    """

    def __init__(self, operands: Sequence[tuple[int, int]], results: Sequence[int]) -> None:
        ranks = [rank for rank, _ in operands]
        #: The words of the operands at which each begins.
        self.places = np.cumsum([0, *(1 + 2 * max(rank, 0) for rank in ranks)]).tolist()
        self.key = self.places.pop()
        #: Behind the key: how much memory is wanted, then of each result the address and the extents.
        self.answer = self.key + sum(1 + max(rank, 0) for rank in ranks)
        self.results = np.cumsum([self.answer + 1, *(1 + rank for rank in results)]).tolist()
        #: How many words a call has.
        self.words = self.results.pop()
        self._buckets = np.zeros(_BUCKETS, np.int64)
        kinds = [each for rank, size in operands for each in (ANY_NUMBER if rank < 0 else rank, size)]
        self.table = np.array([0] * OPERANDS + kinds, np.int64)
        self.table[[0, MASK, BUCKETS]] = len(operands), _BUCKETS - 1, _address(self._buckets)
        self.table[[KEY_WORDS, ANSWER_WORDS]] = self.answer - self.key, self.words - self.answer
        # Machine code reads them, and what they point to.
        self._held: list[Any] = []
        self._declined: set[bytes] = set()
        self._lock = lock_of_this_process()

    @property
    def address(self) -> int:
        """That of the table."""
        return _address(self.table)

    @property
    def functions(self) -> tuple[int, int] | None:
        """``find(table, operands)`` and ``run(record, operands, memory)``; None for a target that has none."""
        current = settings()
        find = getattr(target_named(current.target), "native_functions", None)
        return None if find is None else find(Path(current.cache_dir) if current.cache_dir else None)

    def add(self, calls: CallTable, arguments: tuple[Any, ...], order: Sequence[int | None], operands: int) -> None:
        """Serve calls like this one, which Python has just made, if that can be done.

        ``order`` says of each argument which operand it is.
        """
        words = (ctypes.c_int64 * self.words).from_address(operands)
        key = tuple(words[self.key : self.answer])
        known = np.array(key, np.int64).tobytes()
        with self._lock:
            if known in self._declined or len(self._held) >= _MOST:
                return
            if not self._added(calls, arguments, order, key) and len(self._declined) < _MOST:
                self._declined.add(known)

    def _added(
        self, calls: CallTable, arguments: tuple[Any, ...], order: Sequence[int | None], key: tuple[int, ...]
    ) -> bool:
        repeated = calls.served_by(arguments)
        ran = None if repeated is None else repeated.ran(arguments)
        if ran is None:
            return False
        inputs, numbers, same, (_, plan, kernel, _) = ran
        places = [-1 if operand is None else self.places[operand] for operand in order]
        given = [places[each] if isinstance(each, int) else each for each in inputs]
        asked = [(place, places[where]) for place, where in numbers]
        if self._ask_for_others({order[where] for _, where in numbers if where not in same}):
            return True  # the next call has a key with what was missing
        make = getattr(kernel, "native_record", None)
        record = None if make is None else make(plan, asked, given, self.results, key)
        if record is None:
            return False
        bucket = 0
        for word in key:
            bucket = (31 * bucket + word) & (_BUCKETS - 1)
        record[NEXT] = self._buckets[bucket]
        self._held.append((record, plan, kernel, inputs))
        self._buckets[bucket] = _address(record)
        return True

    def _ask_for_others(self, numbers: Set[int | None]) -> bool:
        # Numbers that the program does not take as numbers must be the same; whether that is new.
        kinds = self.table[OPERANDS::2]
        others = [k for k, kind in enumerate(kinds.tolist()) if kind == ANY_NUMBER and k not in numbers]
        if others:
            self._buckets[:] = 0
            kinds[others] = SAME_NUMBER
        return bool(others)


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])
