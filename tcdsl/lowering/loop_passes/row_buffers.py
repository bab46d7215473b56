"""Temporaries of which each iteration of a parallel loop has a part of its own, which is memory for a few iterations.

::

    parallel for i in 0 .. N:            parallel for block in 0 .. min(N, 64):
        for j: e[i, j] = exp(x[i, j])        for i in a part of the rows:
        for j: s += e[i, j]                      for j: e[block, j] = exp(x[i, j])
        ...                                      for j: s += e[block, j]

What an iteration leaves behind nobody reads, and the next one finds its memory in the nearest cache.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import Constant, Expr, Local, Read, reads, transform
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.kinds import names_in, nodes_alike
from tcdsl.lowering.loopir.loops import Buffer, Check, Define, Loop, Nest, Node, ProcedureCall, Store, Update
from tcdsl.lowering.loopir.tiles import quotient_up
from tcdsl.lowering.loopir.traversal import expressions, map_expressions, rewritten, walk_nodes
from tcdsl.rewrite.statement_kinds import Named

__all__ = ["with_row_buffers"]

_BLOCKS = 64
"""Parts of a loop: enough for all threads."""


def with_row_buffers(
    nests: Sequence[Nest], buffers: Sequence[Buffer], needed: Set[str], names: FreshNames
) -> tuple[list[Nest], list[Buffer]]:
    """``nests`` that reuse memory of ``buffers``; those that are ``needed`` keep all of their cells."""
    places = Counter(name for nest in nests for _, name in names_in(nest, _touched))
    # Memory that is none of a tensor's is beside loops that are to stay as they are.
    temporary = {
        buffer.name
        for buffer in buffers
        if buffer.kind == "temporary" and buffer.tensors and len(buffer.shape) > 1 and places[buffer.name] == 1
    }
    made: list[Nest] = []
    shorter: set[str] = set()
    for nest in nests:
        own = _own(nest, temporary - needed)
        shorter |= own
        made.append(_in_blocks(nest, own, names) if own else nest)
    most = integer(_BLOCKS)
    return made, [
        replace(each, shape=(apply("min", each.shape[0], most), *each.shape[1:])) if each.name in shorter else each
        for each in buffers
    ]


def _touched(nodes: tuple[Node, ...]) -> Iterator[Named]:
    return (("buffer", name) for name in dict.fromkeys(name for name, _ in _cells(nodes)))


def _cells(nodes: Iterable[Node]) -> Iterator[tuple[str, tuple[Expr, ...]]]:
    # All cells that are read and written; of what procedures touch, nothing is known.
    for node in walk_nodes(nodes):
        if isinstance(node, Store | Update):
            yield node.buffer, node.indices
        if isinstance(node, ProcedureCall):
            yield from ((view.buffer, ()) for view in node.views)
    for expr in expressions(nodes):
        yield from ((read.tensor, read.indices) for read in reads(expr))


def _own(nest: Nest, temporary: Set[str]) -> set[str]:
    # The temporaries of which each iteration of the nest's loop touches a part of its own.
    nodes = nodes_alike(nest)
    loop = nodes[0] if len(nodes) == 1 else None
    if not isinstance(loop, Loop) or loop.kind != "parallel" or loop.start != integer(0) or nest.bounds is not None:
        return set()
    if isinstance(loop.stop, Constant) and loop.stop.value <= _BLOCKS:
        return set()
    if any(isinstance(node, Check) for node in walk_nodes(nodes)):
        # Errors show the positions of loops.
        return set()
    if temporary.isdisjoint(name for _, name in names_in(nest, _touched)):
        return set()
    (loop,) = nest.body
    assert isinstance(loop, Loop)
    found = [(name, indices[:1]) for name, indices in _cells(nest.body) if name in temporary]
    others = {name for name, first in found if first != (index(loop.variable),)}
    return {name for name, _ in found} - others


def _in_blocks(nest: Nest, own: Set[str], names: FreshNames) -> Nest:
    (loop,) = nest.body
    assert isinstance(loop, Loop)
    block, low = index(names.fresh("block")), Local(names.fresh("low"), "int64")
    steps = Local(names.fresh("steps"), "int64")
    count = apply("min", loop.stop, integer(_BLOCKS))

    def cell(part: Expr) -> Expr:
        mine = isinstance(part, Read) and part.tensor in own
        return replace(part, indices=(block, *part.indices[1:])) if isinstance(part, Read) and mine else part

    def stored(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Store | Update) and node.buffer in own:
            return (replace(node, indices=(block, *node.indices[1:])),)
        return (node,)

    body = rewritten(map_expressions(loop.body, lambda expr: transform(expr, cell)), stored)
    stop = apply("min", loop.stop, apply("add", low, steps))
    ends = (
        Define(steps.name, quotient_up(loop.stop, apply("max", count, integer(1))), index=True),
        Define(low.name, apply("mul", block, steps), index=True),
    )
    inner = Loop(loop.variable, low, stop, 1, body)
    return replace(nest, code=(Loop(block.name, integer(0), count, 1, (*ends, inner), "parallel"),))
