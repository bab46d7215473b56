"""Nodes, rewritten: substituting expressions and renaming loop variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from tcdsl.ir.expressions import Expr, IndexValue, substitute
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Check, Define, Loop, Node, Store, Update
from tcdsl.polyhedra.linear import normalized

__all__ = ["expressions", "map_expressions", "renamed", "serial", "walk_nodes"]


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
