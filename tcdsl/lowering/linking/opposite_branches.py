"""Branches on a condition and on its opposite, one after the other: ``if c: ...`` and ``if not c: ...`` become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.ir.build import apply
from tcdsl.ir.expressions import Expr, reads
from tcdsl.lowering.loopir.loops import Branch, Node
from tcdsl.lowering.loopir.traversal import changed_names, scalars_of, with_bodies

__all__ = ["with_opposite_branches_joined"]


def with_opposite_branches_joined(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """``nodes`` with both arms of a test in one branch, so that it is made once.

    As two branches the second would have to wait for what the first one makes.
    """
    out: list[Node] = []
    for given in nodes:
        node = with_bodies(given, with_opposite_branches_joined)
        match out[-1:], node:
            case [Branch(otherwise=()) as first], Branch(otherwise=()) if _are_opposite(first, node):
                out[-1] = replace(first, otherwise=node.body)
            case _:
                out.append(node)
    return tuple(out)


def _are_opposite(first: Branch, second: Branch) -> bool:
    condition = first.condition
    if condition != apply("not_", second.condition) and second.condition != apply("not_", condition):
        return False
    return changed_names(first.body).isdisjoint(_names(condition))


def _names(condition: Expr) -> set[str]:
    return {*scalars_of(condition), *(read.tensor for read in reads(condition))}
