"""Sums in scalars, several cells at a time, where these read the same cells of a factor.

Four rows of one factor and four of the other one make sixteen cells, from an eighth of the loads::

    parallel for i in 0 .. M:              parallel for tile in 0 .. (M + 3) // 4:
        for j in 0 .. N:                       first = tile * 4
            acc = 0.0                          for j in 0 .. last by 4:
            for k in 0 .. K:                       acc = 0.0
                acc += a[i, k] * b[j, k]           ...
            c[i, j] = acc                          for k in 0 .. K:
                                                       acc += a[first, k] * b[j, k]
                                                       acc2 = a[first, k] * b[j + 1, k]
                                                       ...
                                                   c[first, j] = acc
                                                   ...

Of a product of a matrix and a vector, four cells are together. What is left over is done one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Expr, Local, reads, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Loop, Node, Store
from tcdsl.lowering.loopir.tiles import most_steps
from tcdsl.lowering.loopir.traversal import buffers_read, own_expressions, scalars_of, walk_nodes
from tcdsl.lowering.program_passes.effort import weight
from tcdsl.targets.cpu.registers.tile_rows import PARTS, TILE, TileRows, is_plain, parts, whole_steps

__all__ = ["dots_together"]

_SHORT = 32  # Terms that LLVM writes out.


def dots_together(loop: Loop, names: FreshNames) -> tuple[Node, ...] | None:
    """``loop`` over cells, or over rows of them, as one over tiles; None if that is of no use."""
    if loop.kind == "vector" or loop.step != 1 or loop.rounds or loop.condition is not None:
        return None
    match loop.body:
        case (Loop() as cells,) if _are_dots(cells.body, (loop.variable, cells.variable)) and is_plain(cells):
            if loop.variable in scalars_of(cells.start) | scalars_of(cells.stop):
                return None
            return _blocks(loop, cells, names)
        case body if _are_dots(body, (loop.variable,)):
            return _rows(loop, names)
        case _:
            return None


def _rows(loop: Loop, names: FreshNames) -> tuple[Node, ...] | None:
    rows = TileRows.of(loop, names)
    if rows is None:
        return None
    together = _together(loop.body, rows.places, names)
    return (rows.tiles((Branch(rows.are_whole, together, (rows.each(loop.body),)),)),)


def _blocks(loop: Loop, cells: Loop, names: FreshNames) -> tuple[Node, ...] | None:
    rows, ends = TileRows.of(loop, names), whole_steps(cells, names)
    if rows is None or ends is None:
        return None
    ahead, last = ends
    # Without so many rows, all cells are left over.
    begin = Local(names.fresh("rest"), "int64")
    rest = Define(begin.name, apply("where", rows.are_whole, last, cells.start), index=True)
    number = index(cells.variable)
    columns: list[dict[Expr, Expr]] = [{number: apply("add", number, integer(k)) if k else number} for k in range(TILE)]
    places = [{**row, **column} for row, column in product(rows.places, columns)]
    block = replace(cells, stop=begin, step=TILE, body=_together(cells.body, places, names))
    return (rows.tiles((*ahead, rest, block, rows.each((replace(cells, start=begin),)))),)


def _are_dots(body: Sequence[Node], variables: Sequence[str]) -> bool:
    # Whether each step is one sum in a scalar, stored in a cell of its own, and steps read the same cells.
    nodes = list(walk_nodes(body))
    if not all(isinstance(node, Accumulate | Define | Loop | Store) for node in nodes):
        return False
    sums = [node for node in nodes if isinstance(node, Accumulate)]
    stores = [node for node in nodes if isinstance(node, Store)]
    loops = [node for node in nodes if isinstance(node, Loop)]
    if len(sums) != 1 or len(stores) != 1 or stores[0] not in body or not loops:
        return False
    (total,), (store,) = sums, stores
    if total.accumulate not in ("add", "subtract") or not is_floating(total.value.dtype):
        return False
    made = {node.name for node in nodes if isinstance(node, Define | Accumulate)}
    for loop in loops:
        steady = is_plain(replace(loop, step=1)) and len(loop.body) <= _nodes_of_blocks(loop)
        if not steady or (scalars_of(loop.start) | scalars_of(loop.stop)) & {*made, *variables}:
            return False
    last = loops[-1]
    if total not in last.body or (most_steps(last.start, last.stop) or _SHORT) < _SHORT:
        return False
    if store.buffer in buffers_read(body) or any(index(name) not in store.indices for name in variables):
        return False
    read = [each for expr in own_expressions(total) for each in reads(expr)]
    shared = all(
        any(last.variable in scalars_of(each) and name not in scalars_of(each) for each in read) for name in variables
    )
    written = [expr for node in nodes for expr in own_expressions(node)]
    return shared and weight(written) == 1 and parts(total.value) <= PARTS


def _nodes_of_blocks(loop: Loop) -> int:
    # A block of terms has a sum of its own: defined, added up, added to the others.
    return 3 if any(isinstance(node, Loop) for node in loop.body) else 1


def _together(nodes: Sequence[Node], places: Sequence[Mapping[Expr, Expr]], names: FreshNames) -> tuple[Node, ...]:
    # ``nodes`` at all places at once: loops once, all else once for each place.
    return _copies(nodes, [dict(place) for place in places], [{} for _ in places], names)


def _copies(
    nodes: Sequence[Node], places: Sequence[dict[Expr, Expr]], called: Sequence[dict[str, str]], names: FreshNames
) -> tuple[Node, ...]:
    out: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            out.append(replace(node, body=_copies(node.body, places, called, names)))
            continue
        for values, known in zip(places, called, strict=True):
            match node:
                case Define(name=name, value=value):
                    written = substitute(value, values)
                    known.setdefault(name, names.fresh(name))
                    values[Local(name, value.dtype)] = Local(known[name], value.dtype)
                    out.append(replace(node, name=known[name], value=written))
                case Accumulate(name=name, value=value):
                    out.append(replace(node, name=known[name], value=substitute(value, values)))
                case Store(indices=indices, value=value):
                    cell = tuple(substitute(axis, values) for axis in indices)
                    out.append(replace(node, indices=cell, value=substitute(value, values)))
                case _:
                    raise TypeError(f"not a part of a sum: {node}")
    return tuple(out)
