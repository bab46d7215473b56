"""Checks of positions that go step by step, made for both ends of an innermost loop in front of it.

::

    for k in first .. last:               if first + shift is in range and last - 1 + shift is in range:
        p = k + shift                         for k in first .. last:
        check p >= 0 and p < N                    p = k + shift
        y[k] = x[p]                               y[k] = x[p]
                                          else:
                                              for k in first .. last: ... as it was

Where an end is out of range, the loop is as it was, and stops at the same step as before, if it gets there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from functools import partial, reduce

from tcdsl.ir.build import apply, cast, in_range, index, integer
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Cast, Expr, IndexValue, Local, Read, SizeValue, reads, substitute, transform
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Nest, Node
from tcdsl.lowering.loopir.traversal import (
    buffers_written,
    rewritten,
    scalars_of,
    uses_of,
    walk_nodes,
    with_expressions,
)
from tcdsl.polyhedra.linear import linear_form, normalized

__all__ = ["with_ends_checked", "with_ends_of_rounds_checked"]

_MOST_NODES = 64  # of a loop that is written twice


def with_ends_checked(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """``nodes`` with innermost serial loops without such checks, where their ends are in range."""
    nodes = tuple(nodes)
    used = uses_of(nodes)
    return rewritten(nodes, lambda node: (_checked(node, used) if isinstance(node, Loop) else node,))


def with_ends_of_rounds_checked(nests: Iterable[Nest]) -> list[Nest]:
    """``nests`` of a kernel with rounds, the same."""
    return [replace(nest, body=with_ends_checked(nest.body)) for nest in nests]


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
    """That a position is in range at both ends of a loop, if it goes from one to the other by steps of one.

    So few steps as a loop has do not lead from a cell around all integers to another one.
    """
    if check.condition != in_range(check.value, check.extent) or check.value.dtype not in ("int64", INTEGER):
        return None
    position, variable = substitute(check.value, known), index(loop.variable)
    steps = linear_form(position)[0].get(variable, 0) in (0, 1, -1)
    if not steps or not all(_is_steady(each, loop, changing) for each in (position, check.extent)):
        return None
    last = apply("sub", loop.stop, integer(1))
    return [
        in_range(cast(substitute(position, {variable: end}), check.value.dtype), check.extent)
        for end in (loop.start, last)
    ]


def _is_steady(position: Expr, loop: Loop, changing: Set[str]) -> bool:
    # Whether only the number of the step moves it.
    terms = [_whole(term) for term in linear_form(position)[0] if term != index(loop.variable)]
    names = frozenset[str]().union(*(scalars_of(term) | _reads(term) for term in terms))
    plain = all(isinstance(term, IndexValue | Local | Read | SizeValue) for term in terms)
    return plain and names.isdisjoint({loop.variable, *changing})


def _whole(term: Expr) -> Expr:
    return term.operand if isinstance(term, Cast) and term.dtype == INTEGER else term


def _in_words(position: Expr) -> Expr:
    # Of what is in range 64 bits are enough, whatever its parts are.
    terms, shift = linear_form(position)
    start: Expr = integer(shift)
    parts = (apply("mul", integer(scale), cast(_whole(term), "int64")) for term, scale in terms.items())
    return normalized(reduce(partial(apply, "add"), parts, start))


def _reads(expr: Expr) -> frozenset[str]:
    return frozenset(read.tensor for read in reads(expr))
