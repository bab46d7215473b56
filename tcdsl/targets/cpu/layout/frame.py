"""The frame: the block of 64-bit words through which a call and its nests talk.

::

    word 0         status: 0, or why a nest stopped (`CHECK_FAILED`, `OUT_OF_RANGE`, `INTERRUPTED`)
    word 1, 2      the number of the check (or the slot of the buffer), the extent of the axis
    word 3         the address of the row of the table whose nest runs on several threads
    word 4 .. 11   the values of the loop variables around the check, outermost first; in word 4 also how much work the
                   driver had done when it paused
    word 12        how many blocks of a parallel nest have ended
    word 13        the address of the driver's ``look_for_interrupts``
    word 14        the thread that the call is made on
    word 15        the address of the places of the nest that runs (`tcdsl.targets.cpu.layout.kernel_code`)
    word 16        the next block of a parallel nest, on a cache line that nothing else uses while nests run
    word 17 .. 23  the value found by the check: one integer of seven words
    word 24        eight words that an access out of range is sent to in debug mode
    word 32 ..     the sizes, then per buffer: address, strides, extents, then for each loop of rounds the number of the
                   round, which nests see as a size, and how many there are, then what nests need of sizes; behind
                   that numbers that a call is given, and two words for each array with the stretch of memory that it
                   takes (`tcdsl.targets.cpu.call.driver`)

The layout is fixed when the kernel is compiled, so nests find everything at constant offsets. Strides count elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcdsl.lowering.loopir.loops import Kernel

__all__ = [
    "CHECK_FAILED",
    "CHECK_WORD",
    "COUNTER_WORD",
    "DONE_WORD",
    "ENDED_WORD",
    "EXTENT_WORD",
    "FIRST_WORD",
    "INTERRUPTED",
    "INTERRUPT_WORD",
    "MAX_POSITIONS",
    "OUT_OF_RANGE",
    "PLACES_WORD",
    "POSITION_WORD",
    "ROW_WORD",
    "SCRATCH_WORD",
    "STATUS_WORD",
    "THREAD_WORD",
    "VALUE_WORD",
    "VALUE_WORDS",
    "FrameLayout",
    "frame_layout",
    "layout_of",
]

STATUS_WORD = 0
CHECK_WORD = 1
EXTENT_WORD = 2
ROW_WORD = 3
POSITION_WORD = 4
DONE_WORD = 4
MAX_POSITIONS = 8
ENDED_WORD = 12
INTERRUPT_WORD = 13
THREAD_WORD = 14
PLACES_WORD = 15
COUNTER_WORD = 16
VALUE_WORD = 17
VALUE_WORDS = 7
SCRATCH_WORD = 24
FIRST_WORD = 32

CHECK_FAILED = 1
OUT_OF_RANGE = 2
INTERRUPTED = 3


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """Where sizes and buffers lie: ``layout.buffers["A"]`` is the word that holds the address of ``A``.

    The strides of a buffer of rank n are the n words after its address, its extents the n words after those. The number
    of a round is one of the sizes; the number of rounds is in the word after it.
    """

    sizes: Mapping[str, int]
    buffers: Mapping[str, int]
    words: int


def frame_layout(
    sizes: Sequence[str],
    buffers: Sequence[tuple[str, int]],
    rounds: Sequence[str] = (),
    values: Sequence[str] = (),
) -> FrameLayout:
    """The layout for the named sizes, the ``(name, rank)`` of each buffer, the numbers of rounds, and what is known of
    sizes, in order.
    """
    size_words = {name: FIRST_WORD + k for k, name in enumerate(sizes)}
    word = FIRST_WORD + len(size_words)
    slots = {}
    for name, rank in buffers:
        slots[name] = word
        word += 1 + 2 * rank
    for number in rounds:
        size_words[number] = word
        word += 2
    for name in values:
        size_words[name] = word
        word += 1
    return FrameLayout(MappingProxyType(size_words), MappingProxyType(slots), word)


def layout_of(kernel: Kernel) -> FrameLayout:
    """The layout for the sizes and buffers of ``kernel``."""
    buffers = [(buffer.name, len(buffer.shape)) for buffer in kernel.buffers]
    rounds = [each.rounds.number for each in kernel.repeated]
    values = [name for name, _ in kernel.size_values]
    return frame_layout([size.name for size in kernel.program.sizes], buffers, rounds, values)
