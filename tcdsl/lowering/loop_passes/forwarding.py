"""Values that were just stored, used from the scalar that holds them; memory that nobody reads then goes away.

In a row of a softmax, the maximum and the sum stay in registers: ``m[i] = acc`` and a later ``m[i]`` becomes ``acc``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tcdsl.ir.expressions import Constant, Expr, IndexValue, Local, Read, SizeValue, index_variables, transform, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.loops import (
    Accumulate,
    Branch,
    Buffer,
    Call,
    Define,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    Store,
    Update,
)
from tcdsl.lowering.loopir.traversal import buffers_read, buffers_written, expressions, map_expressions, walk_nodes

__all__ = ["forwarded", "without_unread"]

_Cell = tuple[str, tuple[Expr, ...]]
# The value that a cell holds, and the names of which it and the cell's indices are made.
_Known = dict[_Cell, tuple[Expr, frozenset[str]]]


def forwarded(nodes: Sequence[Node], types: Mapping[str, str], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with reads of cells that the same iteration has stored replaced; ``types`` gives stored types."""
    return tuple(_sequence(nodes, {}, types, names))


def _sequence(nodes: Sequence[Node], known: _Known, types: Mapping[str, str], names: FreshNames) -> list[Node]:
    known = dict(known)
    last_read = _last_reads(nodes)
    out: list[Node] = []
    for position, original in enumerate(nodes):
        node = original
        match node:
            case Loop(variable=variable, body=body):
                inside = _without(known, _changed(body) | {variable})
                node = replace(
                    node,
                    start=_with(node.start, known),
                    stop=_with(node.stop, known),
                    body=tuple(_sequence(body, inside, types, names)),
                )
                known = inside
            case Branch(body=body, otherwise=otherwise):
                node = replace(
                    node,
                    condition=_with(node.condition, known),
                    body=tuple(_sequence(body, known, types, names)),
                    otherwise=tuple(_sequence(otherwise, known, types, names)),
                )
                known = _without(known, _changed((*body, *otherwise)))
            case LocalBuffer(name=name, dtype=dtype):
                types = {**types, name: dtype}
                node, known = _read_from(node, known), _without(known, {name})
            case Store(buffer=buffer):
                node = _read_from(node, known)
                known = _without(known, {buffer})
                if isinstance(node, Store) and types.get(buffer) != "float16":
                    key = (buffer, node.indices)
                    if last_read.get(key, -1) > position and not _self_referring(node):
                        value = node.value
                        if not isinstance(value, Constant | SizeValue | IndexValue | Local):
                            name = names.fresh("v")
                            out.append(Define(name, value))
                            value = Local(name, value.dtype)
                            node = replace(node, value=value)
                        known[key] = (value, _names(key, value))
            case _:
                node = _read_from(node, known)
                known = _without(known, _changed((node,)))
        out.append(node)
    return out


def _read_from(node: Node, known: _Known) -> Node:
    (found,) = map_expressions((node,), lambda expr: _with(expr, known))
    return found


def _self_referring(node: Store) -> bool:
    # An index that reads memory could change with the store.
    return any(isinstance(part, Read) for axis in node.indices for part in walk(axis))


def _with(expr: Expr, known: _Known) -> Expr:
    if not known:
        return expr

    def rule(node: Expr) -> Expr:
        found = known.get((node.tensor, node.indices)) if isinstance(node, Read) else None
        return node if found is None else found[0]

    return transform(expr, rule)


def _changed(nodes: Iterable[Node]) -> set[str]:
    # Memory that is written, scalars and loop variables that are set.
    changed: set[str] = set()
    for node in walk_nodes(nodes):
        match node:
            case Store() | Update() | Call():
                changed.update(buffers_written((node,)))
            case LocalBuffer(name=name):
                changed.add(name)
            case Define(name=name) | Accumulate(name=name):
                changed.add(name)
            case Loop(variable=variable):
                changed.add(variable)
            case _:
                pass
    return changed


def _without(known: _Known, changed: set[str]) -> _Known:
    return {key: held for key, held in known.items() if held[1].isdisjoint(changed)}


def _names(key: _Cell, value: Expr) -> frozenset[str]:
    buffer, indices = key
    found = {buffer}
    for expr in (*indices, value):
        found |= index_variables(expr)
        found |= {node.name for node in walk(expr) if isinstance(node, Local)}
    return frozenset(found)


def _last_reads(nodes: Sequence[Node]) -> dict[_Cell, int]:
    # For every cell that is read, the last of the nodes that reads it.
    return {
        (part.tensor, part.indices): position
        for position, node in enumerate(nodes)
        for expr in expressions((node,))
        for part in walk(expr)
        if isinstance(part, Read)
    }


def without_unread(
    nests: Sequence[Nest], buffers: Sequence[Buffer], needed: Iterable[str]
) -> tuple[tuple[Nest, ...], tuple[Buffer, ...]]:
    """Without temporaries that nobody reads any more, and without the stores into them. ``needed`` ones stay."""
    while True:
        read = {buffer for nest in nests for buffer in buffers_read(nest.body)}
        dead = {buffer.name for buffer in buffers if buffer.kind == "temporary" and buffer.name not in {*read, *needed}}
        if not dead:
            return tuple(nests), tuple(buffers)
        nests = [replace(nest, body=body) for nest in nests if (body := tuple(_pruned(nest.body, dead)))]
        buffers = [buffer for buffer in buffers if buffer.name not in dead]


def _pruned(nodes: Sequence[Node], dead: set[str]) -> list[Node]:
    out: list[Node] = []
    for node in nodes:
        match node:
            case Store(buffer=buffer) | Update(buffer=buffer) if buffer in dead:
                continue
            case Loop(body=body):
                inner = tuple(_pruned(body, dead))
                if inner:
                    out.append(replace(node, body=inner))
            case Branch(body=body, otherwise=otherwise):
                yes, no = tuple(_pruned(body, dead)), tuple(_pruned(otherwise, dead))
                if yes or no:
                    out.append(replace(node, body=yes, otherwise=no))
            case _:
                out.append(node)
    return out
