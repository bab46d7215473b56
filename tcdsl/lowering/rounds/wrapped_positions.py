"""Positions that wrap around once at most, without division: neighbours on a ring.

::

    for i in 0 .. N:                       for i in 0 .. N:
        y[i] = x[(i + 1) % N]                  y[i] = x[i + 1 - N if i + 1 >= N else i + 1]

A division takes longer than most of what a round does. Where the bounds of loops say that the position is at most one
length away, a choice does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from tcdsl.ir.build import apply, integer
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Apply, Constant, Expr, transform, walk
from tcdsl.lowering.loopir.integer_facts import IntegerFacts, added, places
from tcdsl.lowering.loopir.loops import Nest, Node
from tcdsl.lowering.loopir.traversal import expressions, with_bodies, with_expressions

__all__ = ["with_wrapped_positions"]


def with_wrapped_positions(nests: Sequence[Nest], facts: IntegerFacts) -> list[Nest]:
    """``nests`` with choices for such remainders; ``facts`` are what is known of sizes."""
    return [
        replace(nest, code=_block(nest.body, facts.copy()))
        if any(_is_remainder(part) for expr in expressions(nest.body) for part in walk(expr))
        else nest
        for nest in nests
    ]


def _block(nodes: Sequence[Node], facts: IntegerFacts) -> tuple[Node, ...]:
    out: list[Node] = []
    for node, inside in places(nodes, facts):
        here = with_expressions(node, lambda expr: transform(expr, partial(_chosen, facts=facts)))
        out.append(with_bodies(here, partial(_next_block, inside=iter(inside))))
    return tuple(out)


def _next_block(nodes: Sequence[Node], inside: Iterator[IntegerFacts]) -> tuple[Node, ...]:
    return _block(nodes, next(inside))


def _is_remainder(expr: Expr) -> bool:
    # What constants divide takes no division.
    match expr:
        case Apply(primitive="mod", arguments=(_, length)) if expr.dtype in ("int64", INTEGER):
            return not isinstance(length, Constant)
    return False


def _chosen(expr: Expr, facts: IntegerFacts) -> Expr:
    if not (isinstance(expr, Apply) and _is_remainder(expr)):
        return expr
    position, length = expr.arguments
    at, whole = facts.sum_of(position), facts.sum_of(length)
    if not facts.implies(added(whole, {"": -1})):
        return expr
    found = position
    if not facts.implies(added(added(whole, at, -1), {"": -1})):
        if not facts.implies(added(added(added(whole, whole), at, -1), {"": -1})):
            return expr
        found = apply("where", apply("ge", position, length), apply("sub", position, length), position)
    if facts.implies(at):
        return found
    if not facts.implies(added(at, whole)):
        return expr
    return apply("where", apply("lt", position, integer(0)), apply("add", position, length), found)
