"""Sums several at a time: in scalars, several cells where these read the same cells of a factor; in rows, several
terms.

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

Of a product of a matrix and a vector, four cells are together. A row is loaded and stored once for eight terms,
which are added in the order that they had::

    for k in 0 .. K:                       for k in 0 .. last by 8:
        for j in 0 .. N:                       for j in 0 .. N:
            c[j] += a[k] * b[k, j]                 c[j] = c[j] + a[k] * b[k, j] + a[k + 1] * b[k + 1, j] + ...

What is left over is done one by one. Where terms are windows, which read the same cells again for other rows, a cell
takes all of its terms at once, which emission does for some vectors of cells, in registers::

    for r in 0 .. R:                       for j in 0 .. N:
        for s in 0 .. S:                       acc = c[i, j]
            for j in 0 .. N:                   for r in 0 .. R:
                c[i, j] +=                         for s in 0 .. S:
                  w[r, s] * x[i + r, j + s]            acc += w[r, s] * x[i + r, j + s]
                                               c[i, j] = acc
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import product

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import (
    Apply,
    Constant,
    Expr,
    IndexValue,
    Local,
    Read,
    children,
    index_variables,
    reads,
    substitute,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.text.declined import Declined
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Loop, Node, Store, Update
from tcdsl.lowering.loopir.point_code import in_register
from tcdsl.lowering.loopir.tiles import length_of_loop, most_steps, nest_of, quotient_up
from tcdsl.lowering.loopir.traversal import buffers_read, own_expressions, scalars_of, walk_nodes, with_bodies
from tcdsl.lowering.program_passes.effort import weight
from tcdsl.polyhedra.linear import linear_form, normalized

__all__ = ["with_dots_together", "with_terms_together", "with_windows_inside"]

_SHORT = 32  # Terms that LLVM writes out.

_TILE = 4
"""So many rows are together, and so many cells: sixteen sums and what they add fit into registers."""

_TERMS = 8
"""Terms that are added to a row before it is stored."""

_FEWEST = 16
"""Terms of a sum into a row that are worth it."""

_PARTS = 24
"""Parts of the expressions of a term at most: what is more takes longer than its loads."""


def with_dots_together(nodes: Iterable[Node], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with such sums in tiles."""
    out: list[Node] = []
    for node in nodes:
        made = _dots_together(node, names) if isinstance(node, Loop) else None
        out += made or [with_bodies(node, lambda body: with_dots_together(body, names))]
    return tuple(out)


def _dots_together(loop: Loop, names: FreshNames) -> tuple[Node, ...] | None:
    # A loop over cells, or over rows of them, as one over tiles; None if that is of no use.
    if loop.kind == "vector" or loop.step != 1 or loop.rounds or loop.condition is not None:
        return None
    match loop.body:
        case (Loop() as cells,) if _are_dots(cells.body, (loop.variable, cells.variable)) and _is_plain(cells):
            if loop.variable in scalars_of(cells.start) | scalars_of(cells.stop):
                return None
            return _blocks(loop, cells, names)
        case body if _are_dots(body, (loop.variable,)):
            return _rows(loop, names)
        case _:
            return None


def _rows(loop: Loop, names: FreshNames) -> tuple[Node, ...] | None:
    rows = _Rows.of(loop, names)
    if rows is None:
        return None
    together = _together(loop.body, rows.places, names)
    return (rows.tiles((Branch(rows.are_whole, together, (rows.each(loop.body),)),)),)


