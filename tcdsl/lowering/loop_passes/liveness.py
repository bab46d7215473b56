"""When buffers are needed, where temporaries lie in the memory of a call, and how many bytes that takes.

A temporary lives from the first nest that touches it to the last one, so temporaries whose lives do not meet share
memory. All of them lie in one block, at offsets that depend on the sizes::

    nests            0   1   2   3          offset
    a  400 bytes     ███████                0
    b  400 bytes         ███████            448
    c  400 bytes             ███████        0
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.lowering.loop_passes.placement import aligned_count, placed
from tcdsl.lowering.loopir.kinds import names_in
from tcdsl.lowering.loopir.loops import Buffer, Kernel, LocalBuffer, Nest, Node, RepeatedNests
from tcdsl.lowering.loopir.traversal import buffers_read, buffers_written, walk_nodes
from tcdsl.rewrite.statement_kinds import Named

__all__ = ["MemoryUse", "Temporaries", "lifetimes", "peak_bytes"]


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """The bytes of one call, for given sizes.

    ``inputs`` are the caller's arrays, ``outputs`` the arrays returned, ``temporaries`` the block that holds all
    temporaries, of which those that are never needed together share memory; ``unshared`` is what they would take side
    by side. ``peak`` is everything that exists at once: inputs, outputs and temporaries.
    """

    inputs: int
    outputs: int
    temporaries: int
    unshared: int

    @property
    def peak(self) -> int:
        """Inputs, outputs and temporaries together."""
        return self.inputs + self.outputs + self.temporaries

    def __str__(self) -> str:
        text = f"{self.inputs} bytes of inputs, {self.outputs} of outputs, {self.temporaries} of temporaries"
        shared = f" ({self.unshared} without sharing)" if self.unshared > self.temporaries else ""
        return f"{text}{shared}; peak {self.peak}"


def peak_bytes(kernel: Kernel, sizes: Mapping[str, int]) -> MemoryUse:
    """``peak_bytes(lower(program), {"N": 1000}).peak``: the bytes that one call holds at its height.

    ``sizes`` gives every size of the program, as `tcdsl.ir.sizes.size_binding.bind_sizes` does. This is what the run
    time allocates: the outputs, and one block of temporaries that `Temporaries` places. The inputs are the
    caller's.
    """
    program = kernel.program
    outputs = sum(_bytes(buffer, sizes) for buffer in kernel.buffers if buffer.kind == "output")
    inputs = 0
    for tensor in program.inputs:
        inputs += _bytes(Buffer(tensor.name, tensor.dtype, tensor.shape, "input", ()), sizes)
    temporaries = Temporaries(kernel)
    counts = [_bytes(buffer, sizes) for buffer in temporaries.buffers]
    return MemoryUse(inputs, outputs, temporaries.placed(counts)[1], sum(map(aligned_count, counts)))


def lifetimes(kernel: Kernel) -> dict[str, tuple[int, int]]:
    """For every buffer that nests touch the numbers of the first and of the last nest that do.

    What is copied into inputs or returned at the end lives until then: its last number is that of the nests.
    """
    found: dict[str, tuple[int, int]] = {}
    for number, nest in enumerate(kernel.nests):
        for name in _touched(nest):
            first, _ = found.get(name, (number, number))
            found[name] = (first, number)
    end = len(kernel.nests)
    for name in (*kernel.outputs, *(source for _, source in kernel.updates)):
        found[name] = (found.get(name, (0, 0))[0], end)
    repeated = kernel.repeated
    for each in repeated:
        for name in each.rounds.held:
            first, last = found.get(name, (each.first, each.end))
            found[name] = (min(first, each.first), max(last, each.end))
    _meet(found, repeated)
    return found


def _meet(lives: dict[str, tuple[int, int]], repeated: Sequence[RepeatedNests]) -> None:
    # What is there before a loop, or after it, is there in all of its rounds. Buffers that have each other's memory
    # live equally long.
    before: dict[str, tuple[int, int]] = {}
    while before != lives:
        before = dict(lives)
        for each in repeated:
            for name, (first, last) in lives.items():
                if first < each.end and each.first <= last and (first < each.first or each.end <= last):
                    lives[name] = (min(first, each.first), max(last, each.end - 1))
            for pair in each.rounds.swaps:
                firsts, lasts = zip(*(lives[name] for name in pair), strict=True)
                lives.update(dict.fromkeys(pair, (min(firsts), max(lasts))))


class Temporaries:
    """The temporaries of a kernel, in order, and when they are needed: `placed` says where they lie."""

    def __init__(self, kernel: Kernel) -> None:
        self.buffers = tuple(buffer for buffer in kernel.buffers if buffer.kind == "temporary")
        lives = lifetimes(kernel)
        self.lives = [lives.get(buffer.name, (0, -1)) for buffer in self.buffers]

    def placed(self, counts: Sequence[int]) -> tuple[list[int], int]:
        """The offset of each, and the size of the block, for temporaries of so many bytes."""
        return placed(counts, self.lives)


def _touched(nest: Nest) -> set[str]:
    bounds = () if nest.bounds is None else (nest.bounds,)
    return {*(name for _, name in names_in(nest, _memory)), *bounds}


def _memory(nodes: tuple[Node, ...]) -> Iterator[Named]:
    own = {node.name for node in walk_nodes(nodes) if isinstance(node, LocalBuffer)}
    return (("buffer", name) for name in {*buffers_read(nodes), *buffers_written(nodes)} - own)


def _bytes(buffer: Buffer, sizes: Mapping[str, int]) -> int:
    extents = (max(0, evaluate_size(extent, sizes)) for extent in buffer.shape)
    return prod(extents) * numpy_dtype(buffer.dtype).itemsize
