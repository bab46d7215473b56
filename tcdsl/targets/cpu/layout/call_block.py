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

Rows of the table of nests that run none but say which row is next make the loops of rounds::

    0, BEGIN, word, count, row          the number in ``word`` becomes 0, ``count`` goes into the next word; on to
                                        ``row`` if there is no round
    0, BEGIN_COUNTED, word, slot, row   the same with the count that the int64 holds whose address is in ``slot``
    0, BEGIN_AT, word, slot, row        the number in ``word`` becomes the int64 whose address is in ``slot``; on to
                                        ``row`` if it is not below the count
    0, CONDITION, slot, 0, row          on to ``row`` if the bool is false whose address is in ``slot``
    0, HOLD_NUMBER, word, slot, 0       the number of the round goes into the int64 whose address is in ``slot``
    0, SWAP, slot, slot, 0              two buffers have each other's memory from here on
    0, END, word, work, row             the next round begins at ``row``, if there is one; the one that ends has done so
                                        much work, in points, beside that of loops inside
    0, RANGED, slot, nest, places       the address of a nest and of its places; the cells 1 to 3 of the buffer whose
                                        address is in ``slot`` say where its loop begins and ends, and its work

The address of a nest is not 0. Words and slots are those of the frame; rows are counted from the beginning of the
table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcdsl.lowering.loopir.machine import ROUND_WORK

if TYPE_CHECKING:
    from tcdsl.ir.expressions import Expr

__all__ = [
    "ALIGNED",
    "ARRAY_FIELDS",
    "ARRAY_FLAGS",
    "ARRAY_TYPE",
    "BEGIN",
    "BEGIN_AT",
    "BEGIN_COUNTED",
    "BIND_ONLY",
    "BLOCKS_PER_THREAD",
    "CONDITION",
    "CONTIGUOUS",
    "END",
    "EXTENTS",
    "FIRST_ROW",
    "HOLD_NUMBER",
    "INPUTS",
    "KNOWN_APART",
    "LOOKS",
    "MADE",
    "NESTS",
    "NOT_AS_PLANNED",
    "NO_CELLS",
    "NUMBER",
    "OVERLAPPING",
    "PAUSED",
    "RANGED",
    "ROUND_WORK",
    "ROW_WORDS",
    "SWAP",
    "TABLE",
    "TUPLE_ITEMS",
    "WRITEABLE",
    "WRITTEN",
    "ControlRow",
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

BEGIN = 1
BEGIN_COUNTED = 2
CONDITION = 3
HOLD_NUMBER = 4
SWAP = 5
END = 6
RANGED = 7
BEGIN_AT = 8

BLOCKS_PER_THREAD = 4
"""Into how many blocks parallel loops are cut, so that threads may take blocks as they come."""

LOOKS = 1 << 22
"""So often a thread that waits for others looks whether they have ended before it looks for interrupts."""

PAUSED = -3
"""Less the number of the row to go on with: what the driver returns after as much work as it was told."""


@dataclass(frozen=True, slots=True)
class ControlRow:
    """The words of a row behind the 0; ``second`` may be an expression of sizes, or the work of ``nests``."""

    kind: int
    first: int
    second: int | Expr = 0
    row: int = 0
    nests: tuple[int, ...] = ()
