"""Loops over rows as loops over tiles of a few rows, whose values stay in registers together."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import Constant, Expr, IndexValue, Local, Read, children, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Define, Loop, Node
from tcdsl.lowering.loopir.tiles import length_of_loop

__all__ = ["PARTS", "TILE", "TileRows", "is_plain", "parts", "whole_steps"]

TILE = 4
"""So many rows are together, and so many terms or cells: sixteen sums and what they add fit into registers."""

PARTS = 24
"""Parts of the expressions of a term at most: what is more takes longer than its loads."""


def parts(expr: Expr) -> int:
    """How many parts ``expr`` has. What sizes alone say, as the number of a round in an index, is one: it is known
    before the loops.
    """
    if not any(isinstance(part, IndexValue | Local | Read) for part in walk(expr)):
        return 1
    return 1 + sum(map(parts, children(expr)))


@dataclass(frozen=True, slots=True)
class TileRows:
    """The rows ``first .. end`` of a tile, of ``size`` at most, of those that ``loop`` is over."""

    loop: Loop
    tile: str
    first: Local
    end: Local
    size: Expr

    @staticmethod
    def of(loop: Loop, names: FreshNames, size: Expr | None = None) -> TileRows | None:
        """The rows of a tile of ``loop``; None if there never are `TILE`."""
        length = length_of_loop(loop)
        if isinstance(length, Constant) and int(length.value) < TILE:
            return None
        first, end = Local(names.fresh("first"), "int64"), Local(names.fresh("end"), "int64")
        return TileRows(loop, names.fresh("tile"), first, end, integer(TILE) if size is None else size)

    @property
    def places(self) -> list[dict[Expr, Expr]]:
        """What the variable is in each row of a whole tile."""
        return [{index(self.loop.variable): apply("add", self.first, integer(k))} for k in range(TILE)]

    @property
    def are_whole(self) -> Expr:
        """Whether there are as many as may be done together."""
        return apply("eq", apply("sub", self.end, self.first), integer(TILE))

    def each(self, nodes: tuple[Node, ...], first: Expr | None = None) -> Loop:
        """``nodes`` for each of the rows, or for those from ``first`` on, one after the other."""
        return replace(
            self.loop, start=self.first if first is None else first, stop=self.end, kind="serial", body=nodes
        )

    def tiles(self, nodes: tuple[Node, ...]) -> Loop:
        """The loop over tiles, each of which does ``nodes``."""
        loop = self.loop
        low = apply("add", loop.start, apply("mul", index(self.tile), self.size))
        high = apply("min", loop.stop, apply("add", self.first, self.size))
        ends = Define(self.first.name, low, index=True), Define(self.end.name, high, index=True)
        count = apply("floor_div", apply("add", length_of_loop(loop), apply("sub", self.size, integer(1))), self.size)
        return replace(loop, variable=self.tile, start=integer(0), stop=count, body=(*ends, *nodes))


def whole_steps(loop: Loop, names: FreshNames) -> tuple[tuple[Node, ...], Expr] | None:
    """Where the last `TILE` of the steps of ``loop`` end, and what defines it; None if there never are so many."""
    if isinstance(loop.start, Constant) and isinstance(loop.stop, Constant):
        steps = int(loop.stop.value) - int(loop.start.value)
        return None if steps < TILE else ((), integer(int(loop.stop.value) - steps % TILE))
    rest = apply("mod", length_of_loop(loop), integer(TILE))
    last = names.fresh("last")
    # A loop without steps leaves none.
    stop = apply("max", loop.start, apply("sub", loop.stop, rest))
    return (Define(last, stop, index=True),), Local(last, "int64")


def is_plain(loop: Loop) -> bool:
    """Whether it is a serial loop of steps of 1, which nothing ends early."""
    return loop.kind == "serial" and loop.step == 1 and not loop.rounds and loop.condition is None
