"""Checks of positions that go step by step, made for both ends of an innermost loop in front of it.

::

    for k in first .. last:               if first + shift is in range and last - 1 + shift is in range:
        p = k + shift                         for k in first .. last:
        check p >= 0 and p < N                    p = k + shift
        y[k] = x[p]                               y[k] = x[p]
                                          else:
                                              for k in first .. last: ... as it was

Where an end is out of range, the loop is as it was, and stops at the same step as before, if it gets there.

Where data say of each step where to add, and neighbours often say the same, a sum would wait for the one before. Then
four parts of a block go on together, behind a look at all positions, as many as stay in the nearest cache:

::

    for i in 0 .. N:                      for first in 0 .. N by 4096:
        p = x[i]                              if x[i] == x[i - 1] for many of the first i:
        check p >= 0 and p < M                    largest = 0
        y[p] += w[i]                              for i in first .. first + 4096:
                                                      largest = max(largest, uint64(x[i]))
                                              if largest < M:
                                                  for i in first .. first + 1024:
                                                      y[x[i]] += w[i]
                                                      y[x[i + 1024]] += w[i + 1024], and so on
                                              else:
                                                  for i in first .. first + 4096: ... as it was
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial, reduce

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, cast, constant, in_range, index, integer
from tcdsl.ir.dtypes import INTEGER, is_floating, is_integer
from tcdsl.ir.expressions import (
    Apply,
    Cast,
    Constant,
    Expr,
    IndexValue,
    Local,
    Read,
    SizeValue,
    reads,
    substitute,
    transform,
    walk,
)
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loop_passes.interchange import copied
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Nest, Node, Update
from tcdsl.lowering.loopir.traversal import (
    buffers_written,
    changed_names,
    own_expressions,
    rewritten,
    scalars_of,
    uses_of,
    walk_nodes,
    with_expressions,
)
from tcdsl.polyhedra.linear import linear_expression, linear_form, normalized

__all__ = ["with_checks_ahead", "with_ends_checked", "with_ends_of_rounds_checked"]

_MOST_NODES = 64  # of a loop that is written twice
_AHEAD, _FEWEST, _TOGETHER, _MOST_UPDATES = 4096, 64, 4, 2


def with_ends_checked(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """``nodes`` with innermost serial loops without such checks, where their ends are in range."""
    nodes = tuple(nodes)
    if not _has_checks(nodes):
        return nodes
    used = uses_of(nodes)
    return rewritten(nodes, lambda node: (_checked(node, used) if isinstance(node, Loop) else node,))


def with_ends_of_rounds_checked(nests: Iterable[Nest]) -> list[Nest]:
    """``nests`` of a kernel with rounds, the same."""
    return [replace(nest, code=with_ends_checked(nest.body)) for nest in nests]


def _has_checks(nodes: Iterable[Node]) -> bool:
    return any(isinstance(node, Check) for node in walk_nodes(nodes))


def _checked(loop: Loop, used: Counter[str]) -> Node:
    inside = list(walk_nodes(loop.body))
    plain = loop.kind == "serial" and loop.step == 1 and loop.condition is None and len(inside) <= _MOST_NODES
    if not plain or any(isinstance(node, Loop) for node in inside):
        return loop
    times = Counter(node.name for node in inside if isinstance(node, Accumulate | Define))
    changing = times.keys() | set(buffers_written(loop.body))
    known: dict[Expr, Expr] = {}
    tests: dict[Expr, None] = {}
    left: list[Node] = []
    for node in loop.body:
        if isinstance(node, Define) and times[node.name] == 1:
            known[Local(node.name, node.value.dtype)] = substitute(node.value, known)
        ends = _ends(node, loop, known, changing) if isinstance(node, Check) else None
        # What is read behind a check, or in a branch, may be out of range in front of it.
        if ends is None or (any(map(_reads, ends)) and any(isinstance(each, Branch | Check) for each in left)):
            left.append(node)
        else:
            tests.update(dict.fromkeys(ends))
    if not tests:
        return loop
    some = [apply("lt", loop.start, loop.stop)] if any(map(_reads, tests)) else []
    steady = {held: place for held, place in known.items() if _is_steady(place, loop, changing)}
    body = _placed(left, {held: _in_words(place) for held, place in steady.items()})
    own, others = uses_of(body), used - uses_of((loop,))
    body = tuple(node for node in body if not isinstance(node, Define) or own[node.name] or others[node.name])
    return Branch(reduce(partial(apply, "and_"), [*some, *tests]), (replace(loop, body=body),), (loop,))


def with_checks_ahead(nodes: Iterable[Node], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with innermost loops that add where data say in parts that go on together."""
    nodes = tuple(nodes)
    if not _has_checks(nodes):
        return nodes
    used = uses_of(nodes)

    def ahead(node: Node) -> tuple[Node, ...]:
        found = _scatter(node, used) if isinstance(node, Loop) else None
        return (_ahead(found, node, names) if isinstance(node, Loop) and found is not None else node,)

    return rewritten(nodes, ahead)


