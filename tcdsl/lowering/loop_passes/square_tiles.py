"""Reads and stores that jump from row to row, made in square tiles.

Where some arrays are read along rows and others across them, any order of the loops jumps in some. A tile is read row
by row, and lies transposed in memory of its own, which the nearest cache holds::

    for i in 0 .. N:                       for first in 0 .. N by 64:
        for j in 0 .. M:                       for first2 in 0 .. M by 64:
            y[i, j] = x[j, i] + z[i, j]            local tile: float32[64, 64]
                                                   for j in first2 .. min(M, first2 + 64):
                                                       for i in first .. min(N, first + 64):
                                                           tile[i - first, j - first2] = x[j, i]
                                                   for i in first .. min(N, first + 64):
                                                       for j in first2 .. min(M, first2 + 64):
                                                           y[i, j] = tile[i - first, j - first2] + z[i, j]

So are cells that are stored across rows. Loops between the two run inside of a tile if it is the same for all of their
steps; if there are none, small planes and narrow parts of rows go through no tile. The terms of a sum come in an order
that depends on the sizes alone; those of a scalar are added up in a row of sums, which are added up last. Where each
point has a cell of its own, all tiles are one parallel loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer, neutral_constant, plain_read
from tcdsl.ir.expressions import (
    Apply,
    Constant,
    Expr,
    Let,
    Local,
    Read,
    children,
    index_variables,
    reads,
    transform,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.primitives import LAZY
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, LocalBuffer, Loop, Node, Store, Update, loops_over
from tcdsl.lowering.loopir.tiles import length_of_loop, most_steps, quotient_up
from tcdsl.lowering.loopir.traversal import own_expressions, scalars_of, with_bodies, with_expressions
from tcdsl.polyhedra.linear import linear_form

__all__ = ["through_tiles"]

# Steps along each side of a tile, the fewest that are worth one, and tiles of a nest at most.
_SIDE, _FEWEST, _MOST = 64, 16, 4
# Cells of a plane that are near in any order, and not worth tiles that serve them once.
_NEAR = 1 << 15
_TYPES = frozenset(("float32", "float64", "int32", "int64"))

_Straight = Define | Accumulate | Store | Update


def through_tiles(nodes: Iterable[Node], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with what is read across rows read in tiles."""
    out: list[Node] = []
    for node in nodes:
        made = _in_tiles(node, names) if isinstance(node, Loop) else None
        out += (with_bodies(node, lambda body: through_tiles(body, names)),) if made is None else (made,)
    return tuple(out)


def _in_tiles(loop: Loop, names: FreshNames) -> Loop | None:
    nest = _Nest.of(loop)
    if nest is None:
        return None
    found = nest.across()
    return nest.tiled(found, names) if 0 < len(found) <= _MOST else None


