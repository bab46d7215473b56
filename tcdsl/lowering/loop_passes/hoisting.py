"""Scalars and checks that do not change in a loop, moved in front of it.

A data index that only an outer variable determines (``table[ids[i], d]`` along d) is then read and checked once per
row. They run only if the loop has a point, because they stand for its first one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tcdsl.ir.build import apply, truth
from tcdsl.ir.expressions import Expr, Local, Read, index_variables, walk
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Node
from tcdsl.lowering.loopir.traversal import buffers_written, expressions, walk_nodes

__all__ = ["hoisted"]


def hoisted(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """``nodes`` with what their loops repeat moved in front of them; never out of a parallel loop."""
    out: list[Node] = []
    for node in nodes:
        match node:
            case Loop():
                out.extend(_loop(replace(node, body=hoisted(node.body))))
            case Branch():
                out.append(replace(node, body=hoisted(node.body), otherwise=hoisted(node.otherwise)))
            case _:
                out.append(node)
    return tuple(out)


def _loop(loop: Loop) -> tuple[Node, ...]:
    if loop.kind == "parallel":
        return (loop,)
    body, condition = loop.body, None
    if len(body) == 1 and isinstance(body[0], Branch) and not body[0].otherwise:
        # What an inner loop moved out stands behind the test that it has a point.
        condition, body = body[0].condition, body[0].body
        if _depends(condition, loop.variable, frozenset()):
            return (loop,)
    written = _written(loop.body)
    changing = _assigned(loop.body)
    moved: list[Node] = []
    for node in body:
        if not isinstance(node, Define | Check):
            break
        stays = frozenset(changing) - {other.name for other in moved if isinstance(other, Define)}
        if isinstance(node, Define) and changing[node.name] == 1:
            stays -= {node.name}
        elif isinstance(node, Define):
            break
        if any(_depends(expr, loop.variable, stays) or _reads_any(expr, written) for expr in expressions((node,))):
            break
        moved.append(node)
    if not any(isinstance(node, Check) or any(_reads_any(e, None) for e in expressions((node,))) for node in moved):
        return (loop,)
    rest = body[len(moved) :]
    some: Expr = apply("lt", loop.start, loop.stop)
    if condition is not None:
        some = apply("and_", some, condition)
    nodes = (*moved, replace(loop, body=tuple(rest)))
    return nodes if some == truth(True) else (Branch(some, nodes),)


def _depends(expr: Expr, variable: str, names: Iterable[str]) -> bool:
    return variable in index_variables(expr) or any(
        isinstance(node, Local) and node.name in names for node in walk(expr)
    )


def _reads_any(expr: Expr, buffers: frozenset[str] | None) -> bool:
    return any(isinstance(node, Read) and (buffers is None or node.tensor in buffers) for node in walk(expr))


def _written(nodes: Iterable[Node]) -> frozenset[str]:
    return frozenset(buffers_written(nodes))


def _assigned(nodes: Iterable[Node]) -> dict[str, int]:
    # How often each scalar is assigned.
    counts: dict[str, int] = {}
    for node in walk_nodes(nodes):
        if isinstance(node, Define | Accumulate):
            counts[node.name] = counts.get(node.name, 0) + 1
    return counts
