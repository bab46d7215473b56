"""Rows of the table that run no nest but say which row is next: the loops of rounds.

::

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
    "BEGIN",
    "BEGIN_AT",
    "BEGIN_COUNTED",
    "BLOCKS_PER_THREAD",
    "CONDITION",
    "END",
    "HOLD_NUMBER",
    "LOOKS",
    "PAUSED",
    "RANGED",
    "ROUND_WORK",
    "SWAP",
    "ControlRow",
]

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