@dataclass(frozen=True, slots=True)
class _Nest:
    """The loop ``over`` rows of what is read across them, those ``between``, and the one ``along`` rows of the others.

    ``body`` is straight code, whose points may come in any order.
    """

    over: Loop
    between: tuple[Loop, ...]
    along: Loop
    body: tuple[_Straight, ...]

    @staticmethod
    def of(loop: Loop) -> _Nest | None:
        loops = [loop]
        while len(loops[-1].body) == 1 and isinstance(loops[-1].body[0], Loop):
            loops.append(loops[-1].body[0])
        if len(loops) == 1 or any(each.step != 1 or each.rounds or each.condition or each.seldom for each in loops):
            return None
        over, *between, along = loops
        bounds = (bound for inner in loops[1:] for bound in (inner.start, inner.stop))
        if any(over.variable in scalars_of(bound) for bound in bounds) or _is_short(over) or _is_short(along):
            return None
        body = tuple(node for node in along.body if isinstance(node, _Straight))
        nest = _Nest(over, tuple(between), along, body)
        return nest if len(body) == len(along.body) and nest._in_any_order() else None

    def _in_any_order(self) -> bool:
        # Cells that are stored have a point each; what is written is read by the same point only; sums commute.
        own = {index(loop.variable) for loop in (self.over, *self.between, self.along)}
        held = {node.name for node in self.body if isinstance(node, Define)}
        written: dict[str, tuple[Expr, ...]] = {}
        for node in self.body:
            if isinstance(node, Store | Update) and written.setdefault(node.buffer, node.indices) != node.indices:
                return False
            if isinstance(node, Store) and not own <= set(node.indices):
                return False
            if isinstance(node, Accumulate | Update) and ACCUMULATORS[node.accumulate].ordered:
                return False
            if isinstance(node, Accumulate) and node.name in held:
                return False
        return all(read.indices == written.get(read.tensor, read.indices) for read in self._reads(reads))

    def _reads(self, of: Callable[[Expr], Iterable[Read]]) -> Iterator[Read]:
        return (read for node in self.body for expr in own_expressions(node) for read in of(expr))

    def across(self) -> tuple[Read, ...]:
        """What is read, or only stored, across rows at every point."""
        written = {node.buffer for node in self.body if isinstance(node, Store | Update)}
        read = [read for read in self._reads(_always) if read.tensor not in written and self._is_across(read)]
        used = {read.tensor for read in self._reads(reads)}
        stores = (node for node in self.body if isinstance(node, Store) and node.buffer not in used)
        stored = [cell for cell in map(_cell, stores) if self._is_across(cell)]
        return tuple(dict.fromkeys((*read, *stored)))

    def _is_across(self, cell: Read) -> bool:
        own = {node.name for node in self.body if isinstance(node, Define)}
        if cell.dtype not in _TYPES or len(cell.indices) < 2 or any(own & scalars_of(axis) for axis in cell.indices):
            return False
        if any(isinstance(part, Read | Let) for axis in cell.indices for part in walk(axis)):
            return False
        over, along = self.over.variable, self.along.variable
        *rows, last = map(index_variables, cell.indices)
        if along in last or not any(along in axis for axis in rows) or any(over in axis for axis in rows):
            return False
        terms, _ = linear_form(cell.indices[-1])
        return [atom for atom in terms if over in index_variables(atom)] == [index(over)] and abs(
            terms[index(over)]
        ) == 1

    def tiled(self, cells: Sequence[Read], names: FreshNames) -> Loop:
        """The same points, tile by tile; what lies in ``cells`` goes through memory of its own."""
        together = self._in_parallel()
        number, other = names.fresh("first"), names.fresh("first")
        first, second = ((Local(name, "int64") if together else index(name)) for name in (number, other))
        over, along = _from(self.over, first), _from(self.along, second)
        place = apply("sub", index(over.variable), first), apply("sub", index(along.variable), second)
        tiles = {cell: plain_read(names.fresh(f"tile_{cell.tensor}"), place, cell.dtype) for cell in cells}
        sides = integer(_SIDE), integer(_SIDE)
        read = set(self._reads(reads))

        def in_tile(expr: Expr) -> Expr:
            return transform(expr, lambda part: tiles.get(part, part) if isinstance(part, Read) else part)

        rows: dict[str, tuple[LocalBuffer, Accumulate]] = {}

        def moved(node: Node) -> Node:
            if isinstance(node, Accumulate) and node.value.dtype in _TYPES:
                # Terms of cells beside each other are added up beside each other.
                row, _ = rows.setdefault(node.name, (_row(node, names), node))
                node = Update(row.name, place[1:], node.accumulate, node.value)
            if isinstance(node, Store) and (tile := tiles.get(_cell(node))) is not None:
                node = replace(node, buffer=tile.tensor, indices=place)
            return with_expressions(node, in_tile)

        def in_rows(node: Node) -> Node:
            return replace(along, body=(replace(over, body=(node,)),))

        made: list[LocalBuffer] = [
            LocalBuffer(tile.tensor, tile.dtype, sides, (_SIDE, _SIDE)) for tile in tiles.values()
        ]
        before: list[Node] = [in_rows(Store(tile.tensor, place, cell)) for cell, tile in tiles.items() if cell in read]
        after: list[Node] = [
            in_rows(Store(cell.tensor, cell.indices, tile)) for cell, tile in tiles.items() if cell not in read
        ]
        body: tuple[Node, ...] = (replace(over, body=(replace(along, body=tuple(map(moved, self.body))),)),)
        for row, sums in rows.values():
            made.append(row)
            before.append(replace(along, body=(Store(row.name, place[1:], _neutral(sums)),)))
            after.append(replace(along, body=(_joined(sums, row, place[1:]),)))
        between = [(loop.variable, loop.start, loop.stop) for loop in self.between]
        steady = (*(axis for cell in cells for axis in cell.indices), self.along.start, self.along.stop)
        if {name for name, _, _ in between}.isdisjoint(frozenset[str]().union(*map(scalars_of, steady))):
            # One tile for all their steps.
            body, between = loops_over(between, body), []
        shared = len(between) < len(self.between)
        body = (*made, *before, *body, *after)
        if not shared:
            straight = (replace(over, body=(replace(along, body=self.body),)),)
            plane = not self.between and all(len(cell.indices) == 2 for cell in cells)
            body = (Branch(self._is_worth_it(over, along, plane=plane), body, straight),)
        if together:
            return self._over_tiles(number, other, names, loops_over(between, body))
        body = loops_over(between, (Loop(other, self.along.start, self.along.stop, _SIDE, body),))
        return Loop(number, self.over.start, self.over.stop, _SIDE, body, self.over.kind)

    def _is_worth_it(self, over: Loop, along: Loop, *, plane: bool) -> Expr:
        # Narrow parts of rows lie in the same lines of a cache, and a small plane is near.
        wide = (apply("ge", length_of_loop(loop), integer(_FEWEST)) for loop in (over, along))
        worth = apply("and_", *wide)
        if plane:
            points = apply("mul", length_of_loop(self.over), length_of_loop(self.along))
            worth = apply("and_", apply("gt", points, integer(_NEAR)), worth)
        return worth

    def _in_parallel(self) -> bool:
        # Whether tiles along rows may be different threads': each writes cells of its own.
        written = [node for node in self.body if isinstance(node, Store | Update | Accumulate)]
        own = index(self.along.variable)
        return (
            self.over.kind == "parallel"
            and not scalars_of(self.along.start) | scalars_of(self.along.stop)
            and all(not isinstance(node, Accumulate) and own in node.indices for node in written)
        )

    def _over_tiles(self, first: str, second: str, names: FreshNames, body: tuple[Node, ...]) -> Loop:
        # One loop over all tiles: there may be few of them over the rows.
        tile, side = names.fresh("tile"), integer(_SIDE)
        many, across = (quotient_up(length_of_loop(loop), side) for loop in (self.over, self.along))
        row = apply("add", self.over.start, apply("mul", apply("floor_div", index(tile), across), side))
        column = apply("add", self.along.start, apply("mul", apply("mod", index(tile), across), side))
        ends = Define(first, row, index=True), Define(second, column, index=True)
        return Loop(tile, integer(0), apply("mul", many, across), 1, (*ends, *body), "parallel")


