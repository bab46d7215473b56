"""What the round before has made is the last operand of a minimum or a maximum, so that the others are ready by then.

In ``d[a + 1, b + 1] = min(d[a, b], min(d[a + 1, b], d[a, b + 1])) + x`` a round over ``b`` waits for ``d[a + 1, b]``:
``min(min(d[a, b], d[a, b + 1]), d[a + 1, b])`` makes it wait for one minimum, not for two. Those may change places
without any change of a result, which sums of floats may not; the two terms of one sum may, and the late one comes last.
Of two products the late one comes first: LLVM makes one instruction of the sum and its first product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce

from tcdsl.ir.build import apply, index, integer
from tcdsl.ir.expressions import Apply, Expr, Local, Read, substitute, transform, walk
from tcdsl.lowering.loopir.loops import Accumulate, Define, Loop, Node, Store
from tcdsl.lowering.loopir.traversal import walk_nodes, with_bodies, with_expressions
from tcdsl.polyhedra.linear import normalized

__all__ = ["with_late_operands_last"]

_Cell = tuple[str, tuple[Expr, ...]]


def with_late_operands_last(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """``nodes`` with late operands last in all loops of rounds."""
    return tuple(_rewritten(node, None) for node in nodes)


def _rewritten(node: Node, late: Callable[[Expr], bool] | None) -> Node:
    if isinstance(node, Loop):
        late = _late_in(node) if node.rounds else None
    elif late is not None:
        rule = _last(late)
        node = with_expressions(node, lambda expr: transform(expr, rule))
    return with_bodies(node, lambda body: tuple(_rewritten(each, late) for each in body))


def _late_in(loop: Loop) -> Callable[[Expr], bool]:
    # Whether an expression waits for the round before.
    scalars = {node.name for node in walk_nodes(loop.body) if isinstance(node, Define | Accumulate)}
    cells = set(_stored_before(loop))

    def late(expr: Expr) -> bool:
        for part in walk(expr):
            if isinstance(part, Local) and part.name in scalars:
                return True
            if isinstance(part, Read) and (part.tensor, tuple(map(normalized, part.indices))) in cells:
                return True
        return False

    return late


def _stored_before(loop: Loop) -> Iterator[_Cell]:
    # The cells that the round before has stored.
    number = index(loop.variable)
    before: dict[Expr, Expr] = {number: apply("sub", number, integer(loop.step))}
    for node in walk_nodes(loop.body):
        if isinstance(node, Store):
            yield node.buffer, tuple(normalized(substitute(each, before)) for each in node.indices)


def _last(late: Callable[[Expr], bool]) -> Callable[[Expr], Expr]:
    def rule(expr: Expr) -> Expr:
        match expr:
            case Apply(
                primitive="add",
                arguments=(Apply(primitive="mul") as first, Apply(primitive="mul") as second),
            ) if late(second) and not late(first):
                return apply("add", second, first)
            case Apply(primitive="min" | "max"):
                pass
            case _:
                return expr
        operands = list(_operands(expr, expr.primitive))
        behind = [each for each in operands if late(each)]
        if not behind:
            return expr
        ordered = [
            *(each for each in operands if each not in behind),
            *(_late_term_last(each, late) for each in behind),
        ]
        if ordered == operands:
            return expr
        return reduce(lambda one, other: apply(expr.primitive, one, other), ordered)

    return rule


def _late_term_last(expr: Expr, late: Callable[[Expr], bool]) -> Expr:
    match expr:
        case Apply(primitive="add", arguments=(first, second)) if late(first) and not late(second):
            return apply("add", second, first)
    return expr


def _operands(expr: Expr, primitive: str) -> Iterator[Expr]:
    if isinstance(expr, Apply) and expr.primitive == primitive:
        for each in expr.arguments:
            yield from _operands(each, primitive)
    else:
        yield expr