def _blocks(loop: Loop, cells: Loop, names: FreshNames) -> tuple[Node, ...] | None:
    rows, ends = _Rows.of(loop, names), _whole_steps(cells, names)
    if rows is None or ends is None:
        return None
    ahead, last = ends
    # Without so many rows, all cells are left over.
    begin = Local(names.fresh("rest"), "int64")
    rest = Define(begin.name, apply("where", rows.are_whole, last, cells.start), index=True)
    number = index(cells.variable)
    steps = (apply("add", number, integer(k)) if k else number for k in range(_TILE))
    columns: list[dict[Expr, Expr]] = [{number: step} for step in steps]
    places = [{**row, **column} for row, column in product(rows.places, columns)]
    block = replace(cells, stop=begin, step=_TILE, body=_together(cells.body, places, names))
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
        steady = _is_plain(replace(loop, step=1)) and len(loop.body) <= _nodes_of_blocks(loop)
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
    return shared and weight(written) == 1 and _parts(total.value) <= _PARTS


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


def _parts(expr: Expr) -> int:
    """How many parts ``expr`` has. What sizes alone say, as the number of a round in an index, is one: it is known
    before the loops.
    """
    if not any(isinstance(part, IndexValue | Local | Read) for part in walk(expr)):
        return 1
    return 1 + sum(map(_parts, children(expr)))


# -- rows


def with_terms_together(
    nodes: Iterable[Node], types: Mapping[str, str], names: FreshNames, declined: list[Declined]
) -> tuple[Node, ...]:
    """``nodes`` with sums into rows of buffers of such ``types`` that take eight terms at a time; why others do not is
    ``declined``.
    """
    out: list[Node] = []
    for node in nodes:
        made = _terms_together(node, types, names) if isinstance(node, Loop) else None
        if isinstance(made, Declined):
            declined.append(made.of("one term at a time"))
        out += made or [with_bodies(node, lambda body: with_terms_together(body, types, names, declined))]
    return tuple(out)


def _terms_together(terms: Loop, types: Mapping[str, str], names: FreshNames) -> tuple[Node, ...] | Declined | None:
    match terms.body:
        case (*before, Loop(body=(*inside, Update() as update)) as row) if _is_plain(terms) and _is_plain(row):
            pass
        case _:
            return None
    definitions = [node for node in (*before, *inside) if isinstance(node, Define)]
    ends = _whole_steps(terms, names, _TERMS) if (most_steps(terms.start, terms.stop) or _SHORT) >= _FEWEST else None
    if ends is None or len(definitions) < len(before) + len(inside):
        return None
    ahead, last = ends
    every: list[Node] = [*definitions, update]
    written = [expr for node in every for expr in own_expressions(node)]
    dtype = update.value.dtype
    own = {terms.variable, *(node.name for node in definitions)}
    steady = own.isdisjoint(name for axis in (*update.indices, row.start, row.stop) for name in scalars_of(axis))
    # Eight rows of several factors would be more than the processor fetches ahead.
    along = {read for expr in written for read in reads(expr) if row.variable in scalars_of(read)}
    sums = is_floating(dtype) and types.get(update.buffer) == dtype and update.accumulate in ("add", "subtract")
    if not sums or not update.indices or update.indices[-1] != index(row.variable):
        return None
    parts = sum(map(_parts, written))
    if weight(written) > 1 or parts > _PARTS:
        return Declined("a term has {} parts or calls functions, {} parts are at most worth it", (parts, _PARTS))
    if len(along) > 1:
        return Declined("a term reads {} rows of cells", (len(along),))
    if not steady or update.buffer in {read.tensor for expr in written for read in reads(expr)}:
        return Declined(
            "where it adds to {} depends on {}, or it reads what it adds to", (update.buffer, terms.variable)
        )
    primitive = ACCUMULATORS[update.accumulate].primitive
    total: Expr = plain_read(update.buffer, update.indices, dtype)
    outer: list[Node] = []
    inner: list[Node] = []
    for k in range(_TERMS):
        values: dict[Expr, Expr] = {index(terms.variable): apply("add", index(terms.variable), integer(k))} if k else {}
        for made, nodes in ((outer, before), (inner, inside)):
            for node in nodes:
                assert isinstance(node, Define)
                name = names.fresh(node.name)
                made.append(replace(node, name=name, value=substitute(node.value, values)))
                values[Local(node.name, node.value.dtype)] = Local(name, node.value.dtype)
        total = apply(primitive, total, substitute(update.value, values))
    cells = replace(row, body=(*inner, Store(update.buffer, update.indices, total)))
    several = replace(terms, stop=last, step=_TERMS, body=(*outer, cells))
    return (*ahead, several, replace(terms, start=last))


