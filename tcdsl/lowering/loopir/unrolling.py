"""Short loops of constant length, written out: LLVM vectorizes the loop around them only if it sees no other."""

from __future__ import annotations

from collections.abc import Iterable

from tcdsl.ir.build import index, integer
from tcdsl.ir.expressions import Constant, walk
from tcdsl.lowering.loopir.loops import Accumulate, Loop, Node
from tcdsl.lowering.loopir.traversal import renamed, rewritten, walk_nodes

__all__ = ["unrolled"]

# Nodes of a loop that is written out.
_LARGEST = 64
# Steps, and parts of expressions in all of them, of a sum that LLVM unrolls itself before it vectorizes.
_STEPS, _PARTS = 10, 160


def unrolled(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """``nodes`` without serial loops whose ends are constants, innermost first, as long as that stays short."""
    return rewritten(nodes, lambda node: _loop(node) if isinstance(node, Loop) else (node,))


def _loop(loop: Loop) -> tuple[Node, ...]:
    if loop.kind == "parallel" or not (isinstance(loop.start, Constant) and isinstance(loop.stop, Constant)):
        return (loop,)
    steps = range(int(loop.start.value), int(loop.stop.value), loop.step)
    if len(steps) * sum(1 for _ in walk_nodes(loop.body)) > _LARGEST or _unrolled_later(loop, len(steps)):
        return (loop,)
    return tuple(node for step in steps for node in renamed(loop.body, {index(loop.variable): integer(step)}))


def _unrolled_later(loop: Loop, steps: int) -> bool:
    # Compiling it takes a fraction of the time.
    if steps < _STEPS or len(loop.body) != 1 or not isinstance(loop.body[0], Accumulate):
        return False
    return steps * sum(1 for _ in walk(loop.body[0].value)) <= _PARTS
