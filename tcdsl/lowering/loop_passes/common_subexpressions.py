"""Calls of functions that one iteration repeats, made once.

The derivative of ``tanh`` needs its value, and so may the program itself. Once their statements share a loop, both call
it with the same argument: the second one takes the first one's result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.ir.expressions import Apply, Expr, Local, certain_children, map_children, reads, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.lowering.loopir.loops import Accumulate, Branch, Call, Check, Define, LocalBuffer, Loop, Node, Store, Update
from tcdsl.lowering.loopir.traversal import changed_names, rewritten, scalars_of, unchanged, with_expressions

__all__ = ["with_calls_shared"]

# Rather computed again than kept in a register.
_CHEAP = frozenset(("relu", "id", "fst", "snd", "floor", "ceil", "round", "div", "recip", "square", "sat01"))


def with_calls_shared(nodes: Sequence[Node], names: FreshNames) -> tuple[Node, ...]:
    """``nodes`` with a scalar for every call that is repeated while its operands stay the same."""
    found = _Calls(names)
    named = found.sequence(nodes, {})
    once: dict[Expr, Expr] = {local: value for local, value in found.values.items() if found.uses[local] < 2}
    return _restored(named, once)


# The calls made so far, the scalar that holds each, and the names that make it invalid when they change.
_Known = dict[Expr, tuple[Local, frozenset[str]]]


class _Calls:
    """Gives every call a scalar; counts how often each is used."""

    def __init__(self, names: FreshNames) -> None:
        self.names = names
        self.values: dict[Expr, Expr] = {}
        self.uses: dict[Expr, int] = {}

    def sequence(self, nodes: Sequence[Node], known: _Known) -> list[Node]:
        out: list[Node] = []
        for node in nodes:
            changed = changed_names((node,))
            match node:
                case Loop(body=body):
                    # The bounds of loops hold no calls.
                    out.append(replace(node, body=tuple(self.sequence(body, unchanged(known, changed)))))
                case Branch(condition=condition, body=body, otherwise=otherwise):
                    condition = self.value(condition, known, out)
                    inner = (tuple(self.sequence(part, dict(known))) for part in (body, otherwise))
                    out.append(Branch(condition, *inner))
                case Define(value=value) | Accumulate(value=value) | Store(value=value) | Update(value=value):
                    out.append(replace(node, value=self.value(value, known, out)))
                case Check() | LocalBuffer() | Call():
                    out.append(node)
            known = unchanged(known, changed)
        return out

    def value(self, expr: Expr, known: _Known, out: list[Node], *, certain: bool = True) -> Expr:
        sure = certain_children(expr) if certain else ()
        expr = map_children(expr, lambda part: self.value(part, known, out, certain=any(part is each for each in sure)))
        if not isinstance(expr, Apply) or PRIMITIVES[expr.primitive].kind != "real" or expr.primitive in _CHEAP:
            return expr
        local, _ = known.get(expr, (None, None))
        if local is None:
            if not certain:
                return expr
            local = Local(self.names.fresh(expr.primitive), expr.dtype)
            out.append(Define(local.name, expr))
            known[expr] = local, scalars_of(expr).union(read.tensor for read in reads(expr))
            self.values[local] = expr
            self.uses[local] = 0
        self.uses[local] += 1
        return local


def _restored(nodes: Sequence[Node], once: dict[Expr, Expr]) -> tuple[Node, ...]:
    """``nodes`` with calls that are used once where they are used."""

    def rule(node: Node) -> tuple[Node, ...]:
        if isinstance(node, Define) and (local := Local(node.name, node.value.dtype)) in once:
            # The value may hold calls itself.
            once[local] = substitute(node.value, once)
            return ()
        return (with_expressions(node, lambda expr: substitute(expr, once)),)

    return rewritten(nodes, rule)
