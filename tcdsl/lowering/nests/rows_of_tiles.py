"""Rows and terms of sums of products in tiles: blocks of both, and where each row is in an array."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.expressions import Expr, Local
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.contraction import Side
from tcdsl.lowering.loopir.loops import Define, LocalBuffer, Loop, Node, Store
from tcdsl.lowering.loopir.tiles import quotient_up

__all__ = [
    "ROWS",
    "ROWS_OF_BLOCK",
    "RowBlock",
    "at_least_one",
    "blocks_of_terms",
    "defined",
    "digit",
    "in_tiles",
    "rows_of_blocks",
    "units_over",
]

ROWS = 6
"""Rows of a tile: with four registers of lanes their sums take twenty-four of thirty-two registers."""

ROWS_OF_BLOCK = 48
"""Rows that a panel serves before the next one comes."""

_UNITS = 16
"""Units of work for threads at least, if there are so many tiles."""

_FEWEST_TILES = 2
"""Tiles of rows at least that panels serve, even if there are few blocks then."""


def rows_of_blocks(rows: Expr, room: Expr) -> Expr:
    """The rows of a block, whole tiles: as many as there is ``room`` for, so few that threads have enough blocks."""
    enough = apply("max", integer(_FEWEST_TILES), apply("floor_div", rows, integer(_UNITS * ROWS)))
    tiles = apply("min", apply("floor_div", room, integer(ROWS)), enough)
    return apply("min", integer(ROWS_OF_BLOCK), in_tiles(at_least_one(tiles)))


def units_over(count: Expr) -> Expr:
    """In how many parts each of ``count`` is taken, so that there are enough for threads."""
    return apply("add", apply("floor_div", integer(_UNITS - 1), at_least_one(count)), integer(1))


def at_least_one(expr: Expr) -> Expr:
    """``expr``, or 1 if it is less."""
    return apply("max", expr, integer(1))


def defined(title: str, value: Expr, names: FreshNames, out: list[Node]) -> Local:
    """A new scalar for a position or a bound."""
    local = Local(names.fresh(title), "int64")
    out.append(Define(local.name, value, index=True))
    return local


def digit(number: Expr, length: Expr, title: str, names: FreshNames, out: list[Node]) -> tuple[Expr, Expr]:
    """What is left of a number behind its last digit, which has so many values; and the digit."""
    place = defined(title, apply("mod", number, length), names, out)
    return defined("left", apply("floor_div", number, length), names, out), place


def in_tiles(count: Expr) -> Expr:
    """The rows of so many tiles."""
    return apply("mul", integer(ROWS), count)


def blocks_of_terms(
    summed: Sequence[Side], most: int, names: FreshNames
) -> tuple[Callable[[tuple[Node, ...]], tuple[Node, ...]], list[tuple[str, Expr, Expr]], Expr, Expr]:
    """What puts loops over blocks of at most so many terms around, each summed variable's counter with the ends of a
    block, the number of a term in its block, and how many a block has.
    """
    out: list[Node] = []
    loops: list[tuple[str, Expr, tuple[Node, ...]]] = []
    parts: list[tuple[str, Expr, Expr]] = []
    inside: Expr = integer(1)
    term: Expr = integer(0)
    for span in reversed(summed):
        first, end = (Local(names.fresh(title), "int64") for title in ("first", "end"))
        room = at_least_one(apply("floor_div", integer(most), inside))
        steps = defined("steps", apply("min", at_least_one(span.length), room), names, out)
        number = names.fresh("part")
        stop = apply("min", span.length, apply("add", first, steps))
        low = apply("mul", index(number), steps)
        ends = Define(first.name, low, index=True), Define(end.name, stop, index=True)
        loops.append((number, at_least_one(quotient_up(span.length, steps)), ends))
        parts.append((names.fresh(span.variable), first, end))
        place = apply("sub", index(parts[-1][0]), first)
        term = apply("add", apply("mul", place, inside), term)
        inside = apply("mul", inside, steps)

    def around(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        for number, count, ends in loops:
            nodes = (Loop(number, integer(0), count, 1, (*ends, *nodes)),)
        return (*out, *nodes)

    return around, parts[::-1], term, inside


@dataclass(frozen=True, slots=True)
class RowBlock:
    """The rows ``low .. high``, which are ``count`` in whole tiles. ``nodes`` are before what is done in them.

    What several variables are in each row is taken apart once::

        count = min(48, 6 * ((high - low + 5) // 6))      whole tiles; the last row again behind it
        for row in 0 .. count:
            here = min(low + row, high - 1)
            places_y[row] = here % Y
            places_x[row] = here // Y
    """

    sides: tuple[Side, ...]
    low: Expr
    high: Expr
    count: Expr
    nodes: tuple[Node, ...]
    _kept: Mapping[str, str]
    _names: FreshNames

    @staticmethod
    def of(sides: tuple[Side, ...], low: Expr, high: Expr, names: FreshNames) -> RowBlock:
        """The block, with its rows counted by the ``sides``."""
        before: list[Node] = []
        length = apply("max", apply("sub", high, low), integer(0))
        whole = in_tiles(quotient_up(length, integer(ROWS)))
        count = defined("count", apply("min", integer(ROWS_OF_BLOCK), whole), names, before)
        if len(sides) == 1:
            return RowBlock(sides, low, high, count, tuple(before), {}, names)
        row = names.fresh("row")
        inside: list[Node] = []
        last = apply("sub", high, integer(1))
        here: Expr = defined("here", apply("min", apply("add", low, index(row)), last), names, inside)
        kept = {side.variable: names.fresh(f"places_{side.variable}") for side in sides}
        for k, side in reversed(tuple(enumerate(sides))):
            here, place = digit(here, side.length, side.variable, names, inside) if k else (here, here)
            inside.append(Store(kept[side.variable], (index(row),), place))
        before += (LocalBuffer(each, "int64", (integer(ROWS_OF_BLOCK),), (ROWS_OF_BLOCK,)) for each in kept.values())
        before.append(Loop(row, integer(0), count, 1, tuple(inside), seldom=True))
        return RowBlock(sides, low, high, count, tuple(before), kept, names)

    def at(self, row: Expr, out: list[Node]) -> dict[Expr, Expr]:
        """What the variables are in a row, counted from the first one of the block."""
        if not self._kept:
            (side,) = self.sides
            here = apply("min", apply("add", self.low, row), apply("sub", self.high, integer(1)))
            return {index(side.variable): side.at(defined("row", here, self._names, out))}
        read = {side: plain_read(self._kept[side.variable], (row,), "int64") for side in self.sides}
        return {
            index(side.variable): side.at(defined(side.variable, place, self._names, out))
            for side, place in read.items()
        }