def with_windows_inside(
    nodes: Iterable[Node], types: Mapping[str, str], names: FreshNames, declined: list[Declined], *, masks: bool
) -> tuple[Node, ...]:
    """``nodes`` with sums of windows into rows of buffers of such ``types`` in which each cell takes all its terms; why
    others do not is ``declined``.

    With ``masks`` for lanes also where rows do not have all terms near their ends.
    """
    out: list[Node] = []
    for node in nodes:
        made = _window_inside(node, types, masks, names) if isinstance(node, Loop) else None
        if isinstance(made, Declined):
            declined.append(made.of("no window in registers"))
        inside = partial(with_windows_inside, types=types, names=names, declined=declined, masks=masks)
        out.append(made or with_bodies(node, inside))
    return tuple(out)


def _window_inside(loop: Loop, types: Mapping[str, str], masks: bool, names: FreshNames) -> Node | Declined | None:
    terms = nest_of(loop)
    match terms[-1].body:
        case (Loop() as row,) if masks:  # It begins or ends where the terms say.
            pass
        case _:
            *terms, row = terms
    match row.body:
        case (Update() as update,) if terms and all(map(_is_plain, (*terms, row))):
            pass
        case _:
            return None
    cell, variables = update.indices, {each.variable for each in terms}
    if not cell or cell[-1] != index(row.variable) or any(variables & index_variables(axis) for axis in cell):
        return None
    read = list(reads(update.value))
    if types.get(update.buffer) != update.value.dtype or update.buffer in {each.tensor for each in read}:
        return None
    windows = _are_windows([each for each in read if _names(each, row.variable)], row.variable, variables)
    if not windows:
        return windows if isinstance(windows, Declined) else None
    first, last = _corner(row.start, terms, largest=False), _corner(row.stop, terms, largest=True)
    if first is None or last is None:
        return Declined("where the loop over {} begins and ends depends on several terms", (row.variable,))
    total = Local(names.fresh("acc"), update.value.dtype)
    body: tuple[Node, ...] = (in_register(update, total, total.dtype),)
    # Those that say where the row begins and ends are outside, so that it is asked less often.
    told = scalars_of(row.start) | scalars_of(row.stop)
    for each in reversed([each for each in terms if each.variable not in told]):
        body = (replace(each, body=body),)
    if (first, last) != (row.start, row.stop):
        here = index(row.variable)
        body = (Branch(apply("and_", apply("le", row.start, here), apply("lt", here, row.stop)), body),)
    for each in reversed([each for each in terms if each.variable in told]):
        body = (replace(each, body=body),)
    begin = Define(total.name, plain_read(update.buffer, cell, total.dtype))
    cells = replace(row, start=first, stop=last, body=(begin, *body, Store(update.buffer, cell, total)))
    # Where there are no terms, there need not be such cells.
    return Branch(reduce(partial(apply, "and_"), [apply("lt", each.start, each.stop) for each in terms]), (cells,))


def _corner(bound: Expr, terms: Sequence[Loop], *, largest: bool) -> Expr | None:
    # The largest or the smallest that a bound is for any of the terms, if all of its parts are so for the same one.
    signs = {each.variable: set[bool]() for each in terms}
    parts = [bound]
    while parts:
        match parts.pop():
            case Apply(primitive="max" | "min", arguments=arguments):
                parts += arguments
            case part:
                for atom, factor in linear_form(part)[0].items():
                    if isinstance(atom, IndexValue) and atom.name in signs:
                        signs[atom.name].add(factor > 0)
                    elif index_variables(atom) & signs.keys():
                        return None
    if any(len(found) > 1 for found in signs.values()):
        return None
    place: dict[Expr, Expr] = {}
    for each in terms:
        if signs[each.variable]:
            at_end = signs[each.variable] == {largest}
            place[index(each.variable)] = apply("sub", each.stop, integer(1)) if at_end else each.start
    return normalized(substitute(bound, place)) if place else bound


