"""Nests that store where the parallel loop of the next one begins and ends in this round, and how much work it is."""

from __future__ import annotations

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr
from tcdsl.lowering.loopir.loops import Loop, Nest, Store
from tcdsl.lowering.loopir.traversal import expressions
from tcdsl.lowering.program_passes.effort import weight

__all__ = ["bounds_nest"]


def bounds_nest(buffer: str, loop: Loop, nest: Nest) -> Nest:
    """The nest that writes the cells 1 to 3 of ``buffer`` for ``nest``, whose only node is ``loop``."""
    begin, end = _ends(loop)
    work = apply("mul", nest.work, integer(weight(expressions(nest.body))))
    nodes = tuple(Store(buffer, (integer(k),), value) for k, value in enumerate((begin, end, work), 1))
    return Nest(buffer, f"bounds of {nest.name}", nodes, integer(len(nodes)))


def _ends(loop: Loop) -> tuple[Expr, Expr]:
    begin, end = loop.start, apply("max", loop.stop, loop.start)
    if loop.step == 1:
        return begin, end
    # Its steps are counted.
    steps = apply("floor_div", apply("add", apply("sub", end, begin), integer(loop.step - 1)), integer(loop.step))
    return integer(0), steps
