"""Sums into rows, several rows and several terms at a time, so that what is loaded is used more than once.

A row that accumulates in memory is loaded and stored for every term, which waits for the store of the last one::

    for k in 0 .. K:                       last = K - K % 4
        for j in 0 .. N:                   for k in 0 .. last by 4:
            c[j] += a[k] * b[k, j]             for j in 0 .. N:
                                                   acc = c[j] + a[k] * b[k, j]
                                                   acc += a[k + 1] * b[k + 1, j]
                                                   ...
                                                   acc += a[k + 3] * b[k + 3, j]
                                                   c[j] = acc
                                           for k in last .. K:
                                               ...

Where neighbouring rows read the same row of a factor, as those of a matrix product do, four of them are done together::

    parallel for i in 0 .. M:              parallel for tile in 0 .. (M + 3) // 4:
        for k in 0 .. K:                       first = tile * 4
            for j in 0 .. N:                   for k in 0 .. last by 4:
                c[i, j] += ...                     for j in 0 .. N:
                                                       acc = c[first, j] + ...
                                                       acc2 = c[first + 1, j] + ...
                                                       ...

This is unroll and jam. Where the processor has wide vectors, such sums stay in their lanes for all terms instead
(`lanes.py`). A cell's terms are added in the order that they had. Which rows are together depends on the
sizes alone, and not on threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Local, Read, reads, size_names, substitute, transform, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.linking.bounds import with_bounds
from tcdsl.lowering.loopir.kinds import EqualNests
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Kernel, LocalBuffer, Loop, Nest, Node, Store, Update
from tcdsl.lowering.loopir.traversal import (
    buffers_read,
    buffers_written,
    expressions,
    own_expressions,
    scalars_of,
    walk_nodes,
    with_bodies,
)
from tcdsl.lowering.program_passes.effort import weight
from tcdsl.targets.cpu.registers.dot_tiles import dots_together
from tcdsl.targets.cpu.registers.lanes import may_be_lanes, row_in_lanes, rows_in_lanes, rows_of_tile
from tcdsl.targets.cpu.registers.row_sums import RowSum
from tcdsl.targets.cpu.registers.tile_rows import PARTS, TILE, TileRows, is_plain, parts, whole_steps

__all__ = ["in_register_tiles"]


def in_register_tiles(kernel: Kernel, dense: Set[str] = frozenset()) -> Kernel:
    """``kernel`` with several cells and terms of its sums together.

    Cells of ``dense`` buffers may be lanes of wide vectors: of machines that have such, and where the last axis has no
    gaps.
    """
    types = {buffer.name: buffer.dtype for buffer in kernel.buffers}
    dense = {name for name in dense if types[name] == compute_dtype(types[name])}
    made: list[Nest] = []
    loops: dict[str, Loop] = {}
    equal = EqualNests.of(kernel.nests, {name: (dtype, name in dense) for name, dtype in types.items()})
    for nest in equal.firsts:
        names = FreshNames((*types, *_names_in(nest.body)), short=True)
        local = {node.name: node.dtype for node in walk_nodes(nest.body) if isinstance(node, LocalBuffer)}
        near = {name for name, dtype in local.items() if dense and dtype == compute_dtype(dtype)}
        body = _Tiling({**types, **local}, dense | near, frozenset(local), names).of(nest.body)
        if nest.bounds is not None and isinstance(body[0], Loop) and body != nest.body:
            loops[nest.bounds] = body[0]
        made.append(nest if body == nest.body else replace(nest, body=body))
    nests = equal.spread(made)
    if loops:
        nests = [replace(nest, body=with_bounds(nest.body, loops)) for nest in nests]
    return kernel.with_nests(nests)


def _names_in(nodes: Sequence[Node]) -> Iterator[str]:
    for node in walk_nodes(nodes):
        match node:
            case Define(name=name) | Accumulate(name=name) | LocalBuffer(name=name) | Loop(variable=name):
                yield name
            case _:
                pass
    for expr in expressions(nodes):
        yield from size_names(expr)


class _Tiling:
    def __init__(self, types: Mapping[str, str], dense: Set[str], local: Set[str], names: FreshNames) -> None:
        self.types = types
        self.dense = dense
        self.local = local
        self.names = names

    def of(self, nodes: Iterable[Node]) -> tuple[Node, ...]:
        return tuple(made for node in nodes for made in self._node(node))

    def _node(self, node: Node) -> tuple[Node, ...]:
        if isinstance(node, Loop):
            together = self._rows(node) or dots_together(node, self.names)
            if together is not None:
                return together
            found = self._sum(node)
            if found is not None:
                return self._terms(found)
        return (with_bodies(node, self.of),)

    # -- several terms

    def _terms(self, found: RowSum) -> tuple[Node, ...]:
        if may_be_lanes(found, self.dense):
            return row_in_lanes(found, self.names)
        ends = whole_steps(found.terms, self.names)
        if ends is None:
            return (found.terms,)
        ahead, last = ends
        several = self._together(found, last, [{}])
        rest = () if last == found.terms.stop else (replace(found.terms, start=last),)
        return (*ahead, several, *rest)

    def _together(self, found: RowSum, last: Expr, rows: Sequence[Mapping[Expr, Expr]]) -> Loop:
        # The loop of all whole passes, for rows that ``rows`` say the variables of.
        update, dtype = found.update, self.types[found.update.buffer]
        accs = [Local(self.names.fresh("acc"), dtype) for _ in rows]
        cells = [tuple(substitute(axis, dict(row)) for axis in update.indices) for row in rows]
        outer: list[Node] = []
        body: list[Node] = []
        around, inside = found.definitions
        number, primitive = index(found.terms.variable), ACCUMULATORS[update.accumulate].primitive
        for term in range(TILE):
            step: dict[Expr, Expr] = {number: apply("add", number, integer(term))} if term else {}
            for acc, cell, row in zip(accs, cells, rows, strict=True):
                values = {**step, **row}
                outer += self._copied(around, values)
                body += self._copied(inside, values)
                held = plain_read(update.buffer, cell, dtype)
                added = Accumulate(acc.name, update.accumulate, substitute(update.value, values))
                if found.condition is not None:
                    before = () if term else (Define(acc.name, held),)
                    body += (*before, Branch(substitute(found.condition, values), (added,)))
                elif term:
                    body.append(added)
                else:
                    body.append(Define(acc.name, apply(primitive, held, added.value)))
        body += [Store(update.buffer, cell, acc) for acc, cell in zip(accs, cells, strict=True)]
        return replace(found.terms, stop=last, step=TILE, body=(*outer, replace(found.row, body=tuple(body))))

    def _copied(self, nodes: Iterable[Node], values: dict[Expr, Expr]) -> list[Node]:
        # Definitions of one of the terms, under names of its own, which ``values`` then knows.
        out: list[Node] = []
        for node in nodes:
            assert isinstance(node, Define)
            made = replace(node, name=self.names.fresh(node.name), value=substitute(node.value, values))
            values[Local(node.name, node.value.dtype)] = Local(made.name, node.value.dtype)
            out.append(made)
        return out

    def _sum(self, loop: Loop) -> RowSum | None:
        # The sum into a row, if ``loop`` repeats nothing else, and its passes may be made together.
        if not loop.body or not is_plain(loop):
            return None
        *before, row = loop.body
        if not isinstance(row, Loop) or not is_plain(row) or not row.body:
            return None
        *inside, update = row.body
        condition: Expr | None = None
        if isinstance(update, Branch) and len(update.body) == 1 and not update.otherwise:
            condition, update = update.condition, update.body[0]
        if not isinstance(update, Update) or not all(isinstance(node, Define) for node in (*before, *inside)):
            return None
        dtype = self.types.get(update.buffer, "")
        if dtype != compute_dtype(dtype) or update.value.dtype != dtype or update.buffer in buffers_read(loop.body):
            return None
        defined = {node.name for node in (*before, *inside) if isinstance(node, Define)}
        steady = (*update.indices, row.start, row.stop)
        if any(scalars_of(expr) & {loop.variable, *defined} for expr in steady):
            return None
        if not any(row.variable in scalars_of(expr) for expr in update.indices):
            return None
        written = [expr for node in (*before, *inside, row.body[-1], update) for expr in own_expressions(node)]
        light = weight(written) == 1 and sum(map(parts, map(self._with_scalars, written))) <= PARTS
        return RowSum(loop, row, update, condition) if light else None

    def _with_scalars(self, expr: Expr) -> Expr:
        # What lies in a tile costs as much as a scalar.
        def rule(part: Expr) -> Expr:
            return Local(part.tensor, part.dtype) if isinstance(part, Read) and part.tensor in self.local else part

        return transform(expr, rule) if self.local else expr

    # -- several rows

    def _rows(self, loop: Loop) -> tuple[Node, ...] | None:
        # ``loop`` over rows, as one over tiles of them, if that is of use.
        if loop.kind == "vector" or loop.step != 1 or loop.rounds or loop.condition is not None:
            return None
        if not self._shares(loop.body, loop) or not self._independent(loop):
            return None
        rows = TileRows.of(loop, self.names, rows_of_tile(loop) if self._are_lanes(loop.body) else None)
        return None if rows is None else (rows.tiles(self._tile(loop.body, rows)),)

    def _shares(self, nodes: Sequence[Node], rows: Loop) -> bool:
        # Whether there is a sum whose rows read the same cells, and nothing that cannot be divided among loops.
        found = False
        for node in nodes:
            if isinstance(node, Loop) and (part := self._sum(node)) is not None:
                found = found or self._is_shared(part, rows.variable)
            elif isinstance(node, Loop) and self._is_around(node, rows):
                found = self._shares(node.body, rows) or found
            elif not isinstance(node, Loop | Branch | Store | Update):
                return False
        return found

    def _are_lanes(self, nodes: Sequence[Node]) -> bool:
        # Whether so are all sums.
        for node in nodes:
            if isinstance(node, Loop):
                found = self._sum(node)
                if not (self._are_lanes(node.body) if found is None else may_be_lanes(found, self.dense)):
                    return False
        return True

    def _is_around(self, loop: Loop, rows: Loop) -> bool:
        # Whether the loop over rows may go into ``loop``, of blocks of terms: not where it is over cells itself.
        if not is_plain(replace(loop, step=1)) or rows.variable in scalars_of(loop.start) | scalars_of(loop.stop):
            return False
        written = (node for node in walk_nodes(loop.body) if isinstance(node, Store | Update))
        return all(loop.variable not in scalars_of(axis) for node in written for axis in node.indices)

    def _is_shared(self, found: RowSum, row: str) -> bool:
        around, inside = found.definitions
        if row not in frozenset[str]().union(*map(scalars_of, found.update.indices)):
            return False
        if row in scalars_of(found.row.start) | scalars_of(found.row.stop):
            return False
        if row in scalars_of(found.terms.start) | scalars_of(found.terms.stop):
            return False
        nodes = (*around, *inside, found.row.body[-1], found.update)
        values = [expr for node in nodes for expr in own_expressions(node)]
        return any(
            found.row.variable in scalars_of(read) and row not in scalars_of(read)
            for expr in values
            for read in reads(expr)
        )

    def _independent(self, loop: Loop) -> bool:
        # Whether each step changes cells that no other one touches: those at its own place along some axis.
        scalars = {node.name for node in walk_nodes(loop.body) if isinstance(node, Define | Accumulate)}
        kinds = Accumulate | Branch | Define | Loop | Store | Update
        if not all(isinstance(node, kinds) for node in walk_nodes(loop.body)):
            return False
        # Scalars are those of one part.
        if any(isinstance(node, Loop) and node.rounds for node in walk_nodes(loop.body)) or scalars & _outside(loop):
            return False
        return loop.kind == "parallel" or all(
            _own_axis(loop.body, buffer, loop.variable) for buffer in set(buffers_written(loop.body))
        )

    def _tile(self, nodes: Sequence[Node], rows: TileRows) -> tuple[Node, ...]:
        out: list[Node] = []
        left: list[Node] = []

        def flush() -> None:
            if left:
                out.append(rows.each(self.of(left)))
                left.clear()

        for node in nodes:
            found = self._sum(node) if isinstance(node, Loop) else None
            ends = (
                None
                if found is None or not self._is_shared(found, rows.loop.variable)
                else whole_steps(found.terms, self.names)
            )
            if found is not None and ends is not None:
                flush()
                out += self._product(found, ends, rows)
            elif (
                found is None
                and isinstance(node, Loop)
                and self._is_around(node, rows.loop)
                and self._shares(node.body, rows.loop)
            ):
                flush()
                out.append(replace(node, body=self._tile(node.body, rows)))
            else:
                left.append(node)
        flush()
        return tuple(out)

    def _product(self, found: RowSum, ends: tuple[tuple[Node, ...], Expr], rows: TileRows) -> list[Node]:
        ahead, last = ends
        if may_be_lanes(found, self.dense):
            together, left = rows_in_lanes(found, rows, self.names)
            return [*together, rows.each(self._terms(found), left)]
        whole = self._together(found, last, rows.places)
        fewer = rows.each((self._together(found, last, [{}]),))
        out: list[Node] = [*ahead, Branch(rows.are_whole, (whole,), (fewer,))]
        if last != found.terms.stop:
            out.append(rows.each((replace(found.terms, start=last),)))
        return out


def _outside(loop: Loop) -> set[str]:
    # The scalars that one part of the body sets and another one reads: those at its own level.
    return {node.name for node in loop.body if isinstance(node, Define | Accumulate)}


def _own_axis(nodes: Sequence[Node], buffer: str, variable: str) -> bool:
    # Whether all accesses of ``buffer`` have the variable alone at one place.
    places = [node.indices for node in walk_nodes(nodes) if isinstance(node, Store | Update) and node.buffer == buffer]
    every = (part for expr in expressions(nodes) for part in walk(expr) if isinstance(part, Read))
    places += [read.indices for read in every if read.tensor == buffer]
    return any(all(place == index(variable) for place in axis) for axis in zip(*places, strict=True))
