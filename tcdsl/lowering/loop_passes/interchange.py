"""Loops along memory inside those that go on from row to row, with a place for each of their steps instead of scalars.

::

    for j in 0 .. M:                      for block in 0 .. (M + 255) // 256:
        s = 0.0                               low, high, local row_s: float64[256]
        for i in 0 .. N:                      for j in low .. high:
            s = a * s + x[i, j]     becomes       s = 0.0
            y[i, j] = s                           row_s[j - low] = s
                                              for i in 0 .. N:
                                                  for j in low .. high:
                                                      s = row_s[j - low]
                                                      s = a * s + x[i, j]
                                                      y[i, j] = s
                                                      row_s[j - low] = s

So cells beside each other are read and written together, and the steps along ``j`` may be lanes. Where the cells of one
step lie beside each other, as in ``y[j, i]``, four steps go on together, each with scalars of its own: while one waits
for its sum, the others add. They are done in another order only if none touches what another one writes; what each of
them does stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.expressions import Expr, Local, Read, reads, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.independent_rounds import independent
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Buffer,
    Check,
    Define,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    Store,
    Update,
)
from tcdsl.lowering.loopir.tiles import length_of_loop, most_steps, quotient_up
from tcdsl.lowering.loopir.traversal import (
    changed_names,
    own_expressions,
    rewritten,
    scalars_of,
    uses_of,
    walk_nodes,
    with_bodies,
    with_expressions,
)
from tcdsl.polyhedra.linear import linear_form, normalized

__all__ = ["copied", "with_rows_inside", "with_rows_inside_rounds"]

_WIDTH = 256
"""Steps along memory that go on together: their scalars lie in the nearest cache."""
_FEWEST = 8
_MOST_NODES = 32
_TOGETHER = 4
"""Steps across memory that go on together: their scalars lie in registers."""


def with_rows_inside(nodes: Sequence[Node], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with loops interchanged where that makes steps along memory the innermost ones."""
    nodes = tuple(nodes)
    used = uses_of(nodes)

    def interchanged(body: tuple[Node, ...]) -> tuple[Node, ...]:
        return tuple(rule(node) for node in body)

    def rule(node: Node) -> Node:
        made = _Rows.of(node, used, names) if isinstance(node, Loop) else None
        return with_bodies(node, interchanged) if made is None else made.loop()

    return interchanged(nodes)


def with_rows_inside_rounds(nests: Iterable[Nest], buffers: Iterable[Buffer]) -> list[Nest]:
    """``nests`` of a kernel with rounds, the same; loops that threads share as memory says stay as they are."""
    nests = list(nests)
    names = FreshNames(
        {*(each.name for each in buffers), *(name for nest in nests for name in changed_names(nest.body))}
    )
    return [
        nest
        if nest.bounds is not None or not any(isinstance(node, Loop) and node.rounds for node in walk_nodes(nest.body))
        else replace(nest, code=with_rows_inside(nest.body, names))
        for nest in nests
    ]


