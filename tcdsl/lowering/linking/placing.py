"""The nests of one kernel under the names and sizes of another one, of which they become a part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import replace

from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Apply, Constant, Expr, IndexValue, Local, Read, SizeValue, transform
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    BufferView,
    Define,
    LocalBuffer,
    Loop,
    Node,
    ProcedureCall,
    Store,
    Update,
)
from tcdsl.lowering.loopir.traversal import rewritten, walk_nodes, with_expressions
from tcdsl.polyhedra.linear import normalized

__all__ = ["as_extent", "loop_variables", "placed", "scalar_names", "with_sizes"]


def loop_variables(nodes: Iterable[Node]) -> list[str]:
    """The variables of the loops in ``nodes``, each once."""
    return list(dict.fromkeys(node.variable for node in walk_nodes(nodes) if isinstance(node, Loop)))


def scalar_names(nodes: Iterable[Node]) -> list[str]:
    """The names of scalars and local buffers that ``nodes`` make, each once."""
    return list(dict.fromkeys(node.name for node in walk_nodes(nodes) if isinstance(node, Define | LocalBuffer)))


def with_sizes(expr: Expr, sizes: Mapping[Expr, Expr]) -> Expr:
    """``expr``, an index or an extent, with expressions for its sizes."""
    if not sizes:
        return expr
    return normalized(transform(expr, lambda node: sizes.get(node, node) if isinstance(node, SizeValue) else node))


def placed(nodes: Iterable[Node], names: Mapping[str, str], sizes: Mapping[Expr, Expr]) -> tuple[Node, ...]:
    """``nodes`` with other ``names`` for buffers, scalars and loop variables, and expressions for their sizes."""

    def leaf(node: Expr) -> Expr:
        match node:
            case Read(tensor=tensor):
                return replace(node, tensor=names.get(tensor, tensor))
            case Local(name=name) | IndexValue(name=name):
                return replace(node, name=names.get(name, name))
            case SizeValue():
                return sizes.get(node, node)
            case _:
                return node

    def value(expr: Expr) -> Expr:
        return transform(expr, leaf)

    def index(expr: Expr) -> Expr:
        return normalized(value(expr)) if sizes else value(expr)

    def rule(node: Node) -> tuple[Node, ...]:
        node = with_expressions(node, value, index, index)
        match node:
            case Loop(variable=name):
                return (replace(node, variable=names.get(name, name)),)
            case Define(name=name) | Accumulate(name=name) | LocalBuffer(name=name):
                return (replace(node, name=names.get(name, name)),)
            case Store(buffer=name) | Update(buffer=name):
                return (replace(node, buffer=names.get(name, name)),)
            case ProcedureCall(reads=reads, writes=writes):
                views = [tuple(_renamed(view, names) for view in part) for part in (reads, writes)]
                return (replace(node, reads=views[0], writes=views[1]),)
            case _:
                return (node,)

    return rewritten(nodes, rule)


def _renamed(view: BufferView, names: Mapping[str, str]) -> BufferView:
    return replace(view, buffer=names.get(view.buffer, view.buffer))


def as_extent(extent: Expr, extents: Set[str]) -> Expr:
    """``extent`` as arrays have it: not below 0. Sizes that are ``extents``, or numbers of rounds, are not."""
    return extent if _is_at_least_0(extent, extents) else apply("max", extent, integer(0))


def _is_at_least_0(expr: Expr, extents: Set[str]) -> bool:
    # Whether this is plain to see; sizes that are ``extents``, or numbers of rounds, are not below 0.
    match expr:
        case Constant(value=value):
            return value >= 0
        case SizeValue(name=name):
            return name in extents
        case Apply(primitive="add" | "mul" | "min" | "floor_div", arguments=parts):
            return all(_is_at_least_0(part, extents) for part in parts)
        case Apply(primitive="max", arguments=parts):
            return any(_is_at_least_0(part, extents) for part in parts)
        case _:
            return False
