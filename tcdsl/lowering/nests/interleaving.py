"""Rows of several phases in one loop: neighbouring cells are stored together, which LLVM turns into whole vectors.

::

    for q in 0 .. 5: d[2*q] = f(q)             for q in 0 .. 4: d[2*q] = f(q); d[2*q + 1] = g(q)
    for q in 0 .. 4: d[2*q + 1] = g(q)         and what is left over of each
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial, reduce

from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import Constant, Expr, Local, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Branch, Define, Loop, Node
from tcdsl.lowering.loopir.traversal import map_expressions, walk_nodes

__all__ = ["interleaved", "skipping"]

# Nodes of the bodies that are put into one loop.
_LARGEST = 96


def interleaved(rows: Sequence[Sequence[Node]], variable: str, names: FreshNames) -> tuple[Node, ...]:
    """The nodes of ``rows``, which write different cells; the last loops along ``variable`` as one, if all have one."""
    loops = [_last_loop(nodes, variable) for nodes in rows]
    found = [loop for loop in loops if loop is not None]
    if len(rows) < 2 or len(found) < len(rows) or sum(_count(loop) for loop in found) > _LARGEST:
        return tuple(node for nodes in rows for node in nodes)
    before = [node for nodes in rows for node in nodes[:-1]]
    body = tuple(node for loop in found for node in loop.body)
    if len({(loop.start, loop.stop) for loop in found}) == 1:
        return (*before, replace(found[0], body=body))
    starts = [_named(loop.start, "begin", before, names) for loop in found]
    stops = [
        _named(apply("max", loop.stop, start), "end", before, names) for loop, start in zip(found, starts, strict=True)
    ]
    low = _named(reduce(partial(apply, "max"), starts), "both", before, names)
    high = _named(apply("max", reduce(partial(apply, "min"), stops), low), "both", before, names)
    for loop, start, stop in zip(found, starts, stops, strict=True):
        _left_over(loop, (start, stop), (low, high), before, names)
    return (*before, Loop(variable, low, high, 1, body))


def _named(value: Expr, hint: str, out: list[Node], names: FreshNames) -> Expr:
    if isinstance(value, Constant | Local):
        return value
    name = names.fresh(hint)
    out.append(Define(name, value, index=True))
    return Local(name, value.dtype)


def _last_loop(nodes: Sequence[Node], variable: str) -> Loop | None:
    """The loop at the end of the row, one that a condition guards as one that may be empty."""
    match nodes:
        case [*_, Loop(step=1) as loop] if loop.variable == variable:
            return None if any(isinstance(node, Loop) for node in walk_nodes(loop.body)) else loop
        case [*_, Branch(condition=condition, body=body, otherwise=())]:
            inner = _last_loop(body, variable) if len(body) == 1 else None
            if inner is None:
                return None
            stop = apply("where", condition, inner.stop, inner.start)
            return Loop(variable, inner.start, stop, 1, inner.body)
        case _:
            return None


def _left_over(
    loop: Loop, own: tuple[Expr, Expr], common: tuple[Expr, Expr], out: list[Node], names: FreshNames
) -> None:
    """The positions before the common ones and behind them, which may lie anywhere if there are none."""
    start, stop = own
    first = _named(apply("min", common[0], stop), "cut", out, names)
    skipped = _named(apply("sub", apply("max", apply("min", common[1], stop), first), first), "skipped", out, names)
    out.append(skipping(replace(loop, start=start, stop=stop), first, skipped, "rest", names))


def skipping(loop: Loop, first: Expr, skipped: Expr, hint: str, names: FreshNames) -> Loop:
    """``loop``, which counts by one, without ``skipped`` positions from ``first`` on: one loop over both ends."""
    step, position = names.fresh(hint), Local(names.fresh(loop.variable), "int64")
    jump = apply("where", apply("lt", index(step), first), integer(0), skipped)
    body = map_expressions(loop.body, lambda expr: substitute(expr, {index(loop.variable): position}))
    define = Define(position.name, apply("add", index(step), jump), index=True)
    return Loop(step, loop.start, apply("sub", loop.stop, skipped), 1, (define, *body), seldom=loop.seldom)


def _count(loop: Loop) -> int:
    return sum(1 for _ in walk_nodes(loop.body))
