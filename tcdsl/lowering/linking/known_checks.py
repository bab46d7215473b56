"""Checks of what has been checked before: in ``a[p], a[q] = a[q], a[p]`` each index is tested once.

Statements check their indices one by one. What has not changed since then is in range still.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from tcdsl.ir.expressions import Expr, Local, reads, transform
from tcdsl.lowering.loopir.loops import Branch, Check, Define, Loop, Node
from tcdsl.lowering.loopir.traversal import changed_names, scalars_of, unchanged, with_bodies

__all__ = ["without_known_checks"]

# Conditions that hold, and names that are others, each with the names of which it is made.
_Held = dict[Expr, tuple[bool, frozenset[str]]]
_Copies = dict[str, tuple[Expr, frozenset[str]]]


def without_known_checks(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """``nodes`` without checks that cannot fail where they stand, because they would have failed before."""
    return _block(nodes, {}, {})


def _block(nodes: Sequence[Node], held: _Held, copies: _Copies) -> tuple[Node, ...]:
    held, copies = dict(held), dict(copies)
    out: list[Node] = []
    for node in nodes:
        changed = changed_names((node,))
        left, kept = unchanged(held, changed), unchanged(copies, changed)
        match node:
            case Check(condition=condition):
                condition = _with(condition, copies)
                if condition in held:
                    continue
                left[condition] = True, _names(condition)
            case Define(name=name, value=Local() as other):
                # Indices are kept under names of their own.
                source = _with(other, copies)
                kept[name] = source, _names(source) | {name}
            case Loop():
                # Nothing is known of what its other rounds change.
                node = with_bodies(node, partial(_block, held=left, copies=kept))
            case Branch():
                node = with_bodies(node, partial(_block, held=held, copies=copies))
            case _:
                pass
        held, copies = left, kept
        out.append(node)
    return tuple(out)


def _with(expr: Expr, copies: Mapping[str, tuple[Expr, frozenset[str]]]) -> Expr:
    def rule(part: Expr) -> Expr:
        found = copies.get(part.name) if isinstance(part, Local) else None
        return part if found is None else found[0]

    return transform(expr, rule) if copies else expr


def _names(expr: Expr) -> frozenset[str]:
    return scalars_of(expr) | {read.tensor for read in reads(expr)}
