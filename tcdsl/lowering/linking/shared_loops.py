"""Nests that copy rows, as what a loop puts on tapes, in the loop over rows of the nest before.

::

    parallel for i in 0 .. N:                    parallel for i in 0 .. N:
        for j in 0 .. M:                             for j in 0 .. M:
            h[i, j] = tanh(z[i, j])                      h[i, j] = tanh(z[i, j])
    parallel for p in 0 .. N:                        for q in 0 .. M:
        for q in 0 .. M:                                 tape[t, i, q] = h[i, q]
            tape[t, p, q] = h[p, q]

Each is too small to be worth threads, and all of them together take the time of one that is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.ir.build import apply, index, truth
from tcdsl.ir.expressions import Apply, Expr, substitute
from tcdsl.lowering.loopir.independent_rounds import accesses
from tcdsl.lowering.loopir.loops import Branch, Define, Loop, Nest, Node, Store, spans_of
from tcdsl.lowering.loopir.traversal import buffers_written, map_expressions, walk_nodes

__all__ = ["with_shared_loops"]

_MOST_NODES = 96


def with_shared_loops(nests: Sequence[Nest]) -> list[Nest]:
    """``nests``, in order, of which those that copy rows are part of the nest before, where they may be."""
    out: list[Nest] = []
    for nest in nests:
        together = _together(out[-1], nest) if out else None
        if together is None:
            out.append(nest)
        else:
            out[-1] = together
    return out


def _together(first: Nest, second: Nest) -> Nest | None:
    match first.body, second.body:
        case (Loop(kind="parallel") as mine,), (Loop(kind="parallel") as its,):
            pass
        case _:
            return None
    if first.bounds is not None or second.bounds is not None:
        return None
    condition = _where_alike(mine, its)
    if condition is None:
        return None
    if not all(isinstance(node, Branch | Define | Loop | Store) for node in walk_nodes(mine.body)):
        return None
    if not all(isinstance(node, Loop | Store) for node in walk_nodes(its.body)):
        return None
    inside = list(walk_nodes((*mine.body, *its.body)))
    taken = {mine.variable, its.variable}
    if len(inside) > _MOST_NODES or any(isinstance(node, Loop) and node.variable in taken for node in inside):
        return None
    body = map_expressions(its.body, lambda expr: substitute(expr, {index(its.variable): index(mine.variable)}))
    if not _in_own_rows((*mine.body, *body), {*buffers_written(mine.body), *buffers_written(body)}, mine.variable):
        return None
    if condition != truth(True):
        body = (Branch(condition, body),)
    title = "\n".join(dict.fromkeys((*first.title.splitlines(), *second.title.splitlines())))
    loop = replace(mine, body=(*mine.body, *body))
    schedule = tuple(dict.fromkeys((*first.schedule, *second.schedule)))
    work, spans = apply("add", first.work, second.work), spans_of((first, second))
    return Nest(first.name, title, (loop,), work, schedule=schedule, spans=spans)


def _where_alike(mine: Loop, its: Loop) -> Expr | None:
    # The condition on sizes under which the second loop has the steps of the first one, and otherwise none.
    plain = not mine.rounds and not its.rounds and mine.condition is None and its.condition is None
    if not plain or (mine.start, mine.step) != (its.start, its.step):
        return None
    match its.stop:
        case stop if stop == mine.stop:
            return truth(True)
        case Apply(primitive="where", arguments=(condition, stop, none)) if (stop, none) == (mine.stop, its.start):
            return condition
        case _:
            return None


def _in_own_rows(nodes: tuple[Node, ...], written: set[str], variable: str) -> bool:
    # Whether all that is read and written of what one of the nests writes lies in the row of the loop's variable.
    return all(
        any(all(place == index(variable) for place in places) for places in zip(*accesses(nodes, name), strict=True))
        for name in written
    )
