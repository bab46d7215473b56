"""Innermost loops whose iterations do not depend on each other: they may run in lanes.

Each iteration must have cells of its own, written and read nowhere else in the loop, and scalars of its own. Sums in
scalars stay serial loops, and so do loops with checks, of which the first that fails is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tcdsl.ir.build import index
from tcdsl.ir.expressions import Expr, Local, Read, index_variables, walk
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Loop, Node, Store, Update
from tcdsl.lowering.loopir.traversal import expressions, walk_nodes
from tcdsl.polyhedra.linear import linear_form

__all__ = ["with_vector_loops"]


def with_vector_loops(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """``nodes``, a whole nest, with the kind of all serial loops changed that may run in lanes."""
    return _marked(nodes, Counter(_scalars_read(nodes)))


def _marked(nodes: Iterable[Node], uses: Counter[str]) -> tuple[Node, ...]:
    out: list[Node] = []
    for node in nodes:
        match node:
            case Loop(body=body) if any(isinstance(inner, Loop) for inner in walk_nodes(body)):
                out.append(replace(node, body=_marked(body, uses)))
            case Loop(kind="serial") if _is_independent(node, uses):
                out.append(replace(node, kind="vector"))
            case Branch(body=body, otherwise=otherwise):
                out.append(replace(node, body=_marked(body, uses), otherwise=_marked(otherwise, uses)))
            case _:
                out.append(node)
    return tuple(out)


def _is_independent(loop: Loop, uses: Counter[str]) -> bool:
    body = loop.body
    if not all(isinstance(node, Define | Accumulate | Store | Update | Branch) for node in walk_nodes(body)):
        return False
    assigned = {node.name for node in walk_nodes(body) if isinstance(node, Define | Accumulate)}
    inside = Counter(_scalars_read(body))
    if any(uses[name] > inside[name] for name in assigned) or _defined_first(body, assigned, frozenset()) is None:
        return False
    written: dict[str, tuple[Expr, ...]] = {}
    for node in walk_nodes(body):
        if isinstance(node, Store | Update) and written.setdefault(node.buffer, node.indices) != node.indices:
            return False
    for expr in expressions(body):
        for part in walk(expr):
            if isinstance(part, Read) and written.get(part.tensor, part.indices) != part.indices:
                return False
    return all(any(_tells_apart(axis, loop.variable, assigned) for axis in cell) for cell in written.values())


def _defined_first(nodes: Iterable[Node], assigned: set[str], known: frozenset[str]) -> frozenset[str] | None:
    # The scalars that hold a value of this iteration behind the nodes; None if one is read that may hold an earlier
    # iteration's.
    for node in nodes:
        if isinstance(node, Branch):
            if not _own({*_locals(node.condition)}, assigned, known):
                return None
            ends = [_defined_first(part, assigned, known) for part in (node.body, node.otherwise)]
            if ends[0] is None or ends[1] is None:
                return None
            known = ends[0] & ends[1]
            continue
        read = {name for expr in expressions((node,)) for name in _locals(expr)}
        if isinstance(node, Accumulate):
            read.add(node.name)
        if not _own(read, assigned, known):
            return None
        if isinstance(node, Define):
            known |= {node.name}
    return known


def _own(read: set[str], assigned: set[str], known: frozenset[str]) -> bool:
    return read & assigned <= known


def _tells_apart(axis: Expr, variable: str, assigned: set[str]) -> bool:
    # Whether every iteration has another value of the index: a multiple of the variable plus what does not change.
    terms, _ = linear_form(axis)
    if not terms.pop(index(variable), 0):
        return False
    return not any(
        variable in index_variables(term)
        or any(isinstance(part, Read) or (isinstance(part, Local) and part.name in assigned) for part in walk(term))
        for term in terms
    )


def _locals(expr: Expr) -> Iterator[str]:
    for part in walk(expr):
        if isinstance(part, Local):
            yield part.name


def _scalars_read(nodes: Iterable[Node]) -> Iterator[str]:
    for expr in expressions(nodes):
        yield from _locals(expr)
