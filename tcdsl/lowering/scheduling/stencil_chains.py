"""Stencils of stencils, made a tile at a time: what is in between lies in memory of the tile's own.

What a tile of the last one reads of those before is a tile with a few more cells around, which neighbours make too::

    for i: for j:                          for tile of i and j:
        a[i, j] = x[i, j] + x[i + 2, j]        local a_tile
    for i: for j:                              for i in the tile, and one more: for j in the tile, and two more:
        y[i, j] = a[i, j] * a[i + 1, j + 2]        a_tile[i - first, j - first1] = x[i, j] + x[i + 2, j]
                                               for i, j in the tile:
                                                   y[i, j] = a_tile[...] * a_tile[...]

Every cell is computed from what it was computed from before. Tensors that others need too, that are read far away, or
whose reads may be out of range, stay whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tcdsl.ir.build import apply, index, integer, plain_read, product_of
from tcdsl.ir.dtypes import compute_dtype, numpy_dtype
from tcdsl.ir.expressions import Boundary, Expr, IndexValue, Local, Read, transform
from tcdsl.ir.program import Keep, statement_reads
from tcdsl.lowering.loopir.loops import Define, LocalBuffer, Loop, Node, Store, loops_over
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.loopir.traversal import map_expressions, renamed, rewritten
from tcdsl.lowering.nests.bodies import NestContext, StatementLoops
from tcdsl.lowering.program_passes.merging import LARGEST, Group, Touched
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.lowering.program_passes.shared_memory import Memory
from tcdsl.lowering.program_passes.touched_tensors import can_fail
from tcdsl.polyhedra.linear import linear_form, normalized

__all__ = ["chained", "chained_nest"]

_TILED = 2
"""Axes that tiles are cut along, the last ones."""

_AROUND = 8
"""Cells around a tile at most: what is computed twice."""

_MEMBERS = 8
"""Tensors of a chain at most, since each tile lies on the stack."""

_ROWS, _FEWEST_ROWS = 64, 8
_COLUMNS = (2048, 1024, 512, 256)
"""How long the rows of a tile may be: long ones are read ahead."""
_LINE = 64

_Around = tuple[tuple[int, int], ...]
"""How many cells before the first one and behind the last one of a tile, along each of its axes."""

_NOTHING: _Around = ((0, 0),) * _TILED


@dataclass(slots=True)
class _Chain:
    # Groups of one statement, at places in order; what is needed of their targets, beside a tile of the last one's.
    around: dict[str, _Around]
    members: list[int]
    work: int


def chained(groups: Sequence[Group], memory: Memory, kept: frozenset[str]) -> list[Group]:
    """``groups`` with chains of stencils as one; ``kept`` tensors are needed as a whole."""
    touched = Touched(memory)
    readers: dict[str, set[int]] = {}
    statements = [(place, plan.statement) for place, group in enumerate(groups) for plan in group.plans]
    for place, statement in statements:
        for read in statement_reads(statement):
            readers.setdefault(read.tensor, set()).add(place)
    kept |= {statement.start.tensor for _, statement in statements if isinstance(statement.start, Keep)}
    buffers = [memory.of[statement.target.tensor] for _, statement in statements]
    chains: dict[int, _Chain] = {}
    for place in reversed(range(len(groups))):
        plan = _stencil(groups[place])
        name = groups[place].plans[-1].statement.target.tensor
        if plan is None or name in kept or not readers.get(name) or buffers.count(memory.of[name]) > 1:
            continue
        found = _chain_of(groups, sorted(readers[name]), chains, memory, touched)
        if found is None or not _moves(groups, place, found, touched):
            continue
        written = groups[found.members[-1]].plans[0].statement.target.tensor
        around = _around(name, [groups[reader].plans[0] for reader in readers[name]], found.around)
        if around is None or _reads_memory(plan, written, memory):
            continue
        found.around[name] = around
        found.members.insert(0, place)
        found.work += touched.of(plan).work
        chains.update(dict.fromkeys(found.members, found))
    # What reads its own cells alone is for other passes.
    chains = {place: chain for place, chain in chains.items() if set(chain.around.values()) != {_NOTHING}}
    made = {chain.members[-1]: tuple(groups[member] for member in chain.members) for chain in chains.values()}
    return [
        Group(tuple(each.plans[0] for each in made[place]), 0, tiled=made[place]) if place in made else group
        for place, group in enumerate(groups)
        if place in made or place not in chains
    ]


def _stencil(group: Group) -> LoopOrder | None:
    plan = group.plans[0]
    if len(group.plans) > 1 or not plan.full or plan.extents or plan.fixed is not None or can_fail(plan.statement):
        return None
    cells = plan.statement.target.indices
    dtype = plan.tensor.dtype
    suited = len(cells) >= _TILED and cells == tuple(map(IndexValue, plan.outer)) and dtype == compute_dtype(dtype)
    return plan if suited and dtype.startswith("float") else None


def _chain_of(
    groups: Sequence[Group], readers: Sequence[int], chains: dict[int, _Chain], memory: Memory, touched: Touched
) -> _Chain | None:
    # The chain of all readers: one that there is, or a new one.
    found = [chains.get(place) for place in readers]
    if found[0] is not None:
        return found[0] if all(each is found[0] for each in found) else None
    last = _stencil(groups[readers[0]]) if len(readers) == 1 else None
    if last is None or _reads_memory(last, last.statement.target.tensor, memory):
        return None
    return _Chain({last.statement.target.tensor: _NOTHING}, [readers[0]], touched.of(last).work)


def _around(name: str, readers: Sequence[LoopOrder], known: Mapping[str, _Around]) -> _Around | None:
    # What all readers need of a tensor, if they read it beside their own cells.
    reads: list[_Around] = []
    for reader in readers:
        needed = known[reader.statement.target.tensor]
        for read in statement_reads(reader.statement):
            if read.tensor == name:
                steps = _steps(read, reader)
                if steps is None:
                    return None
                reads.append(tuple((low + step, high + step) for (low, high), step in zip(needed, steps, strict=True)))
    found = tuple((min(low for low, _ in axis), max(high for _, high in axis)) for axis in zip(*reads, strict=True))
    return found if all(high - low <= _AROUND for low, high in found) else None


def _steps(read: Read, reader: LoopOrder) -> tuple[int, ...] | None:
    # How far from its own cell the reader reads, along the axes of tiles.
    cells = reader.statement.target.indices
    steps: list[int] = []
    for place, cell in zip(read.indices, cells, strict=False):
        terms, step = linear_form(place)
        if terms != {cell: 1}:
            return None
        steps.append(step)
    near = all(boundary is Boundary.SKIP for boundary in read.boundaries)
    if len(read.indices) != len(cells) or not near or any(steps[:-_TILED]):
        return None
    return tuple(steps[-_TILED:])


def _moves(groups: Sequence[Group], place: int, chain: _Chain, touched: Touched) -> bool:
    # Whether the statement may be done where the chain is.
    plan = groups[place].plans[0]
    if touched.of(plan).work + chain.work > LARGEST or len(chain.members) == _MEMBERS:
        return False
    others = (groups[between] for between in range(place + 1, chain.members[-1]) if between not in chain.members)
    return not any(touched.conflict(plan, other) for group in others for other in group.plans)


def _reads_memory(plan: LoopOrder, tensor: str, memory: Memory) -> bool:
    return memory.of[tensor] in {memory.of[read.tensor] for read in statement_reads(plan.statement)}


def chained_nest(group: Group, setting: NestContext) -> tuple[Node, ...]:
    """The loops of a chain."""
    return _Tiles(group, setting).nest()


class _Tiles:
    def __init__(self, group: Group, setting: NestContext) -> None:
        self._setting = setting
        self._plans = [each.plans[0] for each in group.tiled]
        self._last = self._plans[-1]
        self._around = _all_around(self._plans)
        names = setting.names
        self._ends = [tuple(Local(names.fresh(name), "int64") for name in ("first", "last")) for _ in range(_TILED)]
        self._sides = self._extents()
        self._locals = {setting.buffers[plan.statement.target.tensor]: self._local(plan) for plan in self._plans[:-1]}

    def _extents(self) -> tuple[int, int]:
        # Rows as long, and then as many, as leave the tiles of all tensors near.
        cells = sum(numpy_dtype(each.tensor.dtype).itemsize for each in self._plans[:-1])
        near = self._setting.machine.near_bytes // cells
        # What is around, and the ends of lines of the cache.
        more = 1 + max(high - low for (low, high), _ in self._around.values())
        columns = next((each for each in _COLUMNS if (_FEWEST_ROWS + more) * each <= near), _COLUMNS[-1])
        return max(_FEWEST_ROWS, min(_ROWS, near // columns - more)), columns

    def _local(self, plan: LoopOrder) -> LocalBuffer:
        name = plan.statement.target.tensor
        around = self._around[name]
        rows, columns = (side + high - low for side, (low, high) in zip(self._sides, around, strict=True))
        # Rows begin where lines of caches do.
        line = _LINE // numpy_dtype(plan.tensor.dtype).itemsize
        extents = rows, -(-columns // line) * line
        local = self._setting.names.fresh(f"tile_{name}")
        return LocalBuffer(local, plan.tensor.dtype, tuple(map(integer, extents)), extents)

    def nest(self) -> tuple[Node, ...]:
        """Loops over tiles, the outermost one in parallel."""
        names, last = self._setting.names, self._last
        *outer, row, column = last.outer
        tile, across = names.fresh("tile"), names.fresh("across")
        sides = tuple(map(integer, self._sides))
        counts = tuple(quotient_up(last.extent(name), side) for name, side in zip((row, column), sides, strict=True))
        places = (
            apply("floor_div", index(tile), Local(across, "int64")),
            apply("mod", index(tile), Local(across, "int64")),
        )
        ends: list[Node] = [Define(across, counts[1], index=True)]
        for (first, stop), place, side, name in zip(self._ends, places, sides, (row, column), strict=True):
            ends.append(Define(first.name, apply("mul", place, side), index=True))
            ends.append(Define(stop.name, apply("min", last.extent(name), apply("add", first, side)), index=True))
        body = (*ends, *self._locals.values(), *(node for plan in self._plans for node in self._of(plan)))
        tiles = Loop(tile, integer(0), product_of(counts), 1, body)
        nodes = loops_over(last.spans(outer), (tiles,))
        return tuple(replace(node, kind="parallel") if isinstance(node, Loop) else node for node in nodes)

    def _of(self, plan: LoopOrder) -> tuple[Node, ...]:
        # The cells that a tile needs of the target.
        outer = zip(plan.outer[:-_TILED], self._last.outer[:-_TILED], strict=True)
        shared: dict[Expr, Expr] = {index(own): index(name) for own, name in outer}
        nodes = renamed(StatementLoops(plan, self._setting).full(), shared)
        for name, (first, stop), (low, high) in reversed(
            list(zip(plan.outer[-_TILED:], self._ends, self._around[plan.statement.target.tensor], strict=True))
        ):
            start, end = apply("add", first, integer(low)), apply("add", stop, integer(high))
            nodes = (Loop(name, start, end, 1, nodes),)
        return rewritten(map_expressions(nodes, self._in_tiles), lambda node: (self._stored(node),))

    def _in_tiles(self, expr: Expr) -> Expr:
        def cell(part: Expr) -> Expr:
            local = self._locals.get(part.tensor) if isinstance(part, Read) else None
            if local is None or not isinstance(part, Read):
                return part
            return plain_read(local.name, self._place(part.tensor, part.indices), part.dtype)

        return transform(expr, cell)

    def _stored(self, node: Node) -> Node:
        local = self._locals.get(node.buffer) if isinstance(node, Store) else None
        if local is None or not isinstance(node, Store):
            return node
        return replace(node, buffer=local.name, indices=self._place(node.buffer, node.indices))

    def _place(self, buffer: str, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        # Where a cell is in its tile.
        (tensor,) = (
            plan.statement.target.tensor
            for plan in self._plans
            if self._setting.buffers[plan.statement.target.tensor] == buffer
        )
        found = zip(indices[-_TILED:], self._ends, self._around[tensor], strict=True)
        return tuple(
            normalized(apply("sub", place, apply("add", first, integer(low)))) for place, (first, _), (low, _) in found
        )


def _all_around(plans: Sequence[LoopOrder]) -> dict[str, _Around]:
    # What is needed of all targets.
    *others, last = plans
    found: dict[str, _Around] = {last.statement.target.tensor: _NOTHING}
    for plan in reversed(others):
        around = _around(plan.statement.target.tensor, [each for each in plans if _reads(each, plan)], found)
        assert around is not None
        found[plan.statement.target.tensor] = around
    return found


def _reads(plan: LoopOrder, other: LoopOrder) -> bool:
    return any(read.tensor == other.statement.target.tensor for read in statement_reads(plan.statement))
