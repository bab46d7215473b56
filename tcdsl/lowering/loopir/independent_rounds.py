"""Whether the rounds of a loop may run in any order, and on any thread.

They may if each changes cells that no other one touches. That is so where all that is read and written of a tensor has
the number of the round at the same place: ``rounds[i, j]`` in round ``i``, but not ``a[i]`` and ``a[i - 1]``. What is
read a fixed way from all that is written does not count, as ``a[t, k]`` beside ``a[t + 1, i]``.
"""

from __future__ import annotations

from collections.abc import Iterable, Set

from tcdsl.ir.build import index
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, IndexValue, Read, SizeValue, walk
from tcdsl.lowering.loopir.loops import Loop, Node, Store, Update
from tcdsl.lowering.loopir.traversal import buffers_written, own_expressions, walk_nodes
from tcdsl.polyhedra.linear import linear_form

__all__ = ["accesses", "independent"]


def independent(nodes: tuple[Node, ...], number: str, own: Set[str], *, known: bool = False) -> bool:
    """Whether rounds of ``nodes`` are independent. ``own`` are the buffers that each round makes anew.

    With ``known`` no round touches what another one writes of the others.
    """
    changing = {number, *(node.variable for node in walk_nodes(nodes) if isinstance(node, Loop))}
    for buffer in set(buffers_written(nodes)):
        found = set(accesses(nodes, buffer))
        if buffer in own:
            # A scalar is a register of each thread; an array is in memory that all have.
            if found != {()}:
                return False
            continue
        if known:
            continue
        written = {
            node.indices for node in walk_nodes(nodes) if isinstance(node, Store | Update) and node.buffer == buffer
        }
        met = [cell for cell in found if not all(_are_apart(cell, other, changing) for other in written)]
        if not any(_is_of_round(places, number, changing) for places in zip(*met, strict=True)):
            return False
    return True


def accesses(nodes: Iterable[Node], buffer: str) -> Iterable[tuple[Expr, ...]]:
    """The indices of all that ``nodes`` read and write of ``buffer``."""
    for node in walk_nodes(nodes):
        if isinstance(node, Store | Update) and node.buffer == buffer:
            yield node.indices
        for expr in own_expressions(node):
            yield from (part.indices for part in walk(expr) if isinstance(part, Read) and part.tensor == buffer)


def _are_apart(cell: tuple[Expr, ...], other: tuple[Expr, ...], changing: Set[str]) -> bool:
    # Whether they are so many cells apart along an axis, in all rounds.
    for axis, at in zip(cell, other, strict=True):
        (terms, shift), (others, least) = linear_form(axis), linear_form(at)
        if terms == others and shift != least and all(_is_steady(term, changing) for term in terms):
            return True
    return False


def _is_steady(term: Expr, changing: Set[str]) -> bool:
    parts = list(walk(term))
    steady = all(isinstance(part, IndexValue | SizeValue | Constant | Apply | Cast) for part in parts)
    return steady and not any(getattr(part, "name", "") in changing for part in parts)


def _is_of_round(places: tuple[Expr, ...], number: str, changing: Set[str]) -> bool:
    # The same index everywhere: a multiple of the number, and what stays the same in all rounds.
    first, *others = places
    if any(other != first for other in others):
        return False
    terms, _ = linear_form(first)
    variable = index(number)
    return variable in terms and all(_is_steady(term, changing) for term in terms if term != variable)