@dataclass(frozen=True, slots=True)
class _Rows:
    """A loop over ``row``, what its steps change, the types of its scalars, and those ``held`` from one inner loop
    to the next.

    With ``along`` the steps go along memory, else a few of them are written out.
    """

    row: Loop
    changing: Set[str]
    types: dict[str, str]
    held: Set[str]
    along: bool
    names: FreshNames

    @staticmethod
    def of(row: Loop, used: Counter[str], names: FreshNames) -> _Rows | None:
        """The loop, if it is worth to go inside those in it, and may."""
        few = most_steps(row.start, row.stop)
        if row.condition is not None or row.step != 1 or row.kind == "vector" or (few is not None and few < _FEWEST):
            return None
        inside = list(walk_nodes(row.body))
        if not all(isinstance(node, Accumulate | Branch | Check | Define | Loop | Store | Update) for node in inside):
            return None
        if not _fails_in_order(row.body):
            return None
        changed = changed_names(row.body) - {node.variable for node in inside if isinstance(node, Loop)}
        changing = _changing(row, changed)
        loops = [node for node in inside if isinstance(node, Loop)]
        if not loops or not all(_is_around(loop, changing) for loop in loops):
            return None
        if not independent(row.body, row.variable, frozenset()) or not _exposed(row.body)[0].isdisjoint(changed):
            return None
        runs = list(_runs(row.body, changing))
        needed = frozenset[str]().union(*(_exposed(run)[0] for run in runs))
        types = {node.name: node.value.dtype for node in inside if isinstance(node, Define)}
        own = uses_of((row,))
        if any(used[name] != own[name] for name in changed):
            return None
        held = needed & types.keys() & changing
        if not held:
            return None
        along = _moves_along(row)
        others = not _has_checks(row.body) and _goes_on(row, changing, held)
        return _Rows(row, changing, types, held, along, names) if along or others else None

    def loop(self) -> Loop:
        """The loop over blocks of its steps."""
        row, names = self.row, self.names
        width = _WIDTH if self.along else _TOGETHER
        number, low, high = (names.fresh(name) for name in ("block", "low", "high"))
        first = apply("add", row.start, apply("mul", index(number), integer(width)))
        begin, end = Local(low, "int64"), Local(high, "int64")
        last = apply("min", row.stop, apply("add", begin, integer(width)))
        ends = Define(low, first, index=True), Define(high, last, index=True)
        body = self._rows(begin, end) if self.along else self._together(begin, end)
        many = quotient_up(length_of_loop(row), integer(width))
        return Loop(number, integer(0), many, 1, (*ends, *body), row.kind, "" if _has_checks(row.body) else row.rounds)

    def _together(self, begin: Expr, end: Expr) -> tuple[Node, ...]:
        # Whoever waits for one step computes another one.
        scalars = sorted(self.changing & self.types.keys())
        values: list[dict[Expr, Expr]] = [
            {
                index(self.row.variable): apply("add", begin, integer(step)),
                **{Local(name, self.types[name]): Local(self.names.fresh(name), self.types[name]) for name in scalars},
            }
            for step in range(_TOGETHER)
        ]

        def inside(nodes: Sequence[Node]) -> tuple[Node, ...]:
            out: list[Node] = []
            for around, group in groupby(nodes, lambda node: _is_around(node, self.changing)):
                run = tuple(group)
                if around:
                    out.extend(with_bodies(node, inside) for node in run)
                else:
                    out.extend(node for step in values for node in copied(run, step))
            return tuple(out)

        whole = apply("eq", apply("sub", end, begin), integer(_TOGETHER))
        rest = replace(self.row, start=begin, stop=end, kind="serial")
        return (Branch(whole, inside(self.row.body), (rest,)),)

    def _rows(self, begin: Expr, end: Expr) -> tuple[Node, ...]:
        place = (apply("sub", index(self.row.variable), begin),)
        cells = {
            name: plain_read(self.names.fresh(f"row_{name}"), place, self.types[name]) for name in sorted(self.held)
        }
        buffers = (LocalBuffer(cell.tensor, cell.dtype, (integer(_WIDTH),), (_WIDTH,)) for cell in cells.values())
        return *buffers, *self._inside(self.row.body, cells, begin, end)

    def _inside(self, nodes: Sequence[Node], cells: dict[str, Read], begin: Expr, end: Expr) -> tuple[Node, ...]:
        rule = partial(self._inside, cells=cells, begin=begin, end=end)
        out: list[Node] = []
        for around, group in groupby(nodes, lambda node: _is_around(node, self.changing)):
            run = tuple(group)
            if around:
                out.extend(with_bodies(node, rule) for node in run)
                continue
            asked, made = _exposed(run)
            changed = changed_names(run)
            before = (
                Define(name, cell)
                for name, cell in cells.items()
                if name in asked or (name in changed and name not in made)
            )
            after = (
                Store(cell.tensor, cell.indices, Local(name, cell.dtype))
                for name, cell in cells.items()
                if name in changed
            )
            # Checks tell in which round they fail.
            rounds = self.row.rounds if _has_checks(run) else ""
            out.append(Loop(self.row.variable, begin, end, 1, (*before, *run, *after), rounds=rounds))
        return tuple(out)


def _fails_in_order(body: Sequence[Node]) -> bool:
    # Whether the step that fails first is still the first one: all checks stand together, behind all loops.
    last = max((k for k, node in enumerate(body) if isinstance(node, Loop | Branch)), default=-1)
    return not _has_checks(body[: last + 1])


def _has_checks(body: Sequence[Node]) -> bool:
    return any(isinstance(node, Check) for node in walk_nodes(body))


def _changing(row: Loop, changed: Set[str]) -> Set[str]:
    # What may be another thing in each step: all but scalars that are defined once, of what is the same for all steps.
    times = Counter(node.name for node in walk_nodes(row.body) if isinstance(node, Accumulate | Define))
    changing = {*changed, row.variable}
    for node in row.body:
        if isinstance(node, Define) and times[node.name] == 1 and changing.isdisjoint(_names(node.value)):
            changing.remove(node.name)
    return changing


