"""Values that were just stored, used from the scalar that holds them; memory that nobody reads then goes away.

In a row of a softmax, the maximum and the sum stay in registers: ``m[i] = acc`` and a later ``m[i]`` becomes ``acc``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial

from tcdsl.ir.expressions import Constant, Expr, IndexValue, Local, Read, SizeValue, reads, transform
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.nodes import replace
from tcdsl.lowering.loopir.kinds import FirstNodes, RenamedNodes, names_in
from tcdsl.lowering.loopir.loops import Branch, Buffer, Define, EqualNodes, LocalBuffer, Loop, Nest, Node, Store, Update
from tcdsl.lowering.loopir.traversal import (
    buffers_read,
    changed_names,
    expressions,
    rewritten,
    scalars_of,
    unchanged,
    with_bodies,
    with_expressions,
)
from tcdsl.rewrite.statement_kinds import Named

__all__ = ["forwarded", "without_unread"]

_Cell = tuple[str, tuple[Expr, ...]]
# The value that a cell holds, and the names of which it and the cell's indices are made.
_Known = dict[_Cell, tuple[Expr, frozenset[str]]]


def forwarded(nodes: Sequence[Node], types: Mapping[str, str], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with reads of cells that the same iteration has stored replaced; ``types`` gives stored types."""
    return _sequence(nodes, {}, types, names)


def _sequence(nodes: Sequence[Node], known: _Known, types: Mapping[str, str], names: FreshNames) -> tuple[Node, ...]:
    known = dict(known)
    last_read = _last_reads(nodes)
    out: list[Node] = []
    for position, original in enumerate(nodes):
        node, left = original, known
        if known:
            node = with_expressions(original, partial(_with, known=known))
            left = unchanged(known, changed_names((original,)))
        # What a loop changes is unknown inside of it already.
        inside = left if isinstance(node, Loop) else known
        node = with_bodies(node, partial(_sequence, known=inside, types=types, names=names))
        known = left
        match node:
            case LocalBuffer(name=name, dtype=dtype):
                types = {**types, name: dtype}
            case Store(buffer=buffer):
                if types.get(buffer) != "float16":
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
                pass
        out.append(node)
    return tuple(out)


def _self_referring(node: Store) -> bool:
    # An index that reads memory could change with the store.
    return any(True for axis in node.indices for _ in reads(axis))


def _with(expr: Expr, known: _Known) -> Expr:
    def rule(node: Expr) -> Expr:
        found = known.get((node.tensor, node.indices)) if isinstance(node, Read) else None
        return node if found is None else found[0]

    return transform(expr, rule)


def _names(key: _Cell, value: Expr) -> frozenset[str]:
    buffer, indices = key
    return frozenset((buffer,)).union(*map(scalars_of, (*indices, value)))


def _last_reads(nodes: Sequence[Node]) -> dict[_Cell, int]:
    # For every cell that is read behind a store of its buffer, the last of the nodes that reads it.
    stored: set[str] = set()
    found: dict[_Cell, int] = {}
    for position, node in enumerate(nodes):
        if stored:
            for expr in expressions((node,)):
                found.update({(read.tensor, read.indices): position for read in reads(expr) if read.tensor in stored})
        if isinstance(node, Store):
            stored.add(node.buffer)
    return found


def without_unread(
    nests: Sequence[Nest], buffers: Sequence[Buffer], needed: Iterable[str]
) -> tuple[tuple[Nest, ...], tuple[Buffer, ...]]:
    """Without temporaries that nobody reads any more, and without the stores into them. ``needed`` ones stay."""
    while True:
        read = {name for nest in nests for _, name in names_in(nest, _read)}
        dead = {buffer.name for buffer in buffers if buffer.kind == "temporary" and buffer.name not in {*read, *needed}}
        if not dead:
            return tuple(nests), tuple(buffers)
        known: dict[object, FirstNodes] = {}
        nests = [replace(nest, code=code) for nest in nests if (code := _without(nest, dead, known))]
        buffers = [buffer for buffer in buffers if buffer.name not in dead]


def _read(nodes: tuple[Node, ...]) -> Iterator[Named]:
    return (("buffer", name) for name in buffers_read(nodes))


def _without(nest: Nest, dead: set[str], known: dict[object, FirstNodes]) -> tuple[Node, ...] | EqualNodes:
    code = nest.code
    if not isinstance(code, RenamedNodes):
        return _pruned(nest.body, dead)
    pairs = zip(code.first.names, code.names, strict=True)
    own = frozenset([old for (what, old), new in pairs if what == "buffer" and new in dead])
    if not own:
        return code
    if (code.first, own) not in known:
        known[code.first, own] = FirstNodes(_pruned(code.first.nodes, own))
    first = known[code.first, own]
    return code.under_these_names(first) if first.nodes else ()


def _pruned(nodes: Sequence[Node], dead: Set[str]) -> tuple[Node, ...]:
    def rule(node: Node) -> tuple[Node, ...]:
        match node:
            case Store(buffer=buffer) | Update(buffer=buffer) if buffer in dead:
                return ()
            case Loop(body=()) | Branch(body=(), otherwise=()):
                return ()
            case _:
                return (node,)

    return rewritten(nodes, rule)
