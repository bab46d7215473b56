"""Nodes, visited and rewritten: every pass over loops goes through a nest with these.

A rule for nodes sees what stands inside of a node rewritten already, and may give none or several in its place::

    rewritten(nodes, lambda node: () if isinstance(node, Check) else (node,))      # without checks
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from typing import Any, TypeVar

from tcdsl.ir.expressions import Expr, IndexValue, Local, SizeValue, reads, substitute, walk
from tcdsl.ir.nodes import replace
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    BufferView,
    Check,
    Define,
    LocalBuffer,
    Loop,
    Node,
    Procedure,
    ProcedureCall,
    Store,
    Update,
)
from tcdsl.polyhedra.linear import normalized

__all__ = [
    "blocks",
    "buffers_read",
    "buffers_written",
    "changed_names",
    "expressions",
    "map_expressions",
    "own_expressions",
    "renamed",
    "rewritten",
    "scalars_of",
    "serial",
    "size_extents",
    "sizes_of",
    "unchanged",
    "uses_of",
    "walk_nodes",
    "with_bodies",
    "with_expressions",
]

Key = TypeVar("Key")
Held = TypeVar("Held")
Made = TypeVar("Made")


def rewritten(nodes: Iterable[Node], rule: Callable[[Node], Iterable[Node]]) -> tuple[Node, ...]:
    """``nodes`` with what ``rule`` makes of each of them, innermost first."""
    return tuple(made for node in nodes for made in rule(with_bodies(node, lambda body: rewritten(body, rule))))


def with_bodies(node: Node, rule: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> Node:
    """``node`` with ``rule`` applied to the nodes directly inside of it: a loop's body, or both of a branch."""
    match node:
        case Loop(body=body):
            return _with(node, body=_kept(body, rule(body)))
        case Branch(body=body, otherwise=otherwise):
            return _with(node, body=_kept(body, rule(body)), otherwise=_kept(otherwise, rule(otherwise)))
        case _:
            return node


def _kept(old: tuple[Held, ...], new: tuple[Held, ...]) -> tuple[Held, ...]:
    return old if len(old) == len(new) and all(map(is_, old, new)) else new


def _with(node: Made, **parts: Any) -> Made:
    # Most passes change few nodes.
    if all(getattr(node, name) is part for name, part in parts.items()):
        return node
    return replace(node, **parts)


def with_expressions(
    node: Node,
    value: Callable[[Expr], Expr],
    cell: Callable[[Expr], Expr] | None = None,
    bound: Callable[[Expr], Expr] | None = None,
) -> Node:
    """``node`` with ``value`` applied to its own expressions, those of nodes inside of it left as they are.

    ``cell`` is applied to indices instead, ``bound`` to bounds of loops and to extents.
    """
    cell, bound = cell or value, bound or value
    match node:
        case Loop():
            condition = None if node.condition is None else value(node.condition)
            return _with(node, start=bound(node.start), stop=bound(node.stop), condition=condition)
        case Branch():
            return _with(node, condition=value(node.condition))
        case Define() | Accumulate():
            return _with(node, value=value(node.value))
        case Store() | Update():
            indices = _kept(node.indices, tuple(map(cell, node.indices)))
            return _with(node, indices=indices, value=value(node.value))
        case Check():
            return _with(node, condition=value(node.condition), value=value(node.value), extent=value(node.extent))
        case LocalBuffer():
            return _with(node, shape=_kept(node.shape, tuple(map(bound, node.shape))))
        case ProcedureCall():
            reads, writes = (tuple(_view(view, cell, bound) for view in part) for part in (node.reads, node.writes))
            return replace(node, reads=reads, writes=writes)


def _view(view: BufferView, cell: Callable[[Expr], Expr], bound: Callable[[Expr], Expr]) -> BufferView:
    extents = tuple(None if extent is None else bound(extent) for extent in view.extents)
    return BufferView(view.buffer, tuple(map(cell, view.starts)), extents)


def map_expressions(nodes: Iterable[Node], rule: Callable[[Expr], Expr]) -> tuple[Node, ...]:
    """``nodes`` with ``rule`` applied to every expression in them, those of nested nodes included."""
    return rewritten(nodes, lambda node: (with_expressions(node, rule),))