def _scatter(loop: Loop, used: Counter[str]) -> dict[Expr, list[Expr]] | None:
    """The positions that a loop checks, by the extents of what they are positions in, if all else that it does is to
    add floating numbers. Whole numbers are added in no time.
    """
    plain = loop.kind == "serial" and loop.step == 1 and loop.condition is None and not loop.rounds
    own, updates = uses_of((loop,)), 0
    known: dict[Expr, Expr] = {}
    found: dict[Expr, list[Expr]] = {}
    for node in loop.body:
        match node:
            case Define(name=name, value=value) if own[name] == used[name] and Local(name, value.dtype) not in known:
                known[Local(name, value.dtype)] = value
            case Check(value=value, extent=extent) if node.condition == in_range(value, extent) and value in known:
                if not _is_steady(extent, loop, changed_names((loop,))) or not _is_read_along(known[value], loop):
                    return None
                found.setdefault(extent, []).append(known[value])
            case Update(accumulate=accumulate, value=value) if not ACCUMULATORS[accumulate].ordered:
                updates += is_floating(value.dtype)
            case _:
                return None
    read = frozenset[str]().union(*(_reads(expr) for node in loop.body for expr in own_expressions(node)))
    few = plain and 0 < updates <= _MOST_UPDATES
    return found if few and found and read.isdisjoint(buffers_written(loop.body)) else None


def _is_read_along(position: Expr, loop: Loop) -> bool:
    # Whether each step reads it beside that of the step before.
    source = position.operand if isinstance(position, Cast) else position
    if not isinstance(source, Read) or not source.indices or position.dtype != "int64" or not is_integer(source.dtype):
        return False
    *rows, last = source.indices
    apart = any(map(_reads, source.indices)) or any(loop.variable in scalars_of(row) for row in rows)
    return not apart and linear_form(last)[0].get(index(loop.variable)) == 1


