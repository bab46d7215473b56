"""The block: the words that describe a call of a kernel for one set of sizes, as the driver reads them.

::

    word 0 .. 1    how many arrays are given, how many are made
    word 2 .. 3    where the table of nests begins, in words; how many of its nests `run` runs
    word 4 .. 6    of Python's objects: where the fields of an array begin, the address of its type, where the items of
                   a tuple begin
    word 7         the word of the frame from which on the stretches of memory of the arrays are noted
    word 8 ..      a row for each array given, then one for each array made, then the table

A row holds the word of the frame for the array's address, its position in the tuple, its rank, the address of its
element type, the size of an element, flags, and its shape. The flags are those of NumPy that must be set, and two more.
A number that is given in the frame itself has its word there in place of a position.

A call brings an array for each program input that has a buffer, and one for each that it makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.lowering.loopir.loops import Buffer, Kernel

__all__ = [
    "ALIGNED",
    "ARRAY_FIELDS",
    "ARRAY_FLAGS",
    "ARRAY_TYPE",
    "BIND_ONLY",
    "CONTIGUOUS",
    "EXTENTS",
    "FIRST_ROW",
    "INPUTS",
    "KNOWN_APART",
    "MADE",
    "NESTS",
    "NOT_AS_PLANNED",
    "NO_CELLS",
    "NUMBER",
    "OVERLAPPING",
    "ROW_WORDS",
    "TABLE",
    "TUPLE_ITEMS",
    "WRITEABLE",
    "WRITTEN",
    "CallArray",
    "CallArrays",
]

INPUTS = 0
MADE = 1
TABLE = 2
NESTS = 3
ARRAY_FIELDS = 4
ARRAY_TYPE = 5
TUPLE_ITEMS = 6
EXTENTS = 7
FIRST_ROW = 8
ROW_WORDS = 6

CONTIGUOUS = 0x1
ALIGNED = 0x100
WRITEABLE = 0x400
WRITTEN = 1 << 20
"""The call changes the array: its cells must not be shared, neither among each other nor with another array."""
NUMBER = 1 << 21
ARRAY_FLAGS = WRITTEN - 1
"""Those that are NumPy's own."""

NO_CELLS = -(1 << 60)
"""Where the memory of an array without cells ends: before every other one begins."""

BIND_ONLY = 1
KNOWN_APART = 2
"""Modes of `run`: run no nest; the arrays are known to share no cells."""

NOT_AS_PLANNED = -1
OVERLAPPING = -2
"""Results of `run`: an array is not as its row says; the simple test could not tell that arrays share no cells."""


Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class CallArray:
    """A buffer whose array changes from call to call, and where that stands among the arrays given, or made.

    ``contiguous``: nests take its last stride to be 1. ``exclusive``: nests write it, so no other array may share its
    memory. ``written``: it changes, by the nests or by the copies after them.
    """

    buffer: Buffer
    position: int
    contiguous: bool
    exclusive: bool
    written: bool


class CallArrays:
    """The arrays of a kernel's calls, for program inputs that are C-contiguous or not.

    ``given`` and ``made`` are the bindings of both kinds, ``given_positions`` and ``made_positions`` say where the
    array of a buffer is. ``direct``: the outputs are the arrays made, in order.
    """

    def __init__(self, kernel: Kernel, contiguous: tuple[bool, ...]) -> None:
        holders = {tensor: buffer for buffer in kernel.buffers for tensor in buffer.tensors}
        updated = {target for target, _ in kernel.updates}
        self.given: list[CallArray] = []
        for position, (tensor, unit) in enumerate(zip(kernel.program.inputs, contiguous, strict=True)):
            buffer = holders.get(tensor.name)
            if buffer is not None and buffer.kind in ("input", "update"):
                exclusive = buffer.kind == "update"
                self.given.append(CallArray(buffer, position, unit, exclusive, exclusive or buffer.name in updated))
        outputs = [buffer for buffer in kernel.buffers if buffer.kind == "output"]
        self.made = [CallArray(buffer, k, True, True, True) for k, buffer in enumerate(outputs)]
        self.made_types = [numpy_dtype(buffer.dtype) for buffer in outputs]
        self.given_positions = {binding.buffer.name: binding.position for binding in self.given}
        self.made_positions = {binding.buffer.name: binding.position for binding in self.made}
        self._program, self._counts = kernel.program.name, (len(contiguous), len(outputs))
        self.direct = list(kernel.outputs) == [buffer.name for buffer in outputs]

    @property
    def bindings(self) -> list[CallArray]:
        """All of them, in the order of the rows of a call's block."""
        return [*self.given, *self.made]

    def bound(self, inputs: Sequence[Array], made: Sequence[Array]) -> list[Array]:
        """The arrays of `bindings`. ``ValueError`` for a wrong number."""
        found = len(inputs), len(made)
        if found != self._counts:
            raise ValueError(f"{self._program} takes {sum(self._counts)} arrays, not {sum(found)}")
        return [*(inputs[binding.position] for binding in self.given), *made]
