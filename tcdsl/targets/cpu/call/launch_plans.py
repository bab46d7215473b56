"""Plans: everything about a call that depends on the sizes alone, worked out once for each set of sizes.

A `LaunchPlan` holds the shapes, the frame as it is before the call, and the block that the driver reads. `Frame`s are
the memory of one call; calls take them from the kernel's pool, so that calls from several threads do not meet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import pack
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.lowering.loop_passes.liveness import Temporaries
from tcdsl.lowering.loopir.loops import Buffer, Kernel
from tcdsl.lowering.program_passes.effort import SERIAL_WORK
from tcdsl.targets.cpu.call.plan_code import PlanCode
from tcdsl.targets.cpu.layout.aligned import aligned

__all__ = ["Frame", "LaunchPlan"]

Array = np.ndarray[Any, np.dtype[Any]]

_POOLED_BYTES = 1 << 18  # Temporaries up to this many bytes stay allocated between calls.


class LaunchPlan:
    """The plan of a kernel for one set of sizes.

    ``block`` is what the driver reads, ``parallel`` whether any nest is worth several threads.
    """

    __slots__ = ("address", "block", "made", "offsets", "parallel", "pooled", "shapes", "size", "table", "words")

    def __init__(
        self,
        code: PlanCode,
        kernel: Kernel,
        temporaries: Temporaries,
        made: Iterable[str],
        sizes: Sequence[int],
        threads: int,
    ) -> None:
        shapes, counts, words, block, self.parallel = code.evaluate(*sizes, threads, SERIAL_WORK)
        self.shapes: dict[str, tuple[int, ...]] = dict(zip((b.name for b in kernel.buffers), shapes, strict=True))
        self.made = [self.shapes[name] for name in made]
        self.words = np.frombuffer(pack(f"{len(words)}q", *words), np.int64)
        self.block = np.frombuffer(pack(f"{len(block)}q", *block), np.int64)
        self.table = code.table
        self.address = int(self.block.__array_interface__["data"][0])
        offsets, self.size = temporaries.placed(counts)
        self.offsets = np.array(offsets, np.int64)
        self.pooled = self.size <= _POOLED_BYTES

    @property
    def table_address(self) -> int:
        """Where the table of nests begins."""
        return self.address + 8 * self.table

    def blocks(self, nest: int) -> int:
        """Into how many blocks the nest of this number is cut for threads."""
        return int(self.block[self.table + 5 * nest + 3])


class Frame:
    """The memory of one call: the words that nests see, and the temporaries. ``address`` is that of the words.

    It is set up for one plan; `take` sets it up for another one.
    """

    __slots__ = ("_temporaries", "_temporary_slots", "address", "plan", "words")

    def __init__(self, words: int, temporary_slots: Array) -> None:
        # The counter of parallel nests wants a cache line of its own.
        self.words = aligned(np.empty, (words,), "int64")
        self.address = int(self.words.__array_interface__["data"][0])
        self.plan: LaunchPlan | None = None
        self._temporaries: Array | None = None
        self._temporary_slots = temporary_slots

    def take(self, plan: LaunchPlan) -> None:
        """Be as calls by ``plan`` begin."""
        self.plan = plan
        self.words[: len(plan.words)] = plan.words
        if not len(plan.offsets):
            return
        if self._temporaries is None or self._temporaries.size < plan.size:
            self._temporaries = aligned(np.empty, (plan.size,), "uint8")
        self.words[self._temporary_slots] = self._temporaries.__array_interface__["data"][0] + plan.offsets

    def leave(self) -> None:
        """After a call: large temporaries do not outlive it."""
        if self.plan is not None and not self.plan.pooled:
            self.plan = self._temporaries = None

    def temporary(self, plan: LaunchPlan, buffer: Buffer, number: int) -> Array:
        """The array of the temporary of this number."""
        shape, dtype = plan.shapes[buffer.name], numpy_dtype(buffer.dtype)
        return np.ndarray(shape, dtype, self._temporaries, int(plan.offsets[number]))