def walk_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Every node in ``nodes``, outermost first."""
    # A generator for each body would hand on each node as many times as there are loops around it.
    left = [*nodes][::-1]
    while left:
        node = left.pop()
        yield node
        if isinstance(node, Loop):
            left.extend(node.body[::-1])
        elif isinstance(node, Branch):
            left.extend(node.otherwise[::-1])
            left.extend(node.body[::-1])


def blocks(nodes: Sequence[Node]) -> Iterator[Sequence[Node]]:
    """``nodes``, and the bodies of all loops and branches in them."""
    yield nodes
    for node in nodes:
        match node:
            case Loop(body=body):
                yield from blocks(body)
            case Branch(body=body, otherwise=otherwise):
                yield from blocks(body)
                yield from blocks(otherwise)
            case _:
                pass


def own_expressions(node: Node) -> Iterator[Expr]:
    """The expressions of ``node``, without those of nodes inside of it."""
    match node:
        case Loop(start=start, stop=stop, condition=condition):
            yield from (start, stop) if condition is None else (start, stop, condition)
        case Branch(condition=condition):
            yield condition
        case Define(value=value) | Accumulate(value=value):
            yield value
        case Store(indices=indices, value=value) | Update(indices=indices, value=value):
            yield from (*indices, value)
        case Check(condition=condition, value=value, extent=extent):
            yield from (condition, value, extent)
        case LocalBuffer(shape=shape):
            yield from shape
        case ProcedureCall():
            for view in node.views:
                yield from (*view.starts, *(extent for extent in view.extents if extent is not None))


def expressions(nodes: Iterable[Node]) -> Iterator[Expr]:
    """Every expression in ``nodes``."""
    for node in walk_nodes(nodes):
        yield from own_expressions(node)


def scalars_of(expr: Expr) -> frozenset[str]:
    """The names of the loop variables and the scalar locals in ``expr``."""
    return frozenset(node.name for node in walk(expr) if isinstance(node, IndexValue | Local))


def uses_of(nodes: Iterable[Node]) -> Counter[str]:
    """How many expressions in ``nodes`` have each loop variable and each scalar."""
    return Counter(name for expr in expressions(nodes) for name in scalars_of(expr))


def buffers_read(nodes: Iterable[Node]) -> Iterator[str]:
    """The buffers whose cells ``nodes`` read; what a call is given to write counts, because it may read it too."""
    for node in walk_nodes(nodes):
        if isinstance(node, ProcedureCall):
            yield from (view.buffer for view in node.views)
        for expr in own_expressions(node):
            yield from [read.tensor for read in reads(expr)]


def buffers_written(nodes: Iterable[Node]) -> Iterator[str]:
    """The buffers of which ``nodes`` write cells."""
    for node in walk_nodes(nodes):
        match node:
            case Store(buffer=buffer) | Update(buffer=buffer):
                yield buffer
            case ProcedureCall(writes=writes):
                yield from (view.buffer for view in writes)
            case _:
                pass


def changed_names(nodes: tuple[Node, ...]) -> set[str]:
    """What ``nodes`` change: buffers they write, scalars and loop variables they set, arrays they make."""
    changed = set(buffers_written(nodes))
    for node in walk_nodes(nodes):
        if isinstance(node, Define | Accumulate | LocalBuffer):
            changed.add(node.name)
        elif isinstance(node, Loop):
            changed.add(node.variable)
    return changed


def unchanged(
    known: Mapping[Key, tuple[Held, frozenset[str]]], changed: set[str]
) -> dict[Key, tuple[Held, frozenset[str]]]:
    """What is known but for that which depends on names that have ``changed``."""
    return {key: held for key, held in known.items() if held[1].isdisjoint(changed)}


def sizes_of(procedure: Procedure) -> tuple[str, ...]:
    """The sizes that views give to ``procedure``: its parameters' extents that are bare sizes, in order."""
    extents = (extent for parameter in procedure.parameters for extent in parameter.shape)
    return tuple(dict.fromkeys(extent.name for extent in extents if isinstance(extent, SizeValue)))


def size_extents(procedure: Procedure, call: ProcedureCall) -> dict[str, Expr]:
    """What `sizes_of` the procedure are in a call of it: extents of the views."""
    found: dict[str, Expr] = {}
    for parameter, view in zip(procedure.parameters, call.views, strict=True):
        extents = (extent for extent in view.extents if extent is not None)
        for size, extent in zip(parameter.shape, extents, strict=True):
            if isinstance(size, SizeValue):
                found.setdefault(size.name, extent)
    return found


def serial(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """``nodes`` without parallel loops."""

    def rule(node: Node) -> tuple[Node, ...]:
        return (replace(node, kind="serial") if isinstance(node, Loop) and node.kind == "parallel" else node,)

    return rewritten(nodes, rule)


def renamed(nodes: Iterable[Node], values: Mapping[Expr, Expr]) -> tuple[Node, ...]:
    """``nodes`` with index variables replaced, where loops outside say what they are."""
    replacements = dict(values)
    if not replacements:
        return tuple(nodes)
    plain = {
        key.name: value.name
        for key, value in replacements.items()
        if isinstance(key, IndexValue) and isinstance(value, IndexValue)
    }

    def rule(node: Node) -> tuple[Node, ...]:
        node = with_expressions(node, lambda expr: normalized(substitute(expr, replacements)))
        if isinstance(node, Loop):
            node = replace(node, variable=plain.get(node.variable, node.variable))
        return (node,)

    return rewritten(nodes, rule)
