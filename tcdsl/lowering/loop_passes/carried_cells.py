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
branches decide, and whatever checks do, unless it is provably in range: so it is where it is read. Where only one round
may meet it elsewhere, those before and those behind keep it in a register:

::

    for j in 0 .. n:                                   cell = D[i, k]
        D[i, j] = min(D[i, j], D[i, k] + D[k, j])      for j in 0 .. min(n, k): ...
                                                       for j in max(0, k) .. min(n, k + 1): ... as it was
                                                       cell = D[i, k]
                                                       for j in max(0, k + 1) .. n: ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace

from tcdsl.ir.build import apply, index, integer, plain_read
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Local, Read, certain_children, reads, substitute, transform
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
from tcdsl.polyhedra.linear import linear_form, normalized

__all__ = ["with_cells_in_registers"]

_Cell = tuple[str, tuple[Expr, ...]]
_MOST_CELLS = 16  # of a loop, which has no more registers
_MOST_NODES = 8  # of a loop that is written three times


def with_cells_in_registers(nests: Iterable[Nest], buffers: Iterable[Buffer], facts: IntegerFacts) -> list[Nest]:
    """``nests`` with such cells in registers. ``facts`` are what is known of sizes."""
    nests, known = list(nests), {buffer.name: buffer for buffer in buffers}
    names = FreshNames({*known, *(name for nest in nests for name in changed_names(nest.body))})
    return [replace(nest, code=_block(nest.body, known, facts.copy(), names)) for nest in nests]


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
            out += _with_registers(made, buffers, inside[0], names)
        else:
            out.append(made)
    return tuple(out)


def _with_registers(
    loop: Loop, buffers: Mapping[str, Buffer], facts: IntegerFacts, names: FreshNames
) -> tuple[Node, ...]:
    written = set(buffers_written(loop.body)).difference(each.tensor for each in _asked(loop))
    changing = changed_names((loop,))
    found = {
        cell: _meetings(cell, loop, facts)
        for cell, checked in _reached(loop.body).items()
        if cell[0] in written
        and cell[0] in buffers
        and _stays(cell, changing)
        and (not checked or _is_in_range(cell, buffers[cell[0]], facts))
    }
    alone = [cell for cell, rounds in found.items() if not rounds][:_MOST_CELLS]
    met = {cell: next(iter(rounds)) for cell, rounds in found.items() if len(rounds) == 1}
    at, *others = set(met.values()) or [None]
    if at is not None and not others and _may_be_split(loop):
        cells, after = [*alone, *met][:_MOST_CELLS], apply("add", at, integer(1))
        first = replace(loop, stop=apply("min", loop.stop, at))
        here = replace(loop, start=apply("max", loop.start, at), stop=apply("min", loop.stop, after), seldom=True)
        last = replace(loop, start=apply("max", loop.start, after))
        parts = (_in_registers(part, cells, buffers, names) for part in (first, last))
        return next(parts), here, *parts
    return (_in_registers(loop, alone, buffers, names) if alone else loop,)


def _may_be_split(loop: Loop) -> bool:
    inside = list(walk_nodes(loop.body))
    innermost = not any(isinstance(node, Loop) for node in inside)
    return loop.step == 1 and loop.condition is None and innermost and len(inside) <= _MOST_NODES


def _in_registers(loop: Loop, found: Sequence[_Cell], buffers: Mapping[str, Buffer], names: FreshNames) -> Node:
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


def _meetings(cell: _Cell, loop: Loop, facts: IntegerFacts) -> set[Expr | None]:
    # The rounds in which other cells that rounds read or write may be this one; None if no more is known of them.
    buffer, indices = cell
    found: set[Expr | None] = set()
    stack = [(loop.body, facts.copy())]
    while stack and None not in found:
        nodes, here = stack.pop()
        for node, inside in places(nodes, here):
            if isinstance(node, ProcedureCall | LocalBuffer):
                return {None}
            for other in _touched(node, buffer):
                apart = [here.difference(axis, at) for axis, at in zip(other, indices, strict=True)]
                if other != indices and not here.excludes(apart):
                    found.add(_meeting(other, indices, loop))
            stack += zip(_bodies(node), inside, strict=True)
    return found


def _meeting(other: tuple[Expr, ...], indices: tuple[Expr, ...], loop: Loop) -> Expr | None:
    # The round in which an axis that goes from step to step is where the cell is.
    variable = index(loop.variable)
    for axis, at in zip(other, indices, strict=True):
        if linear_form(axis)[0].get(variable) == 1:
            found = normalized(apply("sub", at, substitute(axis, {variable: integer(0)})))
            if changed_names((loop,)).isdisjoint(scalars_of(found)) and not any(True for _ in reads(found)):
                return found
    return None


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
