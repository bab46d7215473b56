"""Nests that store where the parallel loop of the next one begins and ends in this round, and how much work it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr
from tcdsl.lowering.loopir.loops import Loop, Nest, Node, Store
from tcdsl.lowering.loopir.traversal import expressions, rewritten
from tcdsl.lowering.program_passes.effort import weight

__all__ = ["bounds_nest", "with_bounds"]


def bounds_nest(buffer: str, loop: Loop, nest: Nest) -> Nest:
    """The nest that writes the cells 1 to 3 of ``buffer`` for ``nest``, whose only node is ``loop``."""
    begin, end = _ends(loop)
    work = apply("mul", nest.work, integer(weight(expressions(nest.body))))
    nodes = tuple(Store(buffer, (integer(k),), value) for k, value in enumerate((begin, end, work), 1))
    return Nest(buffer, f"bounds of {nest.name}", nodes, integer(len(nodes)))


def with_bounds(nodes: tuple[Node, ...], loops: Mapping[str, Loop]) -> tuple[Node, ...]:
    """``nodes``, in which the buffers of ``loops`` get the bounds of these: they have taken the place of others."""

    def rule(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Store) and node.buffer in loops and node.indices in _CELLS:
            return (replace(node, value=_ends(loops[node.buffer])[_CELLS.index(node.indices)]),)
        return (node,)

    return rewritten(nodes, rule)


_CELLS = [(integer(1),), (integer(2),)]


def _ends(loop: Loop) -> tuple[Expr, Expr]:
    begin, end = loop.start, apply("max", loop.stop, loop.start)
    if loop.step == 1:
        return begin, end
    # Its steps are counted.
    steps = apply("floor_div", apply("add", apply("sub", end, begin), integer(loop.step - 1)), integer(loop.step))
    return integer(0), steps
