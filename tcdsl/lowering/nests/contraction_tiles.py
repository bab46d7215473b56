"""Sums of products in tiles that stay in registers (`tcdsl.lowering.loopir.contraction`).

The right factor is packed into panels, a few lanes side by side, one panel after the other. Tiles of six rows then read
the left factor where it lies, so that a multiplication with an addition is one instruction, and takes half a load::

    parallel for panel in 0 .. (N + 63) // 64:
        for k in 0 .. K:
            for lane in 0 .. 64:
                panels[panel, k, lane] = B[k, 64*panel + lane], or 0 behind the last one

    parallel for block of rows, for panel:
        local sums: float32[48, 64]
        for block of k:
            for tile of six rows in block:
                for lane in 0 .. 64, in lanes:
                    sum = sum1 = ... = 0
                    for k in block:
                        sum += A[row, k] * panels[panel, k, lane]
                        sum1 += A[row1, k] * panels[panel, k, lane]
                        ...
                    sums[row, lane] += sum; ...
        C[rows, lanes] = sums

Several variables of rows are one axis, whose positions are taken apart once a block: so the pixels of an image are
rows, whatever their number along each side. The lanes of the last panel are made a register at a time. Rows behind the
last one are that one again, and are not stored. Sums are stored along memory, be that rows, lanes, or the products of a
batch, some of which are made before then. Blocks depend on the sizes alone, and so do all bits of a result.

Where one block has all rows, a panel would be read hardly more often than it is written. Then the right factor is read
where it lies, if lanes lie side by side there, in vectors that have masks behind its last cell (`unpacked`).

Where sizes are such that there is little to do, and where a factor is infinite beside a zero that stands for no term,
the plain loops run instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce

from tcdsl.ir.build import apply, constant, index, integer, plain_read, product_of, truth
from tcdsl.ir.expressions import Constant, Expr, Local, index_variables
from tcdsl.lowering.loopir.contraction import Side, SumOfProducts, may_hold
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Define,
    LocalBuffer,
    Loop,
    Node,
    Store,
    Update,
    loops_over,
)
from tcdsl.lowering.loopir.tiles import ClippedTerms, quotient_up, within_limits
from tcdsl.lowering.nests.bodies import NestContext, StatementLoops
from tcdsl.lowering.nests.contraction_loops import ContractionLoops, Values
from tcdsl.lowering.nests.rows_of_tiles import (
    ROWS,
    ROWS_OF_BLOCK,
    RowBlock,
    at_least_one,
    blocks_of_terms,
    defined,
    digit,
    in_tiles,
    units_over,
)
from tcdsl.lowering.program_passes.schedule import LoopOrder

__all__ = ["ContractionTiles", "contraction_tiles"]

_TERMS = 256
"""Terms that are added before the next block: what a panel has of them stays in the second cache."""

_PRODUCTS = 16
"""Neighbouring products whose sums are stored together, where their cells lie side by side."""

_SIDE = 64
"""Terms of a block of a panel that is stored across."""


_Whole = Callable[[str, Sequence[Expr], Node], Node]
_Tiles = Callable[[tuple[Expr, Expr], _Whole | None], tuple[Node, ...]]


def contraction_tiles(plan: LoopOrder, setting: NestContext) -> ContractionTiles | None:
    """The tiles of a plan; None unless it is a contraction."""
    found = plan.contraction
    return None if found is None else ContractionTiles(found, plan, StatementLoops(plan, setting))


class ContractionTiles(ContractionLoops):
    """The nests of one contraction in such tiles; else the plain loops do the work."""

    def __init__(self, found: SumOfProducts, plan: LoopOrder, body: StatementLoops) -> None:
        super().__init__(found, plan, body, found.pays)
        #: Lanes of one register, and of a panel.
        self._narrow, *others, self._lanes = body.setting.machine.widths(self._dtype)
        #: Lanes between these, where a tile of its own saves reads of what is no row of a matrix.
        self._medium = None if found.unpacked or not others else others[0]
        #: Whether there are panels: one block of rows would read them hardly more often than they are written.
        one_block = apply("le", found.count_of_rows, integer(ROWS_OF_BLOCK))
        self._is_packed = apply("not_", one_block) if found.unpacked else truth(value=True)
        #: Whether all factors must be finite, beside zeros that stand for no term.
        self.guarded = found.guards
        self._sums = self._names.fresh("sums")
        _, along = self._apart_and_along()
        #: The variable of products whose cells lie side by side in the target.
        self._beside = along[0] if len(along) == 1 and not found.phases else None
        #: What is read once for all terms of a cell, and where it is kept for those of a block and a panel.
        self._own = [(read, self._names.fresh("own")) for read in found.own]
        self._panels = quotient_up(found.lane.length, integer(self._lanes))
        outer = tuple(span.length for span in found.outer)
        cells = *(span.most for span in found.summed), integer(self._lanes)
        self._packed = self._buffer("panels", (*outer, self._where_packed(self._panels), *cells))
        self._points = product_of((*outer, self._where_pays(self._panels), *cells))
        self._sound = self._buffer("sound", (*outer, self._panels)) if found.guards else None

    def nests(self) -> Iterator[tuple[str, tuple[Node, ...], Expr]]:
        """How each nest is called, its loops and its work: what comes `before`, tiles, and tiles of few rows."""
        yield from self.before()
        work = apply("mul", self._found.count_of_rows, self._points)
        for hint, packed in ("nest_", truth(value=True)), ("few_", truth(value=False)):
            runs = self._is_packed if hint == "nest_" else apply("not_", self._is_packed)
            if may_hold(runs):
                yield hint, self._tiles(packed, runs), work

    def before(self) -> Iterator[tuple[str, tuple[Node, ...], Expr]]:
        """The nests before tiles: starts where few cells have sums, and panels."""
        yield from super().nests()
        if may_hold(self._is_packed):
            yield "pack_", self._packing(), self._points

    def where_unsound(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """``nodes``, plain loops again, where tiles pay, and a factor is infinite or not a number."""
        match nodes:
            case (Loop(kind="parallel") as loop,):
                return (self._where_it_pays(replace(loop, body=self._if_unsound(loop.body))),)
        made = self._if_unsound(nodes)
        return made if self._pays is None else (Branch(self._pays, made),)

    # -- conditions

    def _where_packed(self, count: Expr) -> Expr:
        return self._where_pays(apply("where", self._is_packed, count, integer(0)))

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
        runs = apply("not_", self._soundness(out))
        return (*out, Branch(runs, nodes))

    # -- parts

    def _lanes_of(self, panel: str) -> tuple[Local, Local, tuple[Node, ...]]:
        # The first lane of a panel, how many it has, and what defines them.
        first, count = (Local(self._names.fresh(title), "int64") for title in ("first", "count"))
        left = apply("sub", self._found.lane.length, first)
        begin = Define(first.name, apply("mul", index(panel), integer(self._lanes)), index=True)
        return first, count, (begin, Define(count.name, apply("min", integer(self._lanes), left), index=True))

    def _whole_registers(self, count: Expr) -> Expr:
        # The lanes of all registers that so many lie in.
        whole = apply("mul", quotient_up(count, integer(self._narrow)), integer(self._narrow))
        if self._medium is None:
            return whole
        return apply("where", apply("gt", count, integer(self._medium)), integer(self._lanes), whole)

    # -- panels

    def _packing(self) -> tuple[Node, ...]:
        found, names = self._found, self._names
        outer, values = self._counters(found.outer)
        inner = found.within(values)
        summed, terms = self._counters(inner.summed)
        panel, lane = names.fresh("panel"), names.fresh("lane")
        first, count, ends = self._lanes_of(panel)
        cell = (*map(index, outer), index(panel), *map(index, summed), index(lane))
        values |= terms
        values[index(found.lane.variable)] = found.lane.at(apply("add", first, index(lane)))
        value = self._value(found.right, values)
        copy, zero = (Store(self._packed.name, cell, each) for each in (value, constant(0, self._dtype)))
        loops = dict(zip(summed, inner.summed, strict=True))
        around = dict(zip(outer, found.outer, strict=True))
        within = [name for name, side in loops.items() if found.is_along(side)]
        beside = [name for name, side in around.items() if self._lies_beside(side)]
        lanes = partial(self._in_lanes, lane, count, copy, zero)
        nodes: tuple[Node, ...]
        if within:
            # What lies side by side is read so, and stored across a block that the nearest cache holds.
            block, near = self._near_block(within[0], loops.pop(within[0]))
            nodes = (replace(block, body=lanes(near)),)
        elif beside:
            # So it is for some products of a batch at once; of few each by itself.
            block, near = self._near_block(beside[0], side := around.pop(beside[0]))
            few = apply("lt", side.length, integer(self._narrow * 3 // 4))
            each = replace(near, body=lanes(None), seldom=True)
            nodes = (Branch(few, (each,), lanes(near)),)
        else:
            nodes = lanes(None)
        nodes = (*ends, *self._over(tuple(loops), tuple(loops.values()), nodes))
        if self._sound is not None:
            nodes = (*nodes, *self._sound_panel(outer, panel, inner.summed, count))
        nodes = loops_over([(panel, integer(0), self._panels)], nodes)
        nodes = self._over(tuple(around), tuple(around.values()), nodes)
        (loop,) = (replace(block, body=nodes),) if beside and not within else nodes
        assert isinstance(loop, Loop)
        return (replace(loop, stop=self._where_packed(loop.stop), kind="parallel"),)

    def _lies_beside(self, side: Side) -> bool:
        # Whether cells of neighbouring products lie side by side.
        found = self._found
        return side in found.around and found.is_along(side) and not found.phases and self._sound is None

    def _near_block(self, name: str, side: Side) -> tuple[Loop, Loop]:
        # The loop over blocks along a side, and the one inside of a block, without what they do.
        start = self._names.fresh("first")
        stop = apply("min", side.length, apply("add", index(start), integer(_SIDE)))
        return Loop(start, integer(0), side.length, _SIDE, ()), Loop(name, index(start), stop, 1, ())

    def _in_lanes(
        self, lane: str, count: Expr, copy: Node, zero: Node, near: Loop | None, *, seldom: bool = False
    ) -> tuple[Node, ...]:
        # A row of a panel, or those along a block.
        copies, zeros = (
            (each,) if near is None else (replace(near, body=(each,), seldom=each is zero),) for each in (copy, zero)
        )
        behind = Loop(lane, count, self._whole_registers(count), 1, zeros, seldom=True)
        return Loop(lane, integer(0), count, 1, copies, seldom=seldom), behind

    def _sound_panel(self, outer: Sequence[str], panel: str, summed: tuple[Side, ...], count: Expr) -> tuple[Node, ...]:
        # Zero times each factor in a panel, added up.
        assert self._sound is not None
        total, lane = Local(self._names.fresh("sound"), self._dtype), self._names.fresh("lane")
        terms, place = self._counters(summed)[0], (*map(index, outer), index(panel))
        value = plain_read(self._packed.name, (*place, *map(index, terms), index(lane)), self._dtype)
        add = Accumulate(total.name, "add", apply("mul", value, constant(0, self._dtype)))
        loop = Loop(lane, integer(0), count, 1, (add,), seldom=True)
        begin = Define(total.name, constant(0, self._dtype))
        return (begin, *self._over(terms, summed, (loop,)), Store(self._sound.name, place, total))

    # -- tiles

    def _tiles(self, packed: Expr, runs: Expr) -> tuple[Node, ...]:
        # In a nest that ``runs``: sizes that take panels have no use for the code of those that take none.
        found, names = self._found, self._names
        block = names.fresh("block")
        out: list[Node] = []
        most, units, count = self._units(out)
        rest: Expr = index(block)
        places: list[Expr] = []
        for title, length in reversed(units[1:]):
            rest, place = digit(rest, length, title, names, out)
            places.insert(0, place)
        apart, along = self._apart_and_along()
        places.insert(0, rest)
        number, group = places[len(apart) : len(apart) + 2]
        del places[len(apart) : len(apart) + 2]
        at = dict(zip((*apart, *along), places, strict=True))
        products = self._products(at, out)
        outer = [at[side] for side in found.outer]
        values: Values = {index(side.variable): side.at(place) for side, place in at.items()}
        inner = found.within(values)
        rows_inside = product_of(tuple(side.length for side in inner.rows))
        low, high = Local(names.fresh("low"), "int64"), Local(names.fresh("high"), "int64")
        out.append(Define(low.name, apply("mul", number, most), index=True))
        out.append(Define(high.name, apply("min", rows_inside, apply("add", low, most)), index=True))
        rows = RowBlock.of(inner.rows, low, high, names)
        share = defined("share", quotient_up(self._panels, units[len(apart) + 1][1]), names, out)
        begin = apply("mul", group, share)
        stop = apply("min", self._panels, apply("add", begin, share))
        panels = self._of_panels(values, inner, outer, rows, (begin, stop), packed, products)
        nodes: tuple[Node, ...] = (*out, *rows.nodes, panels)
        if self._sound is not None:
            before: list[Node] = []
            sound = self._soundness(before)
            nodes = (*before, Branch(sound, nodes))
        count = self._where_pays(apply("where", runs, count, integer(0)))
        return (Loop(block, integer(0), count, 1, nodes, "parallel"),)

    def _products(self, at: dict[Side, Expr], out: list[Node]) -> Loop | None:
        # The loop over a block of neighbouring products whose cells lie side by side in the target, if there are any:
        # one of them is where the block was.
        side = self._beside
        if side is None:
            return None
        counter = self._names.fresh(side.variable)
        first = defined("first", apply("mul", at[side], integer(_PRODUCTS)), self._names, out)
        stop = apply("min", side.length, apply("add", first, integer(_PRODUCTS)))
        at[side] = index(counter)
        return Loop(counter, first, stop, 1, ())

    def _of_panels(
        self,
        values: Values,
        inner: SumOfProducts,
        outer: Sequence[Expr],
        rows: RowBlock,
        ends: tuple[Expr, Expr],
        packed: Expr,
        products: Loop | None = None,
    ) -> Loop:
        # A block of rows and one panel after the other, of one product or of several.
        panel = self._names.fresh("panel")
        first, lanes, here = self._lanes_of(panel)
        own = self._own_of_panel(values, rows, first, lanes)
        at_once = self._at_once(inner, lanes)
        number: tuple[Expr, ...] = ()
        before: list[Node] = []
        if products is not None:
            # Of few products each has the same memory for its sums, which is near.
            own_place = apply("sub", index(products.variable), products.start)
            place = apply("where", self._are_few(), integer(0), own_place)
            number = (defined("number", place, self._names, before),)
        place_of_panel = (*outer, index(panel))
        sums = self._sums_of_panel(values, inner.summed, place_of_panel, rows, (first, lanes), number, at_once, packed)
        bounds = (*(_PRODUCTS for _ in number), ROWS_OF_BLOCK, self._lanes)
        memory = LocalBuffer(self._sums, self._dtype, tuple(map(integer, bounds)), bounds)
        if products is not None:
            each, squares = self._stores_across(products, values, rows, first, lanes)
            inside = (*before, *own, *sums, Branch(self._are_few(), each))
            together = Branch(apply("not_", self._are_few()), squares)
            return Loop(panel, *ends, 1, (*here, memory, replace(products, body=inside), together))
        stores = self._stores(values, rows, first, lanes)
        if at_once is not None:
            stores = (Branch(apply("not_", at_once), stores),)
        return Loop(panel, *ends, 1, (*here, memory, *own, *sums, *stores))

    def _at_once(self, inner: SumOfProducts, lanes: Expr) -> Expr | None:
        # Whether sums go from registers to the target: those of all terms, in a target's cells side by side, that
        # hold nothing before, and of a whole panel. A last row again and again stores the same.
        target = self._plan.statement.target.indices
        if self._found.limits or self._held or self._plan.statement.accumulate != "add":
            return None
        if target[-1] != index(self._found.lane.variable):
            return None
        if not all(
            isinstance(node, Store) and node.value == constant(0, node.value.dtype)
            for node in self._body.start_of(target)
        ):
            return None
        terms = product_of(tuple(side.length for side in inner.summed))
        return apply("and_", apply("le", terms, integer(_TERMS)), apply("eq", lanes, integer(self._lanes)))

    def of_rows(self, values: Values, row: str, low: Expr, high: Expr) -> tuple[Node, ...]:
        """The rows ``low .. high`` of the variable ``row``, at most `ROWS_OF_BLOCK`, where variables have the
        ``values``; of all others, all.

        Panels are made before.
        """
        found = self._found
        free = [
            side for side in (*found.outer, *found.rows) if side.variable != row and index(side.variable) not in values
        ]
        counters, at = self._counters(free)
        values = {**values, **at}
        inner = found.within(values)
        rows = RowBlock.of(tuple(side for side in inner.rows if side.variable == row), low, high, self._names)
        places = {side.variable: index(name) for side, name in zip(free, counters, strict=True)}
        outer = [
            places.get(side.variable, values.get(index(side.variable), index(side.variable))) for side in found.outer
        ]
        panels = self._of_panels(values, inner, outer, rows, (integer(0), self._panels), self._is_packed)
        return self._over(counters, free, (*rows.nodes, panels))

    def _units(self, out: list[Node]) -> tuple[Expr, list[tuple[str, Expr]], Expr]:
        # Rows of a block at most, the loops around blocks, over blocks, and over groups of panels, and how many steps
        # these have. There shall be enough for threads, but few rows in a block only where there are few panels.
        total = self._found.count_of_rows
        apart, along = ([(side.variable, self._blocks_of(side)) for side in part] for part in self._apart_and_along())
        products = product_of(tuple(side.length for side in self._found.outer))
        count = product_of(tuple(length for _, length in (*apart, *along)))
        tiles = quotient_up(total, integer(ROWS))
        least = apply("min", tiles, units_over(apply("mul", self._panels, products)))
        blocks = at_least_one(apply("max", quotient_up(total, integer(ROWS_OF_BLOCK)), least))
        number = defined("blocks", blocks, self._names, out)

        def groups(blocks: Expr) -> Expr:
            return at_least_one(apply("min", self._panels, units_over(apply("mul", blocks, count))))

        group = defined("groups", groups(number), self._names, out)
        rows = apply("min", integer(ROWS_OF_BLOCK), in_tiles(at_least_one(quotient_up(tiles, number))))
        most = defined("most", rows, self._names, out)
        units = [*apart, ("number", number), ("group", group), *along]
        return most, units, product_of((count, blocks, groups(blocks)))

    def _blocks_of(self, side: Side) -> Expr:
        return quotient_up(side.length, integer(_PRODUCTS)) if side == self._beside else side.length

    def _apart_and_along(self) -> tuple[list[Side], list[Side]]:
        # The variables whose loops are around blocks, and those that go along the target's memory: neighbours store
        # into the same lines, one after the other.
        found = self._found
        last = frozenset[str]().union(*map(index_variables, found.statement.target.indices[-1:]))
        along = [side for side in found.around if side.variable in last]
        apart = [side for side in found.outer if side not in along]
        return apart, along

    def _own_of_panel(self, values: Values, rows: RowBlock, first: Expr, lanes: Expr) -> tuple[Node, ...]:
        # What is own to the cells of a block of rows and a panel, and 0 behind the last lane.
        if not self._own:
            return ()
        row, lane, out = self._names.fresh("row"), self._names.fresh("lane"), list[Node]()
        cell, bounds = (index(row), index(lane)), (ROWS_OF_BLOCK, self._lanes)
        side = self._found.lane
        place = {**values, **rows.at(index(row), out), index(side.variable): side.at(apply("add", first, index(lane)))}
        nodes: list[Node] = []
        for read, name in self._own:
            nodes.append(LocalBuffer(name, self._dtype, tuple(map(integer, bounds)), bounds))
            copy, zero = Store(name, cell, self._value(read, place)), Store(name, cell, constant(0, self._dtype))
            loops = (
                Loop(lane, integer(0), lanes, 1, (copy,)),
                Loop(lane, lanes, self._whole_registers(lanes), 1, (zero,)),
            )
            nodes.append(Loop(row, integer(0), rows.count, 1, (*out, *loops)))
        return tuple(nodes)

    def _sums_of_panel(
        self,
        values: Values,
        summed: tuple[Side, ...],
        panel: tuple[Expr, ...],
        rows: RowBlock,
        side: tuple[Expr, Expr],
        number: tuple[Expr, ...],
        at_once: Expr | None,
        is_packed: Expr,
    ) -> tuple[Node, ...]:
        # The sums of all terms of a block of rows and a panel, those of the product of that number.
        names, found, (first, lanes) = self._names, self._found, side
        tile, out = names.fresh("tile"), list[Node]()
        around, parts, *_ = blocks_of_terms(summed, _TERMS, names)
        at: Values = {
            index(side.variable): side.at(index(place)) for side, (place, _, _) in zip(summed, parts, strict=True)
        }
        lines = [{**values, **rows.at(apply("add", index(tile), integer(k)), out)} for k in range(ROWS)]
        cells = [{**line, **at} for line in lines]
        ends = {name: (value, cells[-1][name]) for name, value in cells[0].items()}
        behind = apply("sub", apply("add", first, lanes), integer(1))
        ends[index(found.lane.variable)] = found.lane.at(first), found.lane.at(behind)
        clipped = ClippedTerms.of(found.limits, ends, summed, parts, names, out)
        place = (*panel, *(index(counter) for counter, _, _ in parts))

        def packed(lane: str) -> Expr:
            return plain_read(self._packed.name, (*place, index(lane)), self._dtype)

        def lying(lane: str) -> Expr:
            cell: Values = {index(found.lane.variable): found.lane.at(apply("add", first, index(lane)))}
            return self._value(found.right, {**values, **at, **cell})

        def whole(lane: str, sums: Sequence[Expr], held: Node) -> Node:
            if at_once is None:
                return held
            cells = (self._stored_lane(line, first, lane, total) for line, total in zip(lines, sums, strict=True))
            return Branch(at_once, tuple(node for each in cells for node in each), (held,))

        def made(right: Callable[[str], Expr], *, masked: bool) -> tuple[Node, ...]:
            tiles = partial(self._sums_of_tile, (*number, index(tile)), right, cells, clipped)
            return self._in_registers(tiles, whole, lanes, masked=masked)

        match is_packed:
            case Constant(value=True):
                sums = made(packed, masked=False)
            case Constant():
                sums = made(lying, masked=True)
            case _:
                sums = (Branch(is_packed, made(packed, masked=False), made(lying, masked=True)),)
        return around((Loop(tile, integer(0), rows.count, ROWS, (*out, *clipped.around(sums))),))

    def _in_registers(self, tiles: _Tiles, whole: _Whole, lanes: Expr, *, masked: bool) -> tuple[Node, ...]:
        # All lanes of a panel at once, fewer a register at a time; what is packed has zeros behind the last lane.
        begin = self._names.fresh("begin")
        end = apply("add", index(begin), integer(self._narrow))
        part = tiles((index(begin), apply("min", lanes, end) if masked else end), None)
        parts: tuple[Node, ...] = (Loop(begin, integer(0), lanes, self._narrow, part),)
        least = self._lanes if masked else self._lanes - self._narrow + 1
        if self._medium is not None:
            least = self._medium + 1
            medium = tiles((integer(0), integer(self._medium)), None)
            parts = (Branch(apply("gt", lanes, integer(self._narrow)), medium, parts),)
        wide = tiles((integer(0), integer(self._lanes)), whole)
        return (Branch(apply("ge", lanes, integer(least)), wide, parts),)

    def _sums_of_tile(
        self,
        tile: tuple[Expr, ...],
        factor: Callable[[str], Expr],
        places: Sequence[Values],
        terms: ClippedTerms,
        ends: tuple[Expr, Expr],
        whole: _Whole | None,
    ) -> tuple[Node, ...]:
        # The sums of six rows, in lanes between the ``ends``, in each of which the right factor is another one.
        names = self._names
        lane, right = names.fresh("lane"), Local(names.fresh("right"), self._dtype)
        sums = [Local(names.fresh("sum"), self._dtype) for _ in places]
        *number, first = tile
        cells = [(*number, apply("add", first, integer(k)), index(lane)) for k in range(ROWS)]
        step: list[Node] = [Define(right.name, factor(lane))]
        some: list[Node] = [*step]
        before: list[Node] = []
        for total, place, cell in zip(sums, places, cells, strict=True):
            own = [Local(names.fresh("own"), self._dtype) for _ in self._own]
            for local, (_, kept) in zip(own, self._own, strict=True):
                before.append(Define(local.name, plain_read(kept, cell[-2:], self._dtype)))
            term = self._found.term_of(self._value(self._found.left, place), right, own)
            step.append(Accumulate(total.name, "add", term))
            some.append(Branch(within_limits(terms.limits, place), (step[-1],)))
        begin = apply("eq", reduce(partial(apply, "add"), (first for _, first, _ in terms.parts)), integer(0))
        stores = tuple(Store(self._sums, cell, total) for cell, total in zip(cells, sums, strict=True))
        updates = tuple(Update(self._sums, cell, "add", total) for cell, total in zip(cells, sums, strict=True))
        held: Node = Branch(begin, stores, updates)
        nodes = (
            *before,
            *(Define(total.name, constant(0, self._dtype)) for total in sums),
            *terms.loops(tuple(step), tuple(some)),
            held if whole is None else whole(lane, sums, held),
        )
        return (Loop(lane, *ends, 1, nodes, "vector"),)

    def _stores(self, values: Values, rows: RowBlock, first: Expr, lanes: Expr) -> tuple[Node, ...]:
        # The sums of a block of rows and a panel, where they belong.
        found, names = self._found, self._names
        lane, row = names.fresh("lane"), names.fresh("row")
        last = found.statement.target.indices[-1]
        side = rows.sides[-1]
        if found.lane.variable in index_variables(last) or side.variable not in index_variables(last):
            inside: list[Node] = []
            place = {**values, **rows.at(index(row), inside)}
            stored = self._stored_lane(place, first, lane, self._sum_at(index(row), lane))
            inside.append(Loop(lane, integer(0), lanes, 1, stored, seldom=True))
            return (Loop(row, integer(0), apply("sub", rows.high, rows.low), 1, tuple(inside)),)
        if len(rows.sides) == 1:
            place = {**values, index(side.variable): side.at(index(row))}
            stored = self._stored_lane(place, first, lane, self._sum_at(apply("sub", index(row), rows.low), lane))
            return (Loop(lane, integer(0), lanes, 1, (self._along(row, rows.low, rows.high, stored),)),)
        # Rows of the target, counted from that of the first cell: no more than cells, so that no product is large.
        line, out = names.fresh("line"), list[Node]()
        before: list[Node] = []
        base = defined("base", apply("sub", rows.low, apply("mod", rows.low, side.length)), names, before)
        here = apply("add", base, apply("mul", index(line), side.length))
        start = defined("start", apply("min", rows.high, here), names, out)
        begin = defined("begin", apply("max", rows.low, start), names, out)
        end = defined("end", apply("min", rows.high, apply("add", start, side.length)), names, out)
        place = {**values, **rows.at(apply("sub", begin, rows.low), out), index(side.variable): side.at(index(row))}
        number = apply("sub", apply("add", index(row), start), rows.low)
        stored = self._stored_lane(place, first, lane, self._sum_at(number, lane))
        along = self._along(row, apply("sub", begin, start), apply("sub", end, start), stored)
        out.append(Loop(lane, integer(0), lanes, 1, (along,)))
        count = apply("min", quotient_up(apply("sub", rows.high, base), side.length), integer(ROWS_OF_BLOCK + 1))
        return (*before, Loop(line, integer(0), count, 1, tuple(out)))

    def _are_few(self) -> Expr:
        # Whether the sums of neighbouring products are stored cell by cell: squares would be half empty.
        assert self._beside is not None
        return apply("lt", self._beside.length, integer(self._narrow // 2))

    def _stores_across(
        self, products: Loop, values: Values, rows: RowBlock, first: Expr, lanes: Expr
    ) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        # The sums of a block of rows and a panel: those of one of few products, and those of all in squares of lanes by
        # products.
        lane, row, inside = self._names.fresh("lane"), self._names.fresh("row"), list[Node]()
        number = apply("sub", index(products.variable), products.start)
        place = {**values, **rows.at(index(row), inside)}

        def of_rows(node: Node) -> tuple[Node, ...]:
            return (Loop(row, integer(0), apply("sub", rows.high, rows.low), 1, (*inside, node)),)

        one, every = (
            self._stored_lane(place, first, lane, plain_read(self._sums, (at, index(row), index(lane)), self._dtype))
            for at in (integer(0), number)
        )
        each = Loop(lane, integer(0), lanes, 1, one, seldom=True)
        seldom = len(every) > 1 or not isinstance(every[0], Store)
        squares = Loop(lane, integer(0), lanes, 1, (replace(products, body=every, seldom=seldom),), seldom=seldom)
        return of_rows(each), of_rows(squares)

    def _along(self, row: str, low: Expr, high: Expr, nodes: tuple[Node, ...]) -> Node:
        # What is a copy alone goes in squares, and all else cell by cell.
        return Loop(row, low, high, 1, nodes, seldom=len(nodes) > 1 or not isinstance(nodes[0], Store))

    def _sum_at(self, row: Expr, lane: str) -> Expr:
        return plain_read(self._sums, (row, index(lane)), self._dtype)

    def _stored_lane(self, values: Values, first: Expr, lane: str, total: Expr) -> tuple[Node, ...]:
        side = self._found.lane
        return self._stored({**values, index(side.variable): side.at(apply("add", first, index(lane)))}, total)
