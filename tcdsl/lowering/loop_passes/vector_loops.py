"""Innermost loops whose iterations do not depend on each other: they may run in lanes.

Each iteration must have cells of its own, written and read nowhere else in the loop, and scalars of its own. Sums in
scalars stay serial loops, and so do loops with checks, of which the first that fails is reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tcdsl.ir.build import index
from tcdsl.ir.expressions import Expr, reads
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Define, Loop, Node, Store, Update
from tcdsl.lowering.loopir.traversal import expressions, own_expressions, rewritten, scalars_of, walk_nodes
from tcdsl.polyhedra.linear import linear_form

__all__ = ["with_vector_loops"]


def with_vector_loops(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """``nodes``, a whole nest, with the kind of all serial loops changed that may run in lanes."""
    uses = _scalars_read(nodes)

    def rule(node: Node) -> tuple[Node, ...]:
        if not isinstance(node, Loop) or node.kind != "serial" or not _is_independent(node, uses):
            return (node,)
        return (replace(node, kind="vector"),)

    return rewritten(nodes, rule)


def _is_independent(loop: Loop, uses: Counter[str]) -> bool:
    body = loop.body
    if not all(isinstance(node, Define | Accumulate | Store | Update | Branch) for node in walk_nodes(body)):
        return False
    assigned = {node.name for node in walk_nodes(body) if isinstance(node, Define | Accumulate)}
    inside = _scalars_read(body)
    if any(uses[name] > inside[name] for name in assigned) or _defined_first(body, assigned, frozenset()) is None:
        return False
    written: dict[str, tuple[Expr, ...]] = {}
    for node in walk_nodes(body):
        if isinstance(node, Store | Update) and written.setdefault(node.buffer, node.indices) != node.indices:
            return False
    for expr in expressions(body):
        if any(written.get(read.tensor, read.indices) != read.indices for read in reads(expr)):
            return False
    return all(any(_tells_apart(axis, loop.variable, assigned) for axis in cell) for cell in written.values())


def _defined_first(nodes: Iterable[Node], assigned: set[str], known: frozenset[str]) -> frozenset[str] | None:
    # The scalars that hold a value of this iteration behind the nodes; None if one is read that may hold an earlier
    # iteration's.
    for node in nodes:
        read = set[str]().union(*map(scalars_of, own_expressions(node)))
        if isinstance(node, Accumulate):
            read.add(node.name)
        if not read & assigned <= known:
            return None
        if isinstance(node, Define):
            known |= {node.name}
        if isinstance(node, Branch):
            ends = [_defined_first(part, assigned, known) for part in (node.body, node.otherwise)]
            if ends[0] is None or ends[1] is None:
                return None
            known = ends[0] & ends[1]
    return known


def _tells_apart(axis: Expr, variable: str, assigned: set[str]) -> bool:
    # Whether every iteration has another value of the index: a multiple of the variable plus what does not change.
    terms, _ = linear_form(axis)
    if not terms.pop(index(variable), 0):
        return False
    return not any(scalars_of(term) & {variable, *assigned} or any(True for _ in reads(term)) for term in terms)


def _scalars_read(nodes: Iterable[Node]) -> Counter[str]:
    # In how many expressions each scalar stands.
    return Counter(name for expr in expressions(nodes) for name in scalars_of(expr))
