"""Plans: everything about a call that depends on the sizes alone, worked out once for each set of sizes.

A `Plan` holds the shapes, the frame as it is before the call, and the table of launches. `Frame`s are the memory of one
call; calls take them from the plan's pool, so that calls from several threads do not meet.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.codegen.frame import EXCLUSIVE, FrameLayout
from tcdsl.codegen.nests import parallel_loop
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.sizes import size_function
from tcdsl.lowering.effort import SERIAL_WORK, weight
from tcdsl.lowering.liveness import ALIGNMENT, place_temporaries
from tcdsl.lowering.loops import Buffer, Kernel, Nest
from tcdsl.lowering.traversal import expressions

__all__ = ["Binding", "Frame", "Launch", "Plan", "aligned_empty"]

Array = np.ndarray[Any, np.dtype[Any]]

_POOLED_BYTES = 1 << 18  # Temporaries up to this many bytes stay allocated between calls.
_BLOCKS_PER_THREAD = 4


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialized row-major array that begins on a cache line, for vector loads that do not straddle two."""
    count = dtype.itemsize
    for extent in shape:
        count *= extent
    memory = np.empty(count + ALIGNMENT, np.uint8)
    start = -memory.__array_interface__["data"][0] % ALIGNMENT
    return memory[start : start + count].view(dtype).reshape(shape)


@dataclass(frozen=True, slots=True)
class Binding:
    """A buffer whose array changes from call to call.

    ``contiguous``: nests take its last stride to be 1. ``exclusive``: nests write it, so no other array may share its
    memory. ``written``: it changes, by the nests or by the copies after them.
    """

    buffer: Buffer
    contiguous: bool
    exclusive: bool
    written: bool


class Launch:
    """How one nest is called, as functions of the sizes."""

    def __init__(self, nest: Nest, address: int, places: Sequence[int] = ()) -> None:
        self.address = address
        self.places = np.array(places, np.int64)
        self._places = int(self.places.__array_interface__["data"][0])
        self._work = size_function(nest.work)
        self._weight = weight(expressions(nest.body))
        loop = parallel_loop(nest)
        self._bounds = None if loop is None else (size_function(loop.start), size_function(loop.stop), loop.step)

    def row(self, sizes: Mapping[str, int], threads: int) -> tuple[int, int, int, int, int]:
        """Address, begin, end, number of blocks, address of the places: see `tcdsl.codegen.driver`."""
        if self._bounds is None:
            return self.address, 0, 0, 1, self._places
        begin, end, step = int(self._bounds[0](sizes)), int(self._bounds[1](sizes)), self._bounds[2]
        if step != 1:
            begin, end = 0, len(range(begin, end, step))
        extent = max(0, end - begin)
        small = threads < 2 or self._work(sizes) * self._weight < SERIAL_WORK
        blocks = 1 if small else min(extent, threads * _BLOCKS_PER_THREAD)
        return self.address, begin, max(begin, end), max(1, blocks), self._places


class Frame:
    """The memory of one call: the words that nests see, and the temporaries. ``address`` is that of the words."""

    __slots__ = ("address", "objects", "objects_address", "temporaries", "words")

    def __init__(self, plan: Plan) -> None:
        # The counter of parallel nests wants a cache line of its own.
        self.words = aligned_empty((plan.layout.words,), np.dtype(np.int64))
        self.words[:] = plan.words
        self.address = int(self.words.__array_interface__["data"][0])
        self.objects = np.zeros(max(1, plan.array_count), np.int64)
        self.objects_address = int(self.objects.__array_interface__["data"][0])
        self.temporaries: Array | None = None
        if plan.pooled:
            self.allocate(plan)

    def allocate(self, plan: Plan) -> None:
        """Allocate the block of temporaries and enter their addresses."""
        if not plan.placement.offsets:
            return
        self.temporaries = aligned_empty((plan.placement.size,), np.dtype(np.uint8))
        self.words[plan.temporary_slots] = self.temporaries.__array_interface__["data"][0] + plan.temporary_offsets

    def temporary(self, plan: Plan, buffer: Buffer) -> Array:
        """The array of a temporary; `allocate` has run."""
        shape, dtype = plan.shapes[buffer.name], numpy_dtype(buffer.dtype)
        offset = plan.placement.offsets[buffer.name]
        return np.ndarray(shape, dtype, self.temporaries, offset)


class Plan:
    """The plan of a kernel for one set of sizes.

    ``table`` is the table of launches, ``parallel`` whether any of them is worth several threads.
    """

    def __init__(
        self,
        kernel: Kernel,
        layout: FrameLayout,
        sizes: Mapping[str, int],
        bindings: Sequence[Binding],
        launches: Sequence[Launch],
        threads: int,
    ) -> None:
        self.name = kernel.program.name
        self.layout = layout
        self.sizes = sizes
        self.shapes = {
            buffer.name: tuple(max(0, int(size_function(extent)(sizes))) for extent in buffer.shape)
            for buffer in kernel.buffers
        }
        self.words = self._initial_words(kernel)
        self.array_count = len(bindings)
        self.pack: Callable[..., None] = struct.Struct(f"{len(bindings)}q").pack_into
        self.bindings = self._rows(bindings)
        self.bindings_address = int(self.bindings.__array_interface__["data"][0])
        rows = [launch.row(sizes, threads) for launch in launches]
        self.table = np.array(rows or [(0, 0, 0, 1, 0)], np.int64)
        self.table_address = int(self.table.__array_interface__["data"][0])
        self.parallel = any(blocks > 1 for *_, blocks, _ in rows)
        self.placement = place_temporaries(kernel, sizes)
        self.temporary_slots = np.array([layout.buffers[name] for name in self.placement.offsets], np.int64)
        self.temporary_offsets = np.array(list(self.placement.offsets.values()), np.int64)
        self.pooled = self.placement.size <= _POOLED_BYTES
        self._free: deque[Frame] = deque()

    def _initial_words(self, kernel: Kernel) -> Array:
        words = np.zeros(self.layout.words, np.int64)
        for name, word in self.layout.sizes.items():
            words[word] = self.sizes[name]
        for buffer in kernel.buffers:
            slot, shape = self.layout.buffers[buffer.name], self.shapes[buffer.name]
            stride = 1
            for axis in reversed(range(len(shape))):
                words[slot + 1 + axis] = stride
                words[slot + 1 + len(shape) + axis] = shape[axis]
                stride *= max(1, shape[axis])
        return words

    def _rows(self, bindings: Sequence[Binding]) -> Array:
        # As `tcdsl.codegen.driver` reads them. The flags are NumPy's: C-contiguous, aligned, writeable.
        row: list[int] = []
        for binding in bindings:
            dtype, shape = numpy_dtype(binding.buffer.dtype), self.shapes[binding.buffer.name]
            flags = 0x100 | (0x1 if binding.contiguous else 0) | (0x400 if binding.written else 0)
            flags |= EXCLUSIVE if binding.exclusive else 0
            row += [self.layout.buffers[binding.buffer.name], len(shape), id(dtype), dtype.itemsize, flags, *shape]
        return np.array(row or [0], np.int64)

    def acquire(self) -> Frame:
        """A frame that no other call uses."""
        try:
            frame = self._free.pop()
        except IndexError:
            return Frame(self)
        return frame

    def release(self, frame: Frame) -> None:
        """Give ``frame`` back; large temporaries do not outlive the call."""
        if not self.pooled:
            frame.temporaries = None
        if len(self._free) < 4:
            self._free.append(frame)
