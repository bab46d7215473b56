"""Plans: everything about a call that depends on the sizes alone, worked out once for each set of sizes.

A `LaunchPlan` holds the shapes, the frame as it is before the call, and the block that the driver reads. `Frame`s are
the memory of one call; calls take them from the kernel's pool, so that calls from several threads do not meet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from struct import Struct
from typing import Any, NamedTuple

import numpy as np

from tcdsl.ir.dtypes import DTYPES, numpy_dtype
from tcdsl.lowering.loop_passes.placement import placed
from tcdsl.lowering.loopir.machine import SERIAL_WORK
from tcdsl.targets.cpu.call.pace import Pace
from tcdsl.targets.cpu.call.spare_memory import MANY_CELLS, aligned, array_of, block_of, spare
from tcdsl.targets.cpu.layout.call_block import RANGED
from tcdsl.targets.cpu.machine.internals import array_header, bytes_header, tuple_header

__all__ = ["Frame", "LaunchPlan", "Planner", "of_this_process"]

Array = np.ndarray[Any, np.dtype[Any]]

_POOLED_BYTES = 1 << 18  # Temporaries up to this many bytes stay allocated between calls.


def of_this_process(addresses: Sequence[int], places: Sequence[int], interrupted: int = 0) -> dict[str, int]:
    """The words of a plan that differ from process to process: the ``addresses`` of the nests' machine code, and of
    their ``places`` (`tcdsl.targets.cpu.layout.kernel_code`); of the driver's function ``interrupted``, of
    NumPy's types, and where arrays have what.
    """
    known = {"array_header": array_header() or 0, "array_type": id(np.ndarray), "tuple_header": tuple_header() or 0}
    known |= {f"type_{name}": id(numpy_dtype(name)) for name in DTYPES}
    known |= {f"nest_{number}": address for number, address in enumerate(addresses)}
    known["interrupted"] = interrupted
    return known | {f"places_{number}": address for number, address in enumerate(places)}


class Planner(NamedTuple):
    """How a kernel's calls are planned: ``evaluate`` is what `tcdsl.targets.cpu.call.plan_code` has written.

    ``words`` are those of the frame before the block, ``table`` is where the table of nests begins in the block,
    ``lives`` are those of the temporaries, from nest to nest. ``pack`` writes numbers into memory.
    """

    evaluate: Callable[..., Any]
    words: int
    table: int
    lives: Sequence[tuple[int, int]]
    pack: Callable[..., None]


class LaunchPlan:
    """The plan of a kernel for one set of sizes, given in the order of the program's.

    ``memory`` holds the words of the frame as they are before the call, and the block that the driver reads, at
    ``address``; ``parallel`` says whether any nest is worth several threads.
    """

    __slots__ = (
        "_array",
        "_planner",
        "address",
        "head",
        "made",
        "make",
        "memory",
        "offsets",
        "pack",
        "parallel",
        "pooled",
        "size",
    )

    def __init__(self, planner: Planner, sizes: Sequence[int], threads: int) -> None:
        self.made, counts, words, self.parallel = planner.evaluate(*sizes, threads, SERIAL_WORK)
        #: What makes the arrays, of shape and type.
        self.make: Callable[..., Array] = np.empty
        if self.made and max(map(prod, self.made)) >= MANY_CELLS:
            self.make = array_of
        self.memory = memory = _packing(len(words))(*words)
        self._planner = planner
        self.pack = planner.pack
        self.head = 8 * planner.words
        header = bytes_header()
        self._array: Array | None = None
        self.address = self.head + (int(_address(self._words())) if header is None else id(memory) + header)
        if counts:
            offsets, self.size = placed(counts, planner.lives)
            self.offsets = np.array(offsets, np.int64)
            self.pooled = self.size <= _POOLED_BYTES
        else:
            self.offsets, self.size, self.pooled = _NOWHERE, 0, True

    def _words(self) -> Array:
        if self._array is None:
            self._array = np.frombuffer(self.memory, np.int64)
        return self._array

    @property
    def block(self) -> Array:
        """What the driver reads."""
        return self._words()[self._planner.words :]

    @property
    def table(self) -> int:
        """Where the table of nests begins in the block."""
        return self._planner.table

    @property
    def table_address(self) -> int:
        """Where the table of nests begins in memory."""
        return self.address + 8 * self._planner.table

    def absent(self, nests: int) -> set[int]:
        """Which of so many nests run, and have numbers for their addresses yet: the machine code is not there."""
        rows = self.block[self.table :].reshape(-1, 5).tolist()
        where = [row[3] if row[:2] == [0, RANGED] else row[0] for row in rows if row[3]]
        return {place - 1 for place in where if 0 < place <= nests}

    def blocks(self, nest: int) -> int:
        """Into how many blocks the nest of this number is cut for threads."""
        return int(self.block[self.table + 5 * nest + 3])

    def shape(self, slot: int, rank: int) -> tuple[int, ...]:
        """The shape of the buffer whose words begin at ``slot``."""
        return tuple(self._words()[slot + 1 + rank : slot + 1 + 2 * rank].tolist())


_NOWHERE = np.empty(0, np.int64)


@lru_cache(maxsize=1024)
def _packing(words: int) -> Callable[..., bytes]:
    return Struct(f"{words}q").pack


def _address(array: Array) -> int:
    return int(array.__array_interface__["data"][0])


class Frame:
    """The memory of one call: the words that nests see, and the temporaries. ``address`` is that of the words.

    It is set up for one plan; `take` sets it up for another one. ``pace`` is that of the last call, if it has loops.
    """

    __slots__ = ("_memory", "_paced", "_temporaries", "_temporary_slots", "address", "pace", "plan", "words")

    def __init__(self, words: int, temporary_slots: Array) -> None:
        # The counter of parallel nests wants a cache line of its own.
        self.words = aligned(np.empty, (words,), "int64")
        self.address = _address(self.words)
        self._memory: memoryview = self.words.data.cast("B")
        self.plan: LaunchPlan | None = None
        self.pace: Pace | None = None
        self._paced: LaunchPlan | None = None
        self._temporaries: Array | None = None
        self._temporary_slots = temporary_slots

    def take(self, plan: LaunchPlan) -> None:
        """Be as calls by ``plan`` begin."""
        if plan is not self._paced:
            self._paced, self.pace = plan, None
        self.plan = plan
        self._memory[: plan.head] = plan.memory[: plan.head]
        if not plan.size:
            return
        if self._temporaries is None or self._temporaries.size < plan.size:
            self._temporaries = block_of(plan.size)
        self.words[self._temporary_slots] = _address(self._temporaries) + plan.offsets

    def leave(self) -> None:
        """After a call: large temporaries do not outlive it, but for others."""
        if self.plan is not None and not self.plan.pooled:
            if self._temporaries is not None:
                spare(self._temporaries)
            self.plan = self._temporaries = None

    def temporary(self, plan: LaunchPlan, shape: tuple[int, ...], dtype: str, number: int) -> Array:
        """The array of the temporary of this number."""
        return np.ndarray(shape, numpy_dtype(dtype), self._temporaries, int(plan.offsets[number]))
