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
"""

from __future__ import annotations

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
