"""Scalars and checks that do not change in a loop, moved in front of it.

A data index that only an outer variable determines (``table[ids[i], d]`` along d) is then read and checked once per
row. They run only if the loop has a point, because they stand for its first one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from tcdsl.ir.build import apply, truth
from tcdsl.ir.expressions import Expr, reads
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Node
from tcdsl.lowering.loopir.traversal import buffers_written, own_expressions, rewritten, scalars_of, walk_nodes

__all__ = ["hoisted"]


def hoisted(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """``nodes`` with what their loops repeat moved in front of them; never out of a parallel loop."""
    return rewritten(nodes, lambda node: _loop(node) if isinstance(node, Loop) else (node,))


def _loop(loop: Loop) -> tuple[Node, ...]:
    if loop.kind == "parallel":
        return (loop,)
    body, condition = loop.body, None
    if len(body) == 1 and isinstance(body[0], Branch) and not body[0].otherwise:
        # What an inner loop moved out stands behind the test that it has a point.
        condition, body = body[0].condition, body[0].body
        if loop.variable in scalars_of(condition):
            return (loop,)
    written = set(buffers_written(loop.body))
    changing = Counter(node.name for node in walk_nodes(loop.body) if isinstance(node, Define | Accumulate))
    moved: list[Node] = []
    for node in body:
        if not isinstance(node, Define | Check):
            break
        stays = {loop.variable, *changing} - {other.name for other in moved if isinstance(other, Define)}
        if isinstance(node, Define):
            if changing[node.name] > 1:
                break
            stays -= {node.name}
        if any(scalars_of(expr) & stays or written & _read(expr) for expr in own_expressions(node)):
            break
        moved.append(node)
    if not any(isinstance(node, Check) or any(map(_read, own_expressions(node))) for node in moved):
        return (loop,)
    rest = body[len(moved) :]
    some: Expr = apply("lt", loop.start, loop.stop)
    if condition is not None:
        some = apply("and_", some, condition)
    nodes = (*moved, replace(loop, body=tuple(rest)))
    return nodes if some == truth(True) else (Branch(some, nodes),)


def _read(expr: Expr) -> set[str]:
    return {read.tensor for read in reads(expr)}