def _ahead(positions: Mapping[Expr, Sequence[Expr]], loop: Loop, names: FreshNames) -> Node:
    first, stop = index(names.fresh("first")), Local(names.fresh("stop"), "int64")
    here = replace(loop, start=first, stop=stop)
    largest = {extent: Local(names.fresh("largest"), "uint64") for extent in positions}
    looks = [(largest[extent].name, cast(each, "uint64")) for extent in positions for each in positions[extent]]
    look: tuple[Node, ...] = (
        *(Define(each.name, cast(integer(0), "uint64")) for each in largest.values()),
        replace(here, body=tuple(Accumulate(name, "max", value) for name, value in looks)),
    )
    # A few tell what most are like.
    runs, (some, *_) = Local(names.fresh("runs"), "int64"), (each for all_ in positions.values() for each in all_)
    before = substitute(some, {index(loop.variable): apply("sub", index(loop.variable), integer(1))})
    same = apply("where", apply("eq", some, before), integer(1), integer(0))
    sample = replace(
        loop,
        start=apply("add", first, integer(1)),
        stop=apply("min", stop, apply("add", first, integer(_FEWEST))),
        body=(Accumulate(runs.name, "add", same),),
    )
    tests = [apply("lt", held, cast(extent, "uint64")) for extent, held in largest.items()]
    body: tuple[Node, ...] = (
        Define(stop.name, apply("min", loop.stop, apply("add", first, integer(_AHEAD))), index=True),
        Define(runs.name, integer(0)),
        sample,
        *(Define(each.name, constant(2**64 - 1, "uint64")) for each in largest.values()),
        Branch(apply("gt", runs, integer(_FEWEST // 2)), look),
        Branch(reduce(partial(apply, "and_"), tests), _in_parts(here, names), (here,)),
    )
    many = apply("gt", apply("sub", loop.stop, loop.start), integer(_FEWEST))
    return Branch(many, (Loop(first.name, loop.start, loop.stop, _AHEAD, body),), (loop,))


def _in_parts(loop: Loop, names: FreshNames) -> tuple[Node, ...]:
    # Its parts step by step together, without checks, and what they leave over.
    quarter = Local(names.fresh("quarter"), "int64")
    length = apply("floor_div", apply("sub", loop.stop, loop.start), integer(_TOGETHER))
    body = tuple(node for node in loop.body if not isinstance(node, Check))
    parts: list[Node] = []
    for number in range(_TOGETHER):
        values: dict[Expr, Expr] = {
            Local(each.name, each.value.dtype): Local(names.fresh(each.name), each.value.dtype)
            for each in body
            if isinstance(each, Define)
        }
        values[index(loop.variable)] = apply("add", index(loop.variable), apply("mul", quarter, integer(number)))
        parts += copied(body, values)
    end, rest = (apply("add", loop.start, apply("mul", quarter, integer(times))) for times in (1, _TOGETHER))
    together = replace(loop, stop=end, body=tuple(parts))
    return Define(quarter.name, length, index=True), together, replace(loop, start=rest, body=body, seldom=True)


def _placed(nodes: Iterable[Node], places: dict[Expr, Expr]) -> tuple[Node, ...]:
    """``nodes`` with positions instead of the scalars that hold them, so that cells are seen to lie side by side."""

    def value(expr: Expr) -> Expr:
        return transform(
            expr, lambda part: replace(part, indices=cell(part.indices)) if isinstance(part, Read) else part
        )

    def cell(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(normalized(substitute(axis, places)) for axis in indices)

    return rewritten(nodes, lambda node: (with_expressions(node, value, lambda axis: cell((value(axis),))[0]),))


def _ends(check: Check, loop: Loop, known: dict[Expr, Expr], changing: Set[str]) -> Sequence[Expr] | None:
    """That a position is in range at both ends of a loop, if it goes from one to the other in equal steps.

    So few steps of one as a loop has do not lead from a cell around all integers to another one. Larger ones may, but
    what is in range at both ends as an integer is so between them, and the same in 64 bits.
    """
    if check.condition != in_range(check.value, check.extent) or check.value.dtype not in ("int64", INTEGER):
        return None
    position, variable = substitute(check.value, known), index(loop.variable)
    if not _is_steady(position, loop, changing) or not _is_steady(check.extent, loop, changing):
        return None
    terms, shift = linear_form(position)
    moving = [term for term in terms if loop.variable in scalars_of(term)]
    if moving not in ([], [variable]) or abs(terms.get(variable, 0)) > 1:
        exact = [(_exactly(term, loop.variable), scale) for term, scale in terms.items()]
        if any(term is None for term, _scale in exact):
            return None
        position = linear_expression({term: scale for term, scale in exact if term is not None}, shift, INTEGER)
    last = apply("sub", loop.stop, integer(1))
    return [
        in_range(cast(substitute(position, {variable: end}), position.dtype), check.extent)
        for end in (loop.start, last)
    ]


def _is_steady(position: Expr, loop: Loop, changing: Set[str]) -> bool:
    # Whether only the number of the step moves it, and by equal steps.
    terms = linear_form(position)[0]
    names = frozenset[str]().union(*(scalars_of(term) | _reads(term) for term in terms))
    number = index(loop.variable)
    equal = all(_is_plain(term, loop) and sum(part == number for part in walk(term)) <= 1 for term in terms)
    return equal and names.isdisjoint(changing)


def _is_plain(term: Expr, loop: Loop) -> bool:
    # Whether it is made of what is not computed here by sums and products alone.
    match term:
        case Constant() | IndexValue() | Local() | SizeValue():
            return True
        case Read():
            return loop.variable not in scalars_of(term)
        case Cast(dtype="integer", operand=operand):
            return _is_plain(operand, loop)
        case Apply(primitive="add" | "mul" | "neg" | "sub", arguments=arguments):
            return term.dtype in ("int64", INTEGER) and all(_is_plain(each, loop) for each in arguments)
    return False


def _exactly(term: Expr, variable: str) -> Expr | None:
    # Without a largest integer in what moves; what moves and is made of 64 bits before has one.
    match term:
        case _ if variable not in scalars_of(term) or isinstance(term, IndexValue):
            return cast(term, INTEGER)
        case Cast(operand=IndexValue()):
            return term
        case Apply(primitive=primitive, arguments=arguments):
            parts = [_exactly(each, variable) for each in arguments]
            exact = [part for part in parts if part is not None]
            return apply(primitive, *exact) if len(exact) == len(parts) else None
    return None


def _in_words(position: Expr) -> Expr:
    # Of what is in range 64 bits are enough, whatever its parts are.
    terms, shift = linear_form(position)
    start: Expr = integer(shift)
    parts = (apply("mul", integer(scale), _in_word(term)) for term, scale in terms.items())
    return normalized(reduce(partial(apply, "add"), parts, start))


def _in_word(term: Expr) -> Expr:
    match term:
        case Cast(dtype="integer", operand=operand):
            return _in_word(operand)
        case Apply(primitive=primitive, arguments=arguments):
            return apply(primitive, *map(_in_word, arguments))
    return cast(term, "int64")


def _reads(expr: Expr) -> frozenset[str]:
    return frozenset(read.tensor for read in reads(expr))
