"""The loops of statements that go through blocks of the same rows together (`tcdsl.lowering.scheduling.row_blocks`).

::

    parallel for place in 0 .. min(64, blocks):          the blocks of a place have the same memory
        for block in a part of the blocks:
            low, high = ...                              the rows of a block
            statement after statement: tiles of the rows low .. high, or each row of them

As many rows make a block as leave what is made of them near. Panels of right factors are made before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial, reduce

from tcdsl.ir.build import apply, index, integer, plain_read, product_of
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.expressions import Constant, Expr, Local, Read, transform
from tcdsl.lowering.loopir.loops import Branch, Buffer, Define, Loop, Node, Store, Update, loops_over
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.loopir.traversal import map_expressions, renamed, rewritten
from tcdsl.lowering.nests.bodies import NestContext
from tcdsl.lowering.nests.contraction_tiles import contraction_tiles
from tcdsl.lowering.nests.rows_of_tiles import rows_of_blocks
from tcdsl.lowering.program_passes.merging import Group, SharedRows
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.polyhedra.affine import NotAffine, condition_set, holds
from tcdsl.polyhedra.linear import normalized

__all__ = ["RowBlockNests", "pays_in_rows", "without_shared"]

_PLACES = 64
"""Blocks that have memory of their own: enough for all threads."""


def pays_in_rows(rows: SharedRows) -> Expr:
    """Whether all sums of products are large enough for tiles, a condition on sizes."""
    found = [group.plans[0].contraction for group in rows.groups]
    return reduce(partial(apply, "and_"), (each.pays for each in found if each is not None))


def without_shared(groups: Sequence[Group], buffers: Sequence[Buffer]) -> list[Buffer]:
    """``buffers``, of which those that blocks of rows have of their own are empty where there are blocks."""
    shared = [group.rows for group in groups if group.rows is not None]
    pays = {name: pays_in_rows(rows) for rows in shared for name in rows.own}
    return [_empty_if(pays[each.name], each) if each.name in pays else each for each in buffers]


def _extents(rows: SharedRows) -> tuple[Expr, ...]:
    return tuple(map(rows.groups[0].plans[0].extent, rows.levels[0]))


def _empty_if(condition: Expr, buffer: Buffer) -> Buffer:
    first = apply("where", condition, integer(0), buffer.shape[0])
    return replace(buffer, shape=(first, *buffer.shape[1:]))


class RowBlockNests:
    """The nests of a group with ``rows``; ``inside`` gives the loops of a group inside those that it shares."""

    def __init__(self, group: Group, setting: NestContext, inside: Callable[[Group], tuple[Node, ...]]) -> None:
        assert group.rows is not None
        self._rows = group.rows
        self._setting = setting
        self._inside = inside
        self._pays = pays_in_rows(group.rows)
        #: Whether they do all the work for any sizes.
        self.always = isinstance(self._pays, Constant)
        self._tiles = {
            k: tiles
            for k, each in enumerate(group.rows.groups)
            if (tiles := contraction_tiles(each.plans[0], setting)) is not None
        }
        self._extents = _extents(group.rows)
        self._kept = {name: self._kept_axes(name) for name in group.rows.own}
        outer = product_of(tuple(each for k, each in enumerate(self._extents) if k != group.rows.row))
        rows = self._extents[group.rows.row]
        self._most = rows_of_blocks(apply("mul", rows, outer), self._room())
        self._blocks = quotient_up(rows, self._most)
        self._count = apply("mul", outer, self._blocks)
        self._places = apply("min", self._count, integer(_PLACES))
        self._place = setting.names.fresh("place")
        self._buffers = {name: self._buffer(name) for name in group.rows.own}

    def _kept_axes(self, name: str) -> tuple[str, tuple[tuple[int, Expr], ...]]:
        # The type of a memory of the blocks' own, and the axes that no level indexes, with their extents.
        setting, axes = self._setting, self._rows.own[name]
        tensor = next(each for each in setting.tensors.values() if setting.buffers.get(each.name) == name)
        return tensor.dtype, tuple((k, extent) for k, extent in enumerate(tensor.shape) if k not in axes)

    def _room(self) -> Expr:
        # The rows that are near, all that is made of them.
        total: Expr = integer(0)
        for dtype, kept in self._kept.values():
            size = integer(numpy_dtype(dtype).itemsize)
            total = apply("add", total, apply("mul", size, product_of(tuple(extent for _, extent in kept))))
        return apply("floor_div", integer(self._setting.machine.near_bytes), apply("max", total, integer(1)))

    def _buffer(self, name: str) -> str:
        dtype, kept = self._kept[name]
        places = self._places if self.always else apply("where", self._pays, self._places, integer(0))
        shape = (places, self._most, *(extent for _, extent in kept))
        made = Buffer(self._setting.names.fresh(f"rows_{name}"), dtype, shape, "temporary", ())
        self._setting.extra.append(made)
        return made.name

    def panels(self) -> Iterator[tuple[LoopOrder, str, tuple[Node, ...], Expr]]:
        """What is done before, for each plan: how it is called, its loops and its work."""
        for k, tiles in self._tiles.items():
            for hint, nodes, work in tiles.before():
                yield self._rows.groups[k].plans[0], hint, nodes, work

    def elsewhere(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """``nodes``, which do without blocks, where they run."""
        return (Branch(apply("not_", self._pays), nodes),)

    def tiles_elsewhere(self, group: Group) -> bool:
        """Whether tiles of a sum of products may pay where blocks of rows do not."""
        found = group.plans[0].contraction
        if found is None:
            return False
        # Without lanes nothing is to be done.
        sums = [each.plans[0].contraction for each in self._rows.groups]
        some = [apply("ge", each.lane.length, integer(1)) for each in sums if each is not None]
        known = self._setting.context
        try:
            for condition in some:
                known = known.intersect(condition_set(condition, known))
            return not holds(apply("or_", apply("not_", found.pays), self._pays), known)
        except NotAffine:
            return True

    def where_elsewhere(self, buffer: Buffer) -> Buffer:
        """Memory that the nests need which do without blocks."""
        return _empty_if(self._pays, buffer)

    def nest(self) -> tuple[Node, ...]:
        """The loops over blocks, in parallel."""
        block = self._setting.names.fresh("block")
        out: list[Node] = []
        rest: Expr = index(block)
        row = self._rows.row
        extents = [self._blocks if k == row else each for k, each in enumerate(self._extents)]
        values: list[Expr] = []
        for extent in reversed(extents[1:]):
            values.insert(0, self._defined("level", apply("mod", rest, extent), out))
            rest = self._defined("left", apply("floor_div", rest, extent), out)
        values.insert(0, rest)
        low = self._defined("low", apply("mul", values[row], self._most), out)
        high = self._defined("high", apply("min", self._extents[row], apply("add", low, self._most)), out)
        nodes = tuple(node for k in range(len(self._rows.groups)) for node in self._member(k, values, low, high))
        nodes = (*out, *self._in_own_memory(nodes, low))
        if not self._rows.own:
            return (Loop(block, integer(0), self._where_pays(self._count), 1, nodes, "parallel"),)
        before: list[Node] = []
        steps = self._defined("steps", quotient_up(self._count, apply("max", self._places, integer(1))), before)
        first = self._defined("first", apply("mul", index(self._place), steps), before)
        stop = apply("min", self._count, apply("add", first, steps))
        inner = (*before, Loop(block, first, stop, 1, nodes))
        return (Loop(self._place, integer(0), self._where_pays(self._places), 1, inner, "parallel"),)

    def _where_pays(self, count: Expr) -> Expr:
        return count if self.always else apply("where", self._pays, count, integer(0))

    def _defined(self, title: str, value: Expr, out: list[Node]) -> Expr:
        local = Local(self._setting.names.fresh(title), "int64")
        out.append(Define(local.name, value, index=True))
        return local

    def _member(self, k: int, values: Sequence[Expr], low: Expr, high: Expr) -> tuple[Node, ...]:
        # What a group does in the rows low .. high.
        group, levels, tiles = self._rows.groups[k], self._rows.levels[k], self._tiles.get(k)
        row = levels[self._rows.row]
        around: dict[Expr, Expr] = {
            index(name): value for name, value in zip(levels, values, strict=True) if name != row
        }
        if tiles is not None:
            return tiles.of_rows(around, row, low, high)
        others = [name for name in group.plans[0].outer[: group.depth] if name not in levels]
        nodes = loops_over(group.plans[0].spans(others), self._inside(group))
        return (Loop(row, low, high, 1, renamed(nodes, around)),)

    def _in_own_memory(self, nodes: tuple[Node, ...], low: Expr) -> tuple[Node, ...]:
        # Cells of a block's own memory, in that of its place.
        def cell(buffer: str, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
            row = indices[self._rows.own[buffer][self._rows.row]]
            _, kept = self._kept[buffer]
            return (index(self._place), normalized(apply("sub", row, low)), *(indices[k] for k, _ in kept))

        def read(part: Expr) -> Expr:
            if not isinstance(part, Read) or part.tensor not in self._buffers:
                return part
            return plain_read(self._buffers[part.tensor], cell(part.tensor, part.indices), part.dtype)

        def stored(node: Node) -> tuple[Node, ...]:
            if isinstance(node, Store | Update) and node.buffer in self._buffers:
                return (replace(node, buffer=self._buffers[node.buffer], indices=cell(node.buffer, node.indices)),)
            return (node,)

        return rewritten(map_expressions(nodes, lambda expr: transform(expr, read)), stored)
