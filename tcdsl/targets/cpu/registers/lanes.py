"""Sums into rows whose cells are the lanes of vectors, which stay in registers for all terms.

::

    for k in 0 .. K:                       for first in 0 .. N - N % 32 by 32:
        for j in 0 .. N:                       for j in first .. first + 32, in lanes:
            c[j] += a[k] * b[k, j]                 acc = c[j]
                                                   for k in 0 .. K:
                                                       acc += a[k] * b[k, j]
                                                   c[j] = acc
                                           ...

A cell is loaded and stored once, and its terms are added in the order that they had. Of four rows that read the same
row of a factor, four sums are beside each other. What is left over at the end of rows is done in narrow blocks, of
which the last one has fewer lanes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.expressions import Apply, Expr, Local, Read, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Accumulate, Define, Loop, Node, Store
from tcdsl.lowering.loopir.tiles import length_of_loop, most_steps
from tcdsl.lowering.loopir.traversal import scalars_of
from tcdsl.targets.cpu.registers.row_sums import RowSum
from tcdsl.targets.cpu.registers.tile_rows import TILE, TileRows

__all__ = ["may_be_lanes", "row_in_lanes", "rows_in_lanes", "rows_of_tile"]

_ITEMS = {"float32": 4, "float64": 8}

_WIDE = 256
"""Bytes of a row in a block: four registers, so that those of four rows and what they add fit. What a factor's rows
hold is far apart, and less would not be worth the way."""

_NARROW = 64
"""The same at the end of rows: one register."""

_TERMS = 64
"""Terms that are added before the next block of cells: what they read is on as many pages of memory as are known at
once."""

_NEAR = 1 << 15
"""Terms of all cells of a row that is alone, whose factors stay in the nearest caches."""

_STREAMS = 8
"""Where there are more, so many terms are added before the next block: their factors come in as many streams."""


def may_be_lanes(found: RowSum, dense: Set[str]) -> bool:
    """Whether the cells of a row may be lanes: what is computed is arithmetic of floats, and cells side by side read
    such, of buffers that are ``dense``.
    """
    update, variable = found.update, found.row.variable
    dtype = update.value.dtype
    if found.condition is not None or dtype not in _ITEMS or update.accumulate not in ("add", "subtract"):
        return False
    varying = {variable}
    for node in found.definitions[1]:
        assert isinstance(node, Define)
        if not _is_vector(node.value, dtype, varying, variable, dense):
            return False
        varying.add(node.name)
    return (
        update.buffer in dense
        and _is_side_by_side(update.indices, varying, variable)
        and _is_vector(update.value, dtype, varying, variable, dense)
    )


def rows_of_tile(loop: Loop) -> Expr:
    """How many rows are in a tile: the more there are, the more often a block of a factor is read while it is near;
    but there shall be some tiles for each thread.
    """
    length = length_of_loop(loop)
    most: Expr = integer(2 * TILE)
    for size, tiles in ((4 * TILE, 4), (8 * TILE, 8)):
        most = apply("where", apply("ge", length, integer(size * tiles)), integer(size), most)
    return most


def rows_in_lanes(found: RowSum, rows: TileRows, names: FreshNames) -> tuple[tuple[Node, ...], Expr]:
    """All sums of the rows of a tile, four at a time, and the first one of the rows that are left over."""
    count = apply("floor_div", apply("sub", rows.end, rows.first), integer(TILE))
    left = Local(names.fresh("left"), "int64")
    whole = Define(left.name, apply("add", rows.first, apply("mul", count, integer(TILE))), index=True)
    several = _Rows(rows.loop.variable, rows.first, left)
    terms = found.terms
    steps = most_steps(terms.start, terms.stop)
    if steps is not None and steps <= _TERMS:
        return (whole, *_in_lanes(found, several, names)), left
    first = names.fresh("first")
    end = apply("min", apply("add", index(first), integer(_TERMS)), terms.stop)
    part = replace(found, terms=replace(terms, start=index(first), stop=end))
    return (whole, Loop(first, terms.start, terms.stop, _TERMS, _in_lanes(part, several, names))), left


def row_in_lanes(found: RowSum, names: FreshNames) -> tuple[Node, ...]:
    """All sums of one row."""
    terms, row = found.terms, found.row
    length = length_of_loop(terms)
    few = apply("le", apply("mul", length, length_of_loop(row)), integer(_NEAR))
    steps = Local(names.fresh("steps"), "int64")
    number, first = names.fresh("part"), Local(names.fresh("first"), "int64")
    many = Define(steps.name, apply("where", few, apply("max", length, integer(1)), integer(_STREAMS)), index=True)
    low = apply("add", terms.start, apply("mul", index(number), steps))
    end = apply("min", apply("add", first, steps), terms.stop)
    part = replace(found, terms=replace(terms, start=first, stop=end))
    last = apply("sub", apply("add", length, steps), integer(1))
    body = (Define(first.name, low, index=True), *_in_lanes(part, None, names))
    return (many, Loop(number, integer(0), apply("floor_div", last, steps), 1, body))


@dataclass(frozen=True, slots=True)
class _Rows:
    # Rows from ``first`` up to ``end``, as many as there are in whole fours.
    variable: str
    first: Expr
    end: Expr

    def sums(self, found: RowSum, cells: Loop, names: FreshNames) -> Node:
        four = names.fresh(self.variable)
        places: list[dict[Expr, Expr]] = [
            {index(self.variable): apply("add", index(four), integer(k))} for k in range(TILE)
        ]
        return Loop(four, self.first, self.end, TILE, (replace(cells, body=_sums(found, places, names)),))


def _in_lanes(found: RowSum, rows: _Rows | None, names: FreshNames) -> tuple[Node, ...]:
    row, item = found.row, _ITEMS[found.update.value.dtype]
    steps = most_steps(row.start, row.stop)
    if steps is not None and steps * item < _WIDE:
        return (_blocks(found, row.start, row.stop, _NARROW // item, rows, names, fewer=True),)
    lanes = _WIDE // item
    last = Local(names.fresh("last"), "int64")
    whole = Define(last.name, _end_of_whole(row, lanes), index=True)
    wide = _blocks(found, row.start, last, lanes, rows, names)
    return (whole, wide, _blocks(found, last, row.stop, _NARROW // item, rows, names, fewer=True))


def _end_of_whole(row: Loop, lanes: int) -> Expr:
    count = apply("floor_div", length_of_loop(row), integer(lanes))
    return apply("max", row.start, apply("add", row.start, apply("mul", count, integer(lanes))))


def _blocks(
    found: RowSum,
    start: Expr,
    stop: Expr,
    lanes: int,
    rows: _Rows | None,
    names: FreshNames,
    *,
    fewer: bool = False,
) -> Loop:
    # The loop over blocks of so many lanes, of which the last one may have ``fewer``.
    first = names.fresh("first")
    end = apply("add", index(first), integer(lanes))
    end = apply("min", end, stop) if fewer else end
    cells = Loop(found.row.variable, index(first), end, 1, (), "vector")
    one = replace(cells, body=_sums(found, [{}], names)) if rows is None else rows.sums(found, cells, names)
    return Loop(first, start, stop, lanes, (one,))


def _sums(found: RowSum, rows: Sequence[Mapping[Expr, Expr]], names: FreshNames) -> tuple[Node, ...]:
    update = found.update
    dtype = update.value.dtype
    held: list[Node] = []
    terms: list[Node] = []
    stored: list[Node] = []
    for place in rows:
        values = dict(place)
        cell = tuple(substitute(axis, values) for axis in update.indices)
        acc = Local(names.fresh("acc"), dtype)
        held.append(Define(acc.name, plain_read(update.buffer, cell, dtype)))
        for node in (*found.definitions[0], *found.definitions[1]):
            assert isinstance(node, Define)
            made = replace(node, name=names.fresh(node.name), value=substitute(node.value, values))
            values[Local(node.name, node.value.dtype)] = Local(made.name, node.value.dtype)
            terms.append(made)
        terms.append(Accumulate(acc.name, update.accumulate, substitute(update.value, values)))
        stored.append(Store(update.buffer, cell, acc))
    return (*held, replace(found.terms, body=tuple(terms)), *stored)


def _is_vector(expr: Expr, dtype: str, varying: Set[str], variable: str, dense: Set[str]) -> bool:
    # Whether all lanes of ``expr`` are computed at once; what is the same in all of them may be anything.
    if expr.dtype != dtype:
        return False
    if varying.isdisjoint(scalars_of(expr)):
        return True
    match expr:
        case Local():
            return True
        case Read(tensor=buffer, indices=indices):
            return buffer in dense and _is_side_by_side(indices, varying, variable)
        case Apply(primitive="add" | "sub" | "mul" | "neg", arguments=parts):
            return all(_is_vector(part, dtype, varying, variable, dense) for part in parts)
        case _:
            return False


def _is_side_by_side(indices: Sequence[Expr], varying: Set[str], variable: str) -> bool:
    # Whether the last index is the variable and what does not change with it, and the others do not.
    *others, last = indices
    if any(varying & scalars_of(each) for each in others):
        return False
    while isinstance(last, Apply):
        match last:
            case Apply(primitive="add", arguments=(one, other)) if varying.isdisjoint(scalars_of(one)):
                last = other
            case Apply(primitive="add" | "sub", arguments=(one, other)) if varying.isdisjoint(scalars_of(other)):
                last = one
            case _:
                return False
    return last == index(variable)
