"""Where local definitions are computed: once per point, and not where no one asks for them.

``O[i] = z + z * w[i]`` with ``z = exp(x[i])`` becomes ``let z = exp(x[i]) in z + z * w[i]``. The `Let` stands around
the smallest part that holds all uses; uses in different branches of a ``where`` get one each, so that a branch that
is not taken computes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from tcdsl.frontend.points import GENERATED
from tcdsl.ir.expressions import (
    Apply,
    Constant,
    Expr,
    IndexValue,
    Let,
    Local,
    Read,
    SizeValue,
    children,
    rebuild,
    substitute,
    walk,
)
from tcdsl.shapes.sketch import Reduction

__all__ = ["fresh_name", "named_lets", "share"]

_LAZY = ("where", "and_", "or_")


def share(expr: Expr, definition: Callable[[str], Expr]) -> Expr:
    """``expr`` with the local definitions that it mentions (`Local`s with generated names) computed in it.

    ``definition(name)`` gives their values, which may mention earlier ones.
    """
    while True:
        names = {node.name for node in walk(expr) if isinstance(node, Local) and GENERATED in node.name}
        free = names - {node.name for node in walk(expr) if isinstance(node, Let)}
        if not free:
            return expr
        # The latest first: a definition mentions earlier ones only.
        name = max(free, key=lambda name: int(name.rsplit(GENERATED, 1)[1]))
        value = definition(name)
        expr = _placed(expr, name, value)


def _placed(expr: Expr, name: str, value: Expr) -> Expr:
    uses = sum(isinstance(node, Local) and node.name == name for node in walk(expr))
    if uses == 0:
        return expr
    if uses == 1 or _is_cheap(value):
        return substitute(expr, {Local(name, value.dtype): value})
    parts = children(expr)
    using = [k for k, part in enumerate(parts) if _uses(part, name)]
    lazy = isinstance(expr, Apply) and expr.primitive in _LAZY and using[0] > 0
    if len(using) == 1 or lazy:
        return rebuild(expr, tuple(_placed(part, name, value) for part in parts))
    return Let(name, value, expr, expr.span)


def _uses(expr: Expr, name: str) -> bool:
    return any(isinstance(node, Local) and node.name == name for node in walk(expr))


def _is_cheap(value: Expr) -> bool:
    # Reading a cell again costs nothing: the compiler sees that it is the same one.
    if isinstance(value, Read):
        return all(isinstance(index, Constant | IndexValue | SizeValue) for index in value.indices)
    return isinstance(value, Constant | IndexValue | SizeValue | Local)


def named_lets(expressions: Sequence[Expr], taken: set[str]) -> tuple[Expr, ...]:
    """``expressions`` with readable names for their `Let`s, all different; reductions that were equal stay equal."""
    known: dict[Reduction, Reduction] = {}
    return tuple(_named(expr, {}, taken, known) for expr in expressions)


def _named(expr: Expr, names: Mapping[str, str], taken: set[str], known: dict[Reduction, Reduction]) -> Expr:
    match expr:
        case Local(name=name):
            return Local(names[name], expr.dtype, expr.span) if name in names else expr
        case Let(name=name, value=value, body=body):
            bound = _named(value, names, taken, known)
            new = fresh_name(name.split(GENERATED)[0], taken)
            return Let(new, bound, _named(body, {**names, name: new}, taken, known), expr.span)
        case Reduction():
            # No reduction mentions a Let around it: each level computes its own.
            if expr not in known:
                conditions, filters, (value,) = (
                    tuple(_named(part, {}, taken, known) for part in parts)
                    for parts in (expr.conditions, expr.filters, (expr.value,))
                )
                known[expr] = replace(expr, conditions=conditions, filters=filters, value=value)
            return cast(Expr, known[expr])
        case _:
            parts = children(expr)
            return rebuild(expr, tuple(_named(part, names, taken, known) for part in parts)) if parts else expr


def fresh_name(hint: str, taken: set[str]) -> str:
    """``hint``, or ``hint_2``, ``hint_3``, ... if it is taken; taken from now on."""
    name, number = hint, 1
    while name in taken:
        number += 1
        name = f"{hint}_{number}"
    taken.add(name)
    return name
