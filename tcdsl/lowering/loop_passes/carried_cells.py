"""Cells that stay where they are while a loop of rounds runs: in registers, read before it and written after it.

::

    for k in 0 .. j:                                   if 0 < j:
        A[i, j] -= A[i, k] * A[j, k]        becomes        cell = A[i, j]
                                                           for k in 0 .. j:
                                                               cell -= A[i, k] * A[j, k]
                                                           A[i, j] = cell

LLVM cannot do that: it does not know that ``k`` is less than ``j``. The terms of ``-=`` may then come in any order, as
those of all scalars that accumulate, so that rounds may be lanes; what is written with ``=`` is computed as it stands.

All that rounds read and write is to be the cell itself or provably another one; and each round is to reach it, whatever
branches decide, and whatever checks do, unless it is provably in range: so it is where it is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from tcdsl.ir.build import apply, integer, plain_read
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Local, Read, certain_children, reads, transform
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.lowering.loopir.integer_facts import IntegerFacts, places
from tcdsl.lowering.loopir.loops import (
    Branch,
    Buffer,
    Check,
    Define,
    LocalBuffer,
    Loop,
    Nest,
    Node,
    ProcedureCall,
    Store,
    Update,
)
from tcdsl.lowering.loopir.point_code import in_register
from tcdsl.lowering.loopir.traversal import (
    buffers_written,
    changed_names,
    own_expressions,
    rewritten,
    scalars_of,
    walk_nodes,
    with_bodies,
    with_expressions,
)

__all__ = ["with_cells_in_registers"]

_Cell = tuple[str, tuple[Expr, ...]]
_MOST_CELLS = 16  # of a loop, which has no more registers


def with_cells_in_registers(nests: Iterable[Nest], buffers: Iterable[Buffer], facts: IntegerFacts) -> list[Nest]:
    """``nests`` with such cells in registers. ``facts`` are what is known of sizes."""
    nests, known = list(nests), {buffer.name: buffer for buffer in buffers}
    names = FreshNames({*known, *(name for nest in nests for name in changed_names(nest.body))})
    return [replace(nest, body=_block(nest.body, known, facts.copy(), names)) for nest in nests]


def _block(
    nodes: Sequence[Node], buffers: Mapping[str, Buffer], facts: IntegerFacts, names: FreshNames
) -> tuple[Node, ...]:
    out: list[Node] = []
    for node, inside in places(nodes, facts):
        bodies = iter([each.copy() for each in inside])

        def rule(body: tuple[Node, ...], bodies: Iterator[IntegerFacts] = bodies) -> tuple[Node, ...]:
            return _block(body, buffers, next(bodies), names)

        made = with_bodies(node, rule)
        if isinstance(made, Loop) and made.rounds and made.kind == "serial":
            made = _with_registers(made, buffers, inside[0], names)
        out.append(made)
    return tuple(out)


def _with_registers(loop: Loop, buffers: Mapping[str, Buffer], facts: IntegerFacts, names: FreshNames) -> Node:
    written = set(buffers_written(loop.body)).difference(each.tensor for each in _asked(loop))
    changing = changed_names((loop,))
    found = [
        cell
        for cell, checked in _reached(loop.body).items()
        if cell[0] in written
        and cell[0] in buffers
        and _stays(cell, changing)
        and (not checked or _is_in_range(cell, buffers[cell[0]], facts))
        and _is_alone(cell, loop, facts)
    ][:_MOST_CELLS]
    if not found:
        return loop
    types = {buffer: buffers[buffer].dtype for buffer, _ in found}
    held = {cell: Local(names.fresh("cell"), compute_dtype(types[cell[0]])) for cell in found}
    ahead = [Define(local.name, plain_read(*cell, local.dtype)) for cell, local in held.items()]
    stored = {(node.buffer, node.indices) for node in walk_nodes(loop.body) if isinstance(node, Store | Update)}
    behind = [Store(*cell, local) for cell, local in held.items() if cell in stored]
    body = rewritten(loop.body, lambda node: (_in_register(node, held, types),))
    # The cell need not be there where no round runs.
    some = apply("lt", loop.start, loop.stop)
    if loop.condition is not None:
        some = apply("and_", some, loop.condition)
    return Branch(some, (*ahead, replace(loop, body=body), *behind))


def _asked(loop: Loop) -> Iterator[Read]:
    # What is read between rounds, where registers are not looked at.
    return iter(()) if loop.condition is None else reads(loop.condition)


def _reached(body: Sequence[Node]) -> dict[_Cell, bool]:
    # The cells that each round reaches, and whether a check comes before.
    found: dict[_Cell, bool] = {}
    checked = False
    for node in body:
        if isinstance(node, Store | Update):
            found.setdefault((node.buffer, node.indices), checked)
        if not isinstance(node, Loop):
            for cell in (cell for expr in own_expressions(node) for cell in _surely_read(expr)):
                found.setdefault(cell, checked)
        checked = checked or any(isinstance(each, Check) for each in walk_nodes((node,)))
    return found


def _is_in_range(cell: _Cell, buffer: Buffer, facts: IntegerFacts) -> bool:
    return all(
        facts.implies(facts.sum_of(axis)) and facts.implies(facts.difference(extent, apply("add", axis, integer(1))))
        for axis, extent in zip(cell[1], buffer.shape, strict=True)
    )


def _surely_read(expr: Expr) -> Iterator[_Cell]:
    if isinstance(expr, Read):
        yield expr.tensor, expr.indices
    for part in certain_children(expr):
        yield from _surely_read(part)


def _stays(cell: _Cell, changing: Set[str]) -> bool:
    return all(changing.isdisjoint(scalars_of(axis)) and not any(True for _ in reads(axis)) for axis in cell[1])


def _is_alone(cell: _Cell, loop: Loop, facts: IntegerFacts) -> bool:
    # Whether all other cells that rounds read or write are others.
    buffer, indices = cell
    stack = [(loop.body, facts.copy())]
    while stack:
        nodes, here = stack.pop()
        for node, inside in places(nodes, here):
            if isinstance(node, ProcedureCall | LocalBuffer):
                return False
            for other in _touched(node, buffer):
                apart = [here.difference(axis, at) for axis, at in zip(other, indices, strict=True)]
                if other != indices and not here.excludes(apart):
                    return False
            stack += zip(_bodies(node), inside, strict=True)
    return True


def _bodies(node: Node) -> tuple[tuple[Node, ...], ...]:
    match node:
        case Loop(body=body):
            return (body,)
        case Branch(body=body, otherwise=otherwise):
            return body, otherwise
        case _:
            return ()


def _touched(node: Node, buffer: str) -> Iterator[tuple[Expr, ...]]:
    if isinstance(node, Store | Update) and node.buffer == buffer:
        yield node.indices
    for expr in own_expressions(node):
        yield from (read.indices for read in reads(expr) if read.tensor == buffer)


def _in_register(node: Node, held: Mapping[_Cell, Local], types: Mapping[str, str]) -> Node:
    node = with_expressions(node, lambda expr: transform(expr, lambda part: _held(part, held)))
    if not isinstance(node, Store | Update) or (node.buffer, node.indices) not in held:
        return node
    return in_register(node, held[node.buffer, node.indices], types[node.buffer])


def _held(part: Expr, held: Mapping[_Cell, Local]) -> Expr:
    return held.get((part.tensor, part.indices), part) if isinstance(part, Read) else part
