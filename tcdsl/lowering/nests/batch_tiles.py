"""Batched sums of products whose batch lies along memory: vectors hold cells of neighbouring products.

In ``C[i, j, b] += A[i, k, b] * B[k, j, b]`` cells of one product lie far apart, and those of all products side by side.
So a tile of six rows by a few columns is made for as many products as a register has lanes, with a vector for each
cell; no factor is read across memory, and no sum is stored across it::

    parallel for panel of four columns j:
        for k, for block of products:
            for lane in 0 .. 16, in lanes:
                panels[block, panel, k, j, lane] = B[k, j, 16*block + lane]

    parallel for block of rows, for group of panels, for block of products:
        for block of k:
            for tile of six rows i:
                local left: float32[64, 6, 16] = A[i, k, 16*block + lane]
                for panel in group:
                    for lane in 0 .. 16, in lanes:
                        sum[i, j] = 0 for all of them
                        for k in block:
                            sum[i, j] += left[k, i, lane] * panels[block, panel, k, j, lane]
                        C[i, j, 16*block + lane] = sum[i, j], or += from the second block of k on

Behind the last product lanes are 0, and are not stored. Blocks depend on the sizes alone, and so do all bits of a
result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from tcdsl.ir.build import apply, constant, index, integer, plain_read, product_of
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.expressions import Expr, Local
from tcdsl.lowering.loopir.contraction import Side, SumOfProducts
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, LocalBuffer, Loop, Node, Store, loops_over
from tcdsl.lowering.loopir.tiles import quotient_up
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

__all__ = ["BatchTiles", "batch_tiles"]

_TERMS = 64
"""Terms that are added before the next block: what a panel has of them stays in the nearest cache."""

_COPIED = 256
"""Terms of a tile's left factor that are copied together, those of several blocks of products if there are few."""


_STRIP = 8
"""Blocks of products whose panels are written together: more would lie in the same lines of the second cache."""


def batch_tiles(plan: LoopOrder, setting: NestContext) -> BatchTiles | None:
    """The tiles of a plan whose contraction has products side by side; None of any other."""
    found = plan.contraction
    if found is None or found.batch is None:
        return None
    return BatchTiles(found, found.batch, plan, StatementLoops(plan, setting))


_Copy = tuple[Expr, Values, str, tuple[Expr, ...]]
"""A factor, what variables are, and the cell of a buffer that its values for some products go to."""


@dataclass(frozen=True, slots=True)
class _Part:
    # A part of a side: where it begins, and how much there is.
    first: Expr
    count: Expr

    @staticmethod
    def of(number: Expr, length: int, side: Side) -> _Part:
        first = apply("mul", number, integer(length))
        return _Part(first, apply("min", integer(length), apply("sub", side.length, first)))


@dataclass(frozen=True, slots=True)
class _Tile:
    # A tile of ``count`` rows or less, whose variables are in ``lines``, and in any ``row`` the ``line``, which needs
    # nodes ``before``; its columns and products; and the ``parts`` of its terms.
    lines: Sequence[Values]
    line: Values
    row: str
    before: tuple[Node, ...]
    count: Expr
    columns: _Part
    products: _Part
    parts: Sequence[tuple[str, Expr, Expr]]

    @property
    def begin(self) -> Expr:
        """Whether they are the first terms."""
        return apply("eq", reduce(partial(apply, "add"), (first for _, first, _ in self.parts)), integer(0))


