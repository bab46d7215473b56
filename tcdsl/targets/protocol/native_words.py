"""The words that calls without Python go by: a table for each kind of call, a record for each set of shapes.

::

    table     word 0         how many operands
              word 1         how many buckets less one; they are a power of two
              word 2         where the buckets are: each is the address of its first record, or 0
              word 3, 4      how many words keys have; how many words answers have
              word 5 ..      two words for each operand: its rank, `ANY_NUMBER` or `SAME_NUMBER`; the size of a cell

    operands  for each array its address, its extents and its strides in bytes; a number is one word
    key       behind them, for each array whether it is row-major, and its extents; a number that is to be the same
    answer    behind that, how many words of memory the call wants, and for each result its address, and its extents

    record    word 0         the next record of the bucket
              word 1         where the key stands in the record, in words, and behind it the answer
              word 2         the address of the block (`tcdsl.targets.cpu.layout.call_block`)
              word 3, 4      where the words of the frame are as they are before the call, and how many
              word 5         where temporaries begin behind the frame, in bytes
              word 6, 7      how many temporaries, how many numbers
              word 8         how many rows the table of nests has
              word 9, 10     the driver's ``execute`` and, where there are loops of rounds, its ``execute_rounds``; or 0
              word 11        the address of what nests call to look for interrupts: of nothing, as in all such code
              word 12 ..     the word of the frame and the offset of each temporary; the word of the frame and of the
                             operands of each number; then for each row of the block the word of the operands where
                             its array stands, or less 1 and negated: of the record, or for results that nobody asks
                             for, the offset behind the temporaries' beginning
"""

from __future__ import annotations

__all__ = [
    "ALIGNED_TO",
    "ANSWER_WORDS",
    "ANY_NUMBER",
    "BLOCK",
    "BUCKETS",
    "ENDLESS",
    "EXECUTE",
    "EXECUTE_ROUNDS",
    "HEAD",
    "HEAD_WORDS",
    "ITEMS",
    "KEY",
    "KEY_WORDS",
    "LOOK",
    "MASK",
    "NEXT",
    "NUMBERS",
    "OPERANDS",
    "ROWS",
    "SAME_NUMBER",
    "TEMPORARIES",
    "TEMPORARIES_AT",
]

MASK = 1
BUCKETS = 2
KEY_WORDS = 3
ANSWER_WORDS = 4
OPERANDS = 5

ANY_NUMBER = -1
SAME_NUMBER = -2

NEXT = 0
KEY = 1
BLOCK = 2
HEAD = 3
HEAD_WORDS = 4
TEMPORARIES_AT = 5
TEMPORARIES = 6
NUMBERS = 7
ROWS = 8
EXECUTE = 9
EXECUTE_ROUNDS = 10
LOOK = 11
ITEMS = 12

ALIGNED_TO = 64
"""Frames and temporaries begin on cache lines."""

ENDLESS = 1 << 62
"""As much work as no call does: it does not pause."""
