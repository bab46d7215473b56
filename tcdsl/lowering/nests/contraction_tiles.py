"""Sums of products in tiles that stay in registers (`tcdsl.lowering.loopir.contraction`).

The right factor is packed into panels, a few lanes side by side, one panel after the other. Tiles of six rows then read
the left factor where it lies, so that a multiplication with an addition is one instruction, and takes half a load::

    parallel for panel in 0 .. (N + 63) // 64:
        for k in 0 .. K:
            for lane in 0 .. 64:
                panels[panel, k, lane] = B[k, 64*panel + lane], or 0 behind the last one

    parallel for block of rows:
        for block of k:
            for panel, for tile of six rows in block:
                for lane in 0 .. 64, in lanes:
                    sum = sum1 = ... = 0
                    for k in block:
                        sum += A[row, k] * panels[panel, k, lane]
                        sum1 += A[row1, k] * panels[panel, k, lane]
                        ...
                    tile[0, lane] = sum; ...
                C[rows, lanes] += tile

Several variables of rows are one axis, whose positions are taken apart once a tile: so the pixels of an image are rows,
whatever their number along each side. The last panel has half as many lanes where these are enough. Rows behind the
last one are that one again, and are not stored. Blocks depend on the sizes alone, and so do all bits of a result.

Where sizes are such that there is little to do, and where a factor is infinite beside a zero that stands for no term,
the plain loops run instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import apply, constant, index, integer, plain_read, product_of
from tcdsl.ir.expressions import Constant, Expr, Local, Read, substitute
from tcdsl.lowering.loopir.contraction import Side, SumOfProducts
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Buffer,
    Define,
    LocalBuffer,
    Loop,
    Node,
    Store,
    Update,
    loops_over,
)
from tcdsl.lowering.loopir.point_code import update
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.nests.bodies import NestContext, StatementLoops
from tcdsl.lowering.program_passes.schedule import LoopOrder

__all__ = ["ContractionTiles", "contraction_tiles"]

_ROWS = 6
"""Rows of a tile: with four registers of lanes their sums take twenty-four of thirty-two registers."""

_TERMS = 256
"""Terms that are added before the next block: what a panel has of them stays in the second cache."""

_ROWS_OF_BLOCK, _BLOCKS = 48, 16
"""Rows that a panel serves before the next one comes, fewer where there would be less than so many blocks."""

_SIDE = 64
"""Terms of a block of a panel that is stored across."""

_Values = Mapping[Expr, Expr]


def contraction_tiles(plan: LoopOrder, setting: NestContext) -> ContractionTiles | None:
    """The tiles of a plan; None unless it is a contraction."""
    found = plan.contraction
    return None if found is None else ContractionTiles(found, plan, StatementLoops(plan, setting))


class ContractionTiles:
    """The nests of one contraction.

    ``always`` says that they do all the work: else the plain loops do it `elsewhere`.
    """

    def __init__(self, found: SumOfProducts, plan: LoopOrder, body: StatementLoops) -> None:
        self._found = found
        self._plan = plan
        self._body = body
        self._names = body.setting.names
        self._dtype = plan.tensor.dtype
        self._lanes = body.setting.machine.lanes(self._dtype)
        pays = found.pays
        self._pays = None if isinstance(pays, Constant) else pays
        #: Whether it is large enough for any sizes.
        self.is_large = self._pays is None
        self.always = self.is_large and not found.guards
        self._panels = quotient_up(found.lane.length, integer(self._lanes))
        outer = tuple(span.length for span in found.outer)
        shape = (*outer, self._where_pays(self._panels), *(span.length for span in found.summed), integer(self._lanes))
        self._packed = self._buffer("panels", shape)
        self._sound = self._buffer("sound", (*outer, self._panels)) if found.guards else None

    def nests(self) -> Iterator[tuple[str, tuple[Node, ...], Expr]]:
        """How each nest is called, its loops and its work: panels, then tiles."""
        rows, points = self._found.count_of_rows, product_of(self._packed.shape)
        yield "pack_", self._packing(), points
        yield "nest_", self._tiles(), apply("mul", rows, points)

    def elsewhere(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """``nodes``, the plain loops, where they run."""
        if self._sound is None:
            assert self._pays is not None
            return (Branch(apply("not_", self._pays), nodes),)
        match nodes:
            case (Loop(kind="parallel") as loop,):
                return (replace(loop, body=self._if_unsound(loop.body)),)
            case _:
                return self._if_unsound(nodes)

    def short_loops(self) -> tuple[Node, ...]:
        """Plain loops for what hardly ever happens, in little code."""
        plan, body = self._plan, self._body
        order = (*plan.outer, *plan.inner)
        act = update(plan.statement, body.place)
        # isl takes long with what is known of sizes, which say little here.
        points = plan.statement.domain.set
        context = isl.Set.universe(points.get_space().params())
        return (*body.start(), *body.visits(points, order, act, context, known=points))

    # -- conditions

    def _where_pays(self, count: Expr) -> Expr:
        return count if self._pays is None else apply("where", self._pays, count, integer(0))

    def _soundness(self, out: list[Node]) -> Expr:
        # Whether no factor in panels is infinite or not a number: the sum of zero times each is zero then.
        assert self._sound is not None
        total = Local(self._names.fresh("sound"), self._dtype)
        counters = [self._names.fresh("panel") for _ in self._sound.shape]
        part = Accumulate(total.name, "add", plain_read(self._sound.name, map(index, counters), self._dtype))
        extents = (*(span.length for span in self._found.outer), self._panels)
        ends = [(name, integer(0), extent) for name, extent in zip(counters, extents, strict=True)]
        out += [Define(total.name, constant(0, self._dtype)), *loops_over(ends, (part,), seldom=True)]
        return apply("eq", total, constant(0, self._dtype))

    def _if_unsound(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        out: list[Node] = []
        runs: Expr = apply("not_", self._soundness(out))
        if self._pays is not None:
            runs = apply("or_", apply("not_", self._pays), runs)
        return (*out, Branch(runs, nodes))

    # -- parts

    def _buffer(self, title: str, shape: tuple[Expr, ...]) -> Buffer:
        made = Buffer(self._names.fresh(f"{title}_{self._plan.tensor.name}"), self._dtype, shape, "temporary", ())
        self._body.setting.extra.append(made)
        return made

    def _local(self, title: str) -> Local:
        return Local(self._names.fresh(title), "int64")

    def _value(self, factor: Read, values: _Values) -> Expr:
        moved = substitute(factor, dict(values))
        assert isinstance(moved, Read)
        return plain_read(self._body.setting.buffers[moved.tensor], moved.indices, moved.dtype)

    def _counters(self, spans: Sequence[Side]) -> tuple[list[str], dict[Expr, Expr]]:
        # Variables that count from 0 on, and what the spans' own are then.
        counters = [self._names.fresh(span.variable) for span in spans]
        return counters, {index(span.variable): span.at(index(c)) for span, c in zip(spans, counters, strict=True)}

    def _over(self, counters: Sequence[str], spans: Sequence[Side], nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        return loops_over([(c, integer(0), span.length) for c, span in zip(counters, spans, strict=True)], nodes)

    def _lanes_of(self, panel: str) -> tuple[Local, Local, tuple[Node, ...]]:
        # The first lane of a panel, how many it has, and what defines them.
        first, count = self._local("first"), self._local("count")
        left = apply("sub", self._found.lane.length, first)
        return (
            first,
            count,
            (
                Define(first.name, apply("mul", index(panel), integer(self._lanes)), index=True),
                Define(count.name, apply("min", integer(self._lanes), left), index=True),
            ),
        )

    # -- panels

    def _packing(self) -> tuple[Node, ...]:
        found, names = self._found, self._names
        outer, values = self._counters(found.outer)
        summed, terms = self._counters(found.summed)
        panel, lane = names.fresh("panel"), names.fresh("lane")
        first, count, ends = self._lanes_of(panel)
        cell = (*map(index, outer), index(panel), *map(index, summed), index(lane))
        values |= terms
        values[index(found.lane.variable)] = found.lane.at(apply("add", first, index(lane)))
        value = self._value(found.right, values)
        total = Local(names.fresh("sound"), self._dtype)
        copy: tuple[Node, ...] = (Store(self._packed.name, cell, value),)
        if self._sound is not None:
            copy = (*copy, Accumulate(total.name, "add", apply("mul", value, constant(0, self._dtype))))
        behind = Store(self._packed.name, cell, constant(0, self._dtype))
        loops = dict(zip(summed, found.summed, strict=True))
        along = [name for name, side in loops.items() if found.is_along(side)]
        zero: tuple[Node, ...] = (behind,)
        if along:
            # What lies side by side is read so, and stored across a block that the nearest cache holds.
            last = loops.pop(along[0])
            start = names.fresh("first")
            stop = apply("min", last.length, apply("add", index(start), integer(_SIDE)))
            copy = (Loop(along[0], index(start), stop, 1, copy),)
            zero = (Loop(along[0], index(start), stop, 1, zero, seldom=True),)
        nodes: tuple[Node, ...] = (
            Loop(lane, integer(0), count, 1, copy),
            Loop(lane, count, integer(self._lanes), 1, zero, seldom=True),
        )
        if along:
            nodes = (Loop(start, integer(0), last.length, _SIDE, nodes),)
        nodes = (*ends, *self._over(tuple(loops), tuple(loops.values()), nodes))
        if self._sound is not None:
            place = (*map(index, outer), index(panel))
            begin = Define(total.name, constant(0, self._dtype))
            nodes = (begin, *nodes, Store(self._sound.name, place, total))
        nodes = loops_over([(panel, integer(0), self._where_pays(self._panels))], nodes)
        return tuple(map(_parallel, self._over(outer, found.outer, nodes)))

    # -- tiles

    def _tiles(self) -> tuple[Node, ...]:
        found, names = self._found, self._names
        outer, values = self._counters(found.outer)
        total, most = found.count_of_rows, self._local("most")
        tiles = apply("floor_div", total, integer(_ROWS * _BLOCKS))
        few = apply("min", integer(_ROWS_OF_BLOCK), apply("mul", integer(_ROWS), apply("max", tiles, integer(1))))
        block, low, high = names.fresh("block"), self._local("low"), self._local("high")
        panel, tile = names.fresh("panel"), names.fresh("tile")
        first, count, lanes = self._lanes_of(panel)
        around, parts = self._blocks_of_terms()
        inner = self._tile(values, outer, (tile, high), (panel, first, count), parts)
        nodes: tuple[Node, ...] = (*lanes, Loop(tile, low, high, _ROWS, inner))
        nodes = around(loops_over([(panel, integer(0), self._panels)], nodes))
        if self._sound is not None:
            before: list[Node] = []
            runs = self._soundness(before)
            nodes = (*before, Branch(runs, nodes))
        ends = (
            Define(most.name, few, index=True),
            Define(low.name, apply("mul", index(block), most), index=True),
            Define(high.name, apply("min", total, apply("add", low, most)), index=True),
        )
        blocks = self._where_pays(quotient_up(total, few))
        nodes = loops_over([(block, integer(0), blocks)], (*ends, *self._starts(values, low, high), *nodes))
        return tuple(map(_parallel, self._over(outer, found.outer, nodes)))

    def _starts(self, values: _Values, low: Expr, high: Expr) -> tuple[Node, ...]:
        # What the cells of a block hold before any term.
        if self._body.started:
            return ()
        row, lane = self._names.fresh("row"), self._names.fresh("lane")
        inside: list[Node] = []
        cell = self._cell({**values, **self._positions(index(row), inside)}, index(lane))
        starts = tuple(self._body.start_of(cell))
        inside.append(Loop(lane, integer(0), self._found.lane.length, 1, starts, seldom=True))
        return (Loop(row, low, high, 1, tuple(inside)),)

    def _cell(self, values: _Values, lane: Expr) -> tuple[Expr, ...]:
        # The target's cell at a position along the lanes.
        place = {**values, index(self._found.lane.variable): self._found.lane.at(lane)}
        return tuple(substitute(axis, place) for axis in self._plan.statement.target.indices)

    def _blocks_of_terms(
        self,
    ) -> tuple[Callable[[tuple[Node, ...]], tuple[Node, ...]], list[tuple[str, Expr, Expr]]]:
        # What puts loops over blocks around, and each summed variable's counter with the ends of a block.
        defined: list[Node] = []
        loops: list[tuple[str, Expr, tuple[Node, ...]]] = []
        parts: list[tuple[str, Expr, Expr]] = []
        inside: Expr = integer(1)
        for span in reversed(self._found.summed):
            steps, first, end = self._local("steps"), self._local("first"), self._local("end")
            room = apply("max", apply("floor_div", integer(_TERMS), inside), integer(1))
            length = apply("min", apply("max", span.length, integer(1)), room)
            defined.append(Define(steps.name, length, index=True))
            inside = apply("mul", inside, steps)
            number = self._names.fresh("part")
            stop = apply("min", span.length, apply("add", first, steps))
            low = apply("mul", index(number), steps)
            ends = Define(first.name, low, index=True), Define(end.name, stop, index=True)
            loops.append((number, quotient_up(span.length, steps), ends))
            parts.append((self._names.fresh(span.variable), first, end))

        def around(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
            for number, count, ends in loops:
                nodes = (Loop(number, integer(0), count, 1, (*ends, *nodes)),)
            return (*defined, *nodes)

        return around, parts[::-1]

    def _positions(self, row: Expr, out: list[Node]) -> dict[Expr, Expr]:
        # What the rows' variables are in a row.
        values: dict[Expr, Expr] = {}
        *others, last = reversed(self._found.rows)
        for span in others:
            here, left = self._local(span.variable), self._local("left")
            out.append(Define(here.name, apply("mod", row, span.length), index=True))
            out.append(Define(left.name, apply("floor_div", row, span.length), index=True))
            values[index(span.variable)] = span.at(here)
            row = left
        values[index(last.variable)] = last.at(row)
        return values

    def _tile(
        self,
        values: _Values,
        outer: Sequence[str],
        rows: tuple[str, Expr],
        lanes: tuple[str, Expr, Expr],
        parts: Sequence[tuple[str, Expr, Expr]],
    ) -> tuple[Node, ...]:
        found, names = self._found, self._names
        (tile, high), (panel, first, count) = rows, lanes
        local = names.fresh("tile")
        out: list[Node] = [
            LocalBuffer(local, self._dtype, (integer(_ROWS), integer(self._lanes)), (_ROWS, self._lanes))
        ]
        last = apply("sub", high, integer(1))
        places: list[dict[Expr, Expr]] = []
        for k in range(_ROWS):
            row = self._local("row")
            out.append(Define(row.name, apply("min", apply("add", index(tile), integer(k)), last), index=True))
            places.append(self._positions(row, out))
        terms: dict[Expr, Expr] = {
            index(s.variable): s.at(index(c)) for s, (c, _, _) in zip(found.summed, parts, strict=True)
        }
        panels = (*map(index, outer), index(panel), *(index(counter) for counter, _, _ in parts))
        lefts = [self._value(found.left, {**values, **terms, **place}) for place in places]
        wide = self._sums(local, panels, lefts, parts, self._lanes)
        narrow = self._sums(local, panels, lefts, parts, self._lanes // 2)
        out.append(Branch(apply("gt", count, integer(self._lanes // 2)), wide, narrow))
        number, lane = names.fresh("row"), names.fresh("lane")
        inside: list[Node] = []
        place = {**values, **self._positions(apply("add", index(tile), index(number)), inside)}
        cell = self._cell(place, apply("add", first, index(lane)))
        made = plain_read(local, (index(number), index(lane)), self._dtype)
        more = Update(self._body.place.buffer, cell, self._plan.statement.accumulate, made)
        inside.append(Loop(lane, integer(0), count, 1, (more,), seldom=True))
        left = apply("min", integer(_ROWS), apply("sub", high, index(tile)))
        out.append(Loop(number, integer(0), left, 1, tuple(inside)))
        return tuple(out)

    def _sums(
        self,
        local: str,
        panels: tuple[Expr, ...],
        lefts: Sequence[Expr],
        parts: Sequence[tuple[str, Expr, Expr]],
        lanes: int,
    ) -> tuple[Node, ...]:
        names = self._names
        lane, right = names.fresh("lane"), Local(names.fresh("right"), self._dtype)
        sums = [Local(names.fresh("sum"), self._dtype) for _ in lefts]
        read = plain_read(self._packed.name, (*panels, index(lane)), self._dtype)
        step: list[Node] = [Define(right.name, read)]
        for total, left in zip(sums, lefts, strict=True):
            step.append(Accumulate(total.name, "add", apply("mul", left, right)))
        nodes = (
            *(Define(total.name, constant(0, self._dtype)) for total in sums),
            *loops_over(parts, tuple(step)),
            *(Store(local, (integer(k), index(lane)), total) for k, total in enumerate(sums)),
        )
        return (Loop(lane, integer(0), integer(lanes), 1, nodes, "vector"),)


def _parallel(node: Node) -> Node:
    return replace(node, kind="parallel") if isinstance(node, Loop) else node