class BatchTiles(ContractionLoops):
    """The nests of one contraction, with as many products side by side as a register has lanes."""

    def __init__(self, found: SumOfProducts, batch: Side, plan: LoopOrder, body: StatementLoops) -> None:
        machine = body.setting.machine
        self._lanes, *_, widest = machine.widths(plan.tensor.dtype)
        super().__init__(found, plan, body, found.pays_in_lanes(self._lanes))
        self._batch = batch
        self._columns = widest // self._lanes
        self._outer = tuple(side for side in found.outer if side != batch)
        self._blocks = quotient_up(batch.length, integer(self._lanes))
        self._panels = quotient_up(found.lane.length, integer(self._columns))
        terms = tuple(side.most for side in found.summed)
        cells = *terms, integer(self._columns), integer(self._lanes)
        counts = (*(side.length for side in self._outer), self._blocks, self._where_pays(self._panels))
        self._packed = self._buffer("panels", (*counts, *cells))
        self._points = product_of((*counts, *cells))
        bytes_of_panel = _TERMS * self._columns * self._lanes * numpy_dtype(self._dtype).itemsize
        #: Panels that the nearest cache but one holds.
        self._together = max(1, machine.near_bytes // bytes_of_panel)

    def nests(self) -> Iterator[tuple[str, tuple[Node, ...], Expr]]:
        """Those that start cells, panels, tiles."""
        yield from super().nests()
        yield "batch_pack_", self._packing(), self._points
        yield "batch_", self._tiles(), apply("mul", self._found.count_of_rows, self._points)

    # -- panels

    def _packing(self) -> tuple[Node, ...]:
        found, names = self._found, self._names
        panel, block = names.fresh("panel"), names.fresh("block")
        outer, values = self._counters(self._outer)
        inner = found.within(values)
        summed, terms = self._counters(inner.summed)
        values |= terms
        out: list[Node] = []
        last = apply("sub", found.lane.length, integer(1))
        copies: list[_Copy] = []
        at_column = index(found.lane.variable)
        for column in range(self._columns):
            # Behind the last column it is that one again.
            at = apply("add", apply("mul", index(panel), integer(self._columns)), integer(column))
            place = found.lane.at(defined("column", apply("min", at, last), names, out))
            cell: tuple[Expr, ...] = (*map(index, (*outer, block, panel, *summed)), integer(column))
            copies.append((found.right, {**values, at_column: place}, self._packed.name, cell))
        part = _Part.of(index(block), self._lanes, self._batch)
        first = names.fresh("first")
        stop = apply("min", self._blocks, apply("add", index(first), integer(_STRIP)))
        nodes: tuple[Node, ...] = (Loop(block, index(first), stop, 1, self._copied(part, copies)),)
        nodes = (Loop(first, integer(0), self._blocks, _STRIP, self._over(summed, inner.summed, nodes)),)
        nodes = (*out, *self._over(outer, self._outer, nodes))
        return (Loop(panel, integer(0), self._where_pays(self._panels), 1, nodes, "parallel"),)

    def _copied(self, part: _Part, copies: Sequence[_Copy]) -> tuple[Node, ...]:
        # Values of factors for a part of the products, in rows of lanes, and 0 behind the last product.
        lane = self._names.fresh("lane")
        at: Values = {index(self._batch.variable): self._batch.at(apply("add", part.first, index(lane)))}
        zero = constant(0, self._dtype)
        cells = [(name, (*cell, index(lane))) for _, _, name, cell in copies]
        values = [self._value(factor, {**place, **at}) for factor, place, _, _ in copies]
        stores = tuple(Store(name, cell, value) for (name, cell), value in zip(cells, values, strict=True))
        zeros = tuple(Store(name, cell, zero) for name, cell in cells)
        width = integer(self._lanes)
        some = Loop(lane, integer(0), part.count, 1, stores), Loop(lane, part.count, width, 1, zeros, seldom=True)
        return (Branch(self._is_whole(part), (Loop(lane, integer(0), width, 1, stores, "vector"),), some),)

    def _is_whole(self, part: _Part) -> Expr:
        return apply("eq", part.count, integer(self._lanes))

    # -- tiles

    def _tiles(self) -> tuple[Node, ...]:
        found, names = self._found, self._names
        unit, out = names.fresh("unit"), list[Node]()
        groups = at_least_one(quotient_up(self._panels, integer(self._together)))
        strip = self._blocks_of_strip()
        strips = apply("floor_div", apply("add", self._blocks, apply("sub", strip, integer(1))), strip)
        outer = [(side.variable, side.length) for side in self._outer]
        others = product_of((*(length for _, length in outer), groups, strips))
        tiles = quotient_up(found.count_of_rows, integer(ROWS))
        least = apply("min", tiles, units_over(others))
        blocks = at_least_one(apply("max", quotient_up(found.count_of_rows, integer(ROWS_OF_BLOCK)), least))
        number = defined("blocks", blocks, names, out)
        most = apply("min", integer(ROWS_OF_BLOCK), in_tiles(at_least_one(quotient_up(tiles, number))))
        rest: Expr = index(unit)
        places: list[Expr] = []
        for title, length in reversed([*outer, ("strip", strips), ("group", groups), ("number", number)]):
            rest, place = digit(rest, length, title, names, out)
            places.insert(0, place)
        *around, piece, group, row = places
        values: Values = {index(side.variable): side.at(at) for side, at in zip(self._outer, around, strict=True)}
        inner = found.within(values)
        low = defined("low", apply("mul", row, most), names, out)
        rows_inside = product_of(tuple(side.length for side in inner.rows))
        high = defined("high", apply("min", rows_inside, apply("add", low, most)), names, out)
        rows = RowBlock.of(inner.rows, low, high, names)
        first, begin = apply("mul", piece, strip), apply("mul", group, integer(self._together))
        products = first, apply("min", self._blocks, apply("add", first, strip))
        panels = begin, apply("min", self._panels, apply("add", begin, integer(self._together)))
        nodes = (*out, *rows.nodes, *self._of_unit(values, inner.summed, around, rows, products, panels))
        return (Loop(unit, integer(0), self._where_pays(apply("mul", blocks, others)), 1, nodes, "parallel"),)

    def _blocks_of_strip(self) -> Expr:
        # Blocks of products whose left factors are copied together, along memory: more where there are few terms.
        terms = product_of(tuple(side.most for side in self._found.summed))
        return apply("floor_div", integer(_COPIED), apply("min", integer(_TERMS), at_least_one(terms)))

    def _of_unit(
        self,
        values: Values,
        summed: tuple[Side, ...],
        outer: Sequence[Expr],
        rows: RowBlock,
        products: tuple[Expr, Expr],
        panels: tuple[Expr, Expr],
    ) -> tuple[Node, ...]:
        # A block of rows, with blocks of products and panels from one end to the other.
        names, out = self._names, list[Node]()
        tile, block, panel, left = (names.fresh(title) for title in ("tile", "block", "panel", "left"))
        around, parts, term, length = blocks_of_terms(summed, _TERMS, names)
        at: Values = {
            index(side.variable): side.at(index(place)) for side, (place, _, _) in zip(summed, parts, strict=True)
        }
        lines = [{**values, **rows.at(apply("add", index(tile), integer(k)), out)} for k in range(ROWS)]
        term = apply("add", apply("mul", apply("sub", index(block), products[0]), length), term)
        copies = [(self._found.left, {**line, **at}, left, (term, integer(k))) for k, line in enumerate(lines)]
        bounds = _COPIED, ROWS, self._lanes
        row, before = names.fresh("row"), list[Node]()
        line = {**values, **rows.at(apply("add", index(tile), index(row)), before)}
        here = _Tile(
            lines,
            line,
            row,
            tuple(before),
            apply("sub", apply("sub", rows.high, rows.low), index(tile)),
            _Part.of(index(panel), self._columns, self._found.lane),
            _Part.of(index(block), self._lanes, self._batch),
            parts,
        )
        place = (*outer, index(block), index(panel), *(index(counter) for counter, _, _ in parts))
        sums = self._of_tile(here, (left, term), place)
        copied = loops_over([*parts, (block, *products)], self._copied(here.products, copies))
        nodes = (*out, *copied, *loops_over([(block, *products), (panel, *panels)], sums))
        return (
            LocalBuffer(left, self._dtype, tuple(map(integer, bounds)), bounds),
            *around((Loop(tile, integer(0), rows.count, ROWS, nodes),)),
        )

    def _of_tile(self, here: _Tile, left: tuple[str, Expr], place: tuple[Expr, ...]) -> tuple[Node, ...]:
        # The sums of a tile: to their cells from registers, or through memory where there are fewer cells.
        names, dtype, out = self._names, self._dtype, list[Node]()
        lane, edge = names.fresh("lane"), names.fresh("edge")
        many = defined("rows", here.count, names, out)
        wide = defined("columns", here.columns.count, names, out)
        sums = {(row, k): Local(names.fresh("sum"), dtype) for row in range(ROWS) for k in range(self._columns)}
        kept = tuple(Store(edge, (*map(integer, cell), index(lane)), total) for cell, total in sums.items())
        whole = apply("and_", apply("eq", wide, integer(self._columns)), self._is_whole(here.products))
        nodes = (
            *(Define(total.name, constant(0, dtype)) for total in sums.values()),
            *loops_over(here.parts, self._step(sums, left, place, lane)),
            Branch(whole, self._from_registers(here, sums, many, lane), kept),
        )
        column = names.fresh("column")
        total = plain_read(edge, (index(here.row), index(column), index(lane)), dtype)
        stored = Branch(here.begin, *self._both(here, here.line, index(column), lane, total))
        cells = loops_over([(column, integer(0), wide), (lane, integer(0), here.products.count)], (stored,))
        some = Loop(here.row, integer(0), apply("min", many, integer(ROWS)), 1, (*here.before, *cells))
        bounds = ROWS, self._columns, self._lanes
        return (
            *out,
            LocalBuffer(edge, dtype, tuple(map(integer, bounds)), bounds),
            Loop(lane, integer(0), integer(self._lanes), 1, nodes, "vector"),
            Branch(apply("not_", whole), (some,)),
        )

    def _step(
        self, sums: Mapping[tuple[int, int], Local], left: tuple[str, Expr], place: tuple[Expr, ...], lane: str
    ) -> tuple[Node, ...]:
        # A term of each cell of a tile.
        rights = [Local(self._names.fresh("right"), self._dtype) for _ in range(self._columns)]
        step: list[Node] = []
        for column, right in enumerate(rights):
            cell = (*place, integer(column), index(lane))
            step.append(Define(right.name, plain_read(self._packed.name, cell, self._dtype)))
        buffer, term = left
        for row in range(ROWS):
            factor = Local(self._names.fresh("left"), self._dtype)
            step.append(Define(factor.name, plain_read(buffer, (term, integer(row), index(lane)), self._dtype)))
            for column, right in enumerate(rights):
                step.append(Accumulate(sums[row, column].name, "add", self._found.term_of(factor, right, ())))
        return tuple(step)

    def _from_registers(
        self, here: _Tile, sums: Mapping[tuple[int, int], Local], many: Expr, lane: str
    ) -> tuple[Node, ...]:
        # All sums of the rows that there are, where they belong.
        ways: tuple[list[Node], list[Node]] = [], []
        for row, line in enumerate(here.lines):
            cells = [self._both(here, line, integer(k), lane, sums[row, k]) for k in range(self._columns)]
            for nodes, of_way in zip(ways, zip(*cells, strict=True), strict=True):
                of_row = tuple(node for of_cell in of_way for node in of_cell)
                nodes += (Branch(apply("gt", many, integer(row)), of_row),) if row else of_row
        return (Branch(here.begin, *map(tuple, ways)),)

    def _both(
        self, here: _Tile, line: Values, column: Expr, lane: str, total: Expr
    ) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
        # A sum of the first terms in a cell, and one of further terms.
        values = {
            **line,
            index(self._found.lane.variable): self._found.lane.at(apply("add", here.columns.first, column)),
            index(self._batch.variable): self._batch.at(apply("add", here.products.first, index(lane))),
        }
        return self._stored(values, total), (self._added(values, total),)
