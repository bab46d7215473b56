"""Scalars and checks that do not change in a loop, moved in front of it.

A data index that only an outer variable determines (``table[ids[i], d]`` along d) is then read and checked once per
row. They run only if the loop has a point, because they stand for its first one. A parallel loop over single cells is
cut into blocks for them, each of which reads and checks them once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from tcdsl.ir.build import apply, index, integer, truth
from tcdsl.ir.expressions import Expr, Local, reads
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Node, ProcedureCall
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.loopir.traversal import buffers_written, own_expressions, rewritten, scalars_of, walk_nodes

__all__ = ["hoisted"]


_BLOCK = 4096  # Cells of a parallel loop that share what has moved.


def hoisted(nodes: Iterable[Node], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with what their loops repeat moved in front of them; never out of a parallel loop."""
    out = rewritten(nodes, lambda node: _loop(node) if isinstance(node, Loop) else (node,))
    match out:
        case (Loop(kind="parallel", step=1) as loop,):
            return _in_blocks(loop, names)
    return out


def _in_blocks(loop: Loop, names: FreshNames) -> tuple[Node, ...]:
    alone = replace(loop, kind="serial")
    if any(isinstance(node, Loop | ProcedureCall) for node in walk_nodes(loop.body)) or _loop(alone) == (alone,):
        return (loop,)
    low, high = Local(names.fresh("low"), "int64"), Local(names.fresh("high"), "int64")
    nodes = _loop(replace(alone, start=low, stop=high))
    number, length = names.fresh("block"), integer(_BLOCK)
    first = apply("add", loop.start, apply("mul", index(number), length))
    ends = (
        Define(low.name, first, index=True),
        Define(high.name, apply("min", loop.stop, apply("add", low, length)), index=True),
    )
    blocks = quotient_up(apply("sub", loop.stop, loop.start), length)
    return (Loop(number, integer(0), blocks, 1, (*ends, *nodes), "parallel"),)


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