def _is_around(node: Node, changing: Set[str]) -> bool:
    # Whether the node does the same for all steps, so that they may go on inside of it, or behind it.
    match node:
        case Loop(kind="serial", condition=None) | Branch():
            return all(changing.isdisjoint(_names(each)) for each in own_expressions(node))
        case Define(name=name):
            return name not in changing
        case _:
            return False


def _names(expr: Expr) -> Set[str]:
    return scalars_of(expr) | {read.tensor for read in reads(expr)}


def _runs(nodes: Sequence[Node], changing: Set[str]) -> Iterator[tuple[Node, ...]]:
    for around, group in groupby(nodes, lambda node: _is_around(node, changing)):
        run = tuple(group)
        if not around:
            yield run
            continue
        for node in run:
            match node:
                case Loop(body=body):
                    yield from _runs(body, changing)
                case Branch(body=body, otherwise=otherwise):
                    yield from _runs(body, changing)
                    yield from _runs(otherwise, changing)
                case _:
                    pass


def _exposed(nodes: Sequence[Node]) -> tuple[Set[str], Set[str]]:
    """The scalars whose value from before ``nodes`` may ask for, and those that they surely define."""
    asked: set[str] = set()
    made: set[str] = set()
    for node in nodes:
        asked.update(name for expr in own_expressions(node) for name in scalars_of(expr) if name not in made)
        match node:
            case Define(name=name):
                made.add(name)
            case Accumulate(name=name) if name not in made:
                asked.add(name)
            case Loop(body=body):
                asked |= _exposed(body)[0] - made
            case Branch(body=body, otherwise=otherwise):
                parts = _exposed(body), _exposed(otherwise)
                asked |= (parts[0][0] | parts[1][0]) - made
                made |= parts[0][1] & parts[1][1]
            case _:
                pass
    return asked, made


def copied(run: Sequence[Node], values: dict[Expr, Expr]) -> tuple[Node, ...]:
    """``run`` with other values of names, or other names where these are scalars that it makes."""
    names = {
        key.name: value.name for key, value in values.items() if isinstance(key, Local) and isinstance(value, Local)
    }

    def value(expr: Expr) -> Expr:
        return substitute(expr, values)

    def rule(node: Node) -> tuple[Node, ...]:
        node = with_expressions(node, value, lambda axis: normalized(value(axis)))
        if isinstance(node, Accumulate | Define):
            node = replace(node, name=names.get(node.name, node.name))
        return (node,)

    return rewritten(run, rule)


def _goes_on(row: Loop, changing: Set[str], held: Set[str]) -> bool:
    """Whether inner loops have scalars that each step takes from the one before, so that no step waits for less."""
    loops = [node for node in row.body if isinstance(node, Loop)]
    if any(isinstance(node, Branch) for node in walk_nodes(loops)):
        return False
    for run in _runs(loops, changing):
        asked = frozenset[str]().union(*(scalars_of(expr) for node in run for expr in own_expressions(node)))
        going = asked & changed_names(run) & held & _exposed(run)[0]
        if going and not _only_joins(run, going):
            return len(list(walk_nodes(loops))) <= _MOST_NODES
    return False


def _only_joins(run: Sequence[Node], going: Set[str]) -> bool:
    # Whether they accumulate before they are used: the lanes of a vector do that faster.
    free = set(going)
    for node in run:
        if isinstance(node, Accumulate) and node.name in free and not ACCUMULATORS[node.accumulate].ordered:
            free.remove(node.name)
        elif not free.isdisjoint(changed_names((node,)) | frozenset().union(*map(scalars_of, own_expressions(node)))):
            return False
    return not free


def _moves_along(row: Loop) -> bool:
    """Whether steps inside of loops store or add up cells that lie beside those of the next step, and no others."""
    found = stores = False
    loops = [node for node in row.body if isinstance(node, Loop)]
    for node in walk_nodes(loops):
        own = [node.indices] if isinstance(node, Store | Update) else []
        # What a statement adds up has an order of its own.
        stores = stores or bool(own) or (bool(row.rounds) and isinstance(node, Accumulate))
        for indices in (*own, *(read.indices for expr in own_expressions(node) for read in reads(expr))):
            if not any(row.variable in scalars_of(axis) for axis in indices):
                continue
            *outer, last = indices
            terms, _ = linear_form(last)
            rest = [*outer, *(term for term in terms if term != index(row.variable))]
            if terms.get(index(row.variable)) != 1 or any(row.variable in scalars_of(part) for part in rest):
                return False
            found = True
    return found and stores
