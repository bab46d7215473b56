"""Nodes, rewritten: substituting expressions and renaming loop variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from tcdsl.ir.expressions import Expr, IndexValue, Read, SizeValue, substitute, walk
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Call,
    Check,
    Define,
    LocalBuffer,
    Loop,
    Node,
    Procedure,
    Store,
    Update,
    View,
)
from tcdsl.polyhedra.linear import normalized

__all__ = [
    "buffers_read",
    "buffers_written",
    "expressions",
    "map_expressions",
    "renamed",
    "serial",
    "sizes_of",
    "walk_nodes",
]


def map_expressions(nodes: Iterable[Node], rule: Callable[[Expr], Expr]) -> tuple[Node, ...]:
    """``nodes`` with ``rule`` applied to every expression in them, those of nested nodes included."""
    return tuple(_mapped(node, rule) for node in nodes)


def _mapped(node: Node, rule: Callable[[Expr], Expr]) -> Node:
    match node:
        case Loop():
            return replace(node, start=rule(node.start), stop=rule(node.stop), body=map_expressions(node.body, rule))
        case Branch():
            return Branch(rule(node.condition), map_expressions(node.body, rule), map_expressions(node.otherwise, rule))
        case Define() | Accumulate():
            return replace(node, value=rule(node.value))
        case Store() | Update():
            return replace(node, indices=tuple(rule(part) for part in node.indices), value=rule(node.value))
        case Check():
            return replace(node, condition=rule(node.condition), value=rule(node.value), extent=rule(node.extent))
        case LocalBuffer():
            return replace(node, shape=tuple(map(rule, node.shape)))
        case Call():
            reads, writes = (tuple(_mapped_view(view, rule) for view in part) for part in (node.reads, node.writes))
            return replace(node, reads=reads, writes=writes)


def _mapped_view(view: View, rule: Callable[[Expr], Expr]) -> View:
    extents = tuple(None if extent is None else rule(extent) for extent in view.extents)
    return View(view.buffer, tuple(map(rule, view.starts)), extents)


def expressions(nodes: Iterable[Node]) -> Iterator[Expr]:
    """Every expression in ``nodes``."""
    for node in walk_nodes(nodes):
        match node:
            case Loop(start=start, stop=stop):
                yield from (start, stop)
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
            case Call():
                for view in node.views:
                    yield from (*view.starts, *(extent for extent in view.extents if extent is not None))


def buffers_read(nodes: Iterable[Node]) -> Iterator[str]:
    """The buffers whose cells ``nodes`` read; what a call is given to write counts, because it may read it too."""
    for node in walk_nodes(nodes):
        if isinstance(node, Call):
            yield from (view.buffer for view in node.views)
    for expr in expressions(nodes):
        yield from (part.tensor for part in walk(expr) if isinstance(part, Read))


def sizes_of(procedure: Procedure) -> tuple[str, ...]:
    """The sizes that views give to ``procedure``: its parameters' extents that are bare sizes, in order."""
    extents = (extent for parameter in procedure.parameters for extent in parameter.shape)
    return tuple(dict.fromkeys(extent.name for extent in extents if isinstance(extent, SizeValue)))


def buffers_written(nodes: Iterable[Node]) -> Iterator[str]:
    """The buffers of which ``nodes`` write cells."""
    for node in walk_nodes(nodes):
        match node:
            case Store(buffer=buffer) | Update(buffer=buffer):
                yield buffer
            case Call(writes=writes):
                yield from (view.buffer for view in writes)
            case _:
                pass


def walk_nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    """Every node in ``nodes``, outermost first."""
    for node in nodes:
        yield node
        match node:
            case Loop(body=body):
                yield from walk_nodes(body)
            case Branch(body=body, otherwise=otherwise):
                yield from walk_nodes(body)
                yield from walk_nodes(otherwise)
            case _:
                pass


def serial(nodes: Iterable[Node]) -> tuple[Node, ...]:
    """``nodes`` without parallel loops; those are outermost, or behind a condition."""
    return tuple(
        replace(node, kind="serial")
        if isinstance(node, Loop) and node.kind == "parallel"
        else replace(node, body=serial(node.body), otherwise=serial(node.otherwise))
        if isinstance(node, Branch)
        else node
        for node in nodes
    )


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

    def rule(expr: Expr) -> Expr:
        return normalized(substitute(expr, replacements))

    return tuple(_with_variables(node, plain) for node in map_expressions(nodes, rule))


def _with_variables(node: Node, names: Mapping[str, str]) -> Node:
    match node:
        case Loop(variable=variable, body=body):
            body = tuple(_with_variables(inner, names) for inner in body)
            return replace(node, variable=names.get(variable, variable), body=body)
        case Branch(body=body, otherwise=otherwise):
            return replace(
                node,
                body=tuple(_with_variables(inner, names) for inner in body),
                otherwise=tuple(_with_variables(inner, names) for inner in otherwise),
            )
        case _:
            return node