def _are_windows(along: Sequence[Read], row: str, terms: set[str]) -> Declined | bool:
    # Whether rows around have the same cells among their terms, and nothing else is read but what all rows read.
    def is_shifted(read: Read) -> bool:
        named = [index_variables(axis) for axis in read.indices]
        return any(terms & axis for axis in named) and all(axis - terms for axis in named if terms & axis)

    def is_shared(read: Read) -> bool:
        return frozenset().union(*map(index_variables, read.indices)) <= {*terms, row}

    if not any(map(is_shifted, along)):
        return False
    other = next((read for read in along if not is_shifted(read) and not is_shared(read)), None)
    return True if other is None else Declined("{} is neither a window nor the same for all rows", (other,))


def _names(read: Read, variable: str) -> bool:
    return any(variable in index_variables(axis) for axis in read.indices)


@dataclass(frozen=True, slots=True)
class _Rows:
    # The rows ``first .. end`` of a tile, of those that ``loop`` is over.

    loop: Loop
    tile: str
    first: Local
    end: Local

    @staticmethod
    def of(loop: Loop, names: FreshNames) -> _Rows | None:
        """The rows of a tile of ``loop``; None if there never are `_TILE`."""
        length = length_of_loop(loop)
        if isinstance(length, Constant) and int(length.value) < _TILE:
            return None
        first, end = Local(names.fresh("first"), "int64"), Local(names.fresh("end"), "int64")
        return _Rows(loop, names.fresh("tile"), first, end)

    @property
    def places(self) -> list[dict[Expr, Expr]]:
        """What the variable is in each row of a whole tile."""
        return [{index(self.loop.variable): apply("add", self.first, integer(k))} for k in range(_TILE)]

    @property
    def are_whole(self) -> Expr:
        """Whether there are as many as may be done together."""
        return apply("eq", apply("sub", self.end, self.first), integer(_TILE))

    def each(self, nodes: tuple[Node, ...]) -> Loop:
        """``nodes`` for each of the rows, one after the other."""
        return replace(self.loop, start=self.first, stop=self.end, kind="serial", body=nodes)

    def tiles(self, nodes: tuple[Node, ...]) -> Loop:
        """The loop over tiles, each of which does ``nodes``."""
        loop = self.loop
        low = apply("add", loop.start, apply("mul", index(self.tile), integer(_TILE)))
        high = apply("min", loop.stop, apply("add", self.first, integer(_TILE)))
        ends = Define(self.first.name, low, index=True), Define(self.end.name, high, index=True)
        count = quotient_up(length_of_loop(loop), integer(_TILE))
        return replace(loop, variable=self.tile, start=integer(0), stop=count, body=(*ends, *nodes))


def _whole_steps(loop: Loop, names: FreshNames, count: int = _TILE) -> tuple[tuple[Node, ...], Expr] | None:
    """Where the last ``count`` of the steps of ``loop`` end, and what defines it; None if there never are so many."""
    if isinstance(loop.start, Constant) and isinstance(loop.stop, Constant):
        steps = int(loop.stop.value) - int(loop.start.value)
        return None if steps < count else ((), integer(int(loop.stop.value) - steps % count))
    rest = apply("mod", length_of_loop(loop), integer(count))
    last = names.fresh("last")
    # A loop without steps leaves none.
    stop = apply("max", loop.start, apply("sub", loop.stop, rest))
    return (Define(last, stop, index=True),), Local(last, "int64")


def _is_plain(loop: Loop) -> bool:
    """Whether it is a serial loop of steps of 1, which nothing ends early."""
    return loop.kind == "serial" and loop.step == 1 and not loop.rounds and loop.condition is None