def _row(node: Accumulate, names: FreshNames) -> LocalBuffer:
    return LocalBuffer(names.fresh(f"row_{node.name}"), node.value.dtype, (integer(_SIDE),), (_SIDE,))


def _neutral(node: Accumulate) -> Constant:
    return neutral_constant(node.accumulate, node.value.dtype)


def _joined(node: Accumulate, row: LocalBuffer, place: tuple[Expr, ...]) -> Accumulate:
    # What -= has made is negative already.
    accumulate = "add" if node.accumulate == "subtract" else node.accumulate
    return replace(node, accumulate=accumulate, value=plain_read(row.name, place, row.dtype))


def _cell(store: Store) -> Read:
    # What is stored, as it would be read.
    return plain_read(store.buffer, store.indices, store.value.dtype)


def _is_short(loop: Loop) -> bool:
    most = most_steps(loop.start, loop.stop)
    return most is not None and most < _FEWEST


def _from(loop: Loop, first: Expr) -> Loop:
    # The steps of a tile.
    stop = apply("min", loop.stop, apply("add", first, integer(_SIDE)))
    return replace(loop, start=first, stop=stop, kind="serial")


def _always(expr: Expr) -> Iterator[Read]:
    # The reads that are made whatever the data are.
    if isinstance(expr, Read):
        yield expr
    elif isinstance(expr, Apply) and expr.primitive in LAZY:
        yield from _always(expr.arguments[0])
    else:
        for part in children(expr):
            yield from _always(part)
