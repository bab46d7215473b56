"""Brackets at the top of a sum become filters: ``O[i] += I[k] * (k <= i)`` adds only where the bracket holds.

A product with a false bracket is 0, and adding 0 changes nothing; so for ``+=``, ``-=`` and ``sum``, and for these
only, the bracket may decide which points are visited at all, and affine ones become loop bounds.
"""

from __future__ import annotations

from collections.abc import Callable

from tcdsl.frontend.points.definitions import is_affine_test
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.dtypes import is_boolean
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, Local

__all__ = ["conjuncts", "text_of", "without_brackets"]


def without_brackets(value: Expr, definition: Callable[[str], Value | None]) -> tuple[tuple[Expr, ...], Expr]:
    """The brackets of a term of a sum, each once, and the rest: ``where(k <= i, I[k], 0)`` gives ``((k <= i,), I[k])``.

    ``definition(name)`` is the local definition of that name, if it is one: what they are is what the term is.
    """
    found, rest = _separated(value, definition)
    once: dict[Expr, Expr] = {}
    for bracket in found:
        once.setdefault(text_of(bracket, definition), bracket)
    return tuple(once.values()), rest


def text_of(condition: Expr, definition: Callable[[str], Value | None]) -> Expr:
    """What a condition is that may be a local definition: equal ones are the same condition."""
    local = definition(condition.name) if isinstance(condition, Local) else None
    return condition if local is None else local.expr


def _separated(value: Expr, definition: Callable[[str], Value | None]) -> tuple[tuple[Expr, ...], Expr]:
    match value:
        case Apply(primitive="where", arguments=(condition, taken, Constant(value=0))):
            inner, rest = _separated(taken, definition)
            return (*conjuncts(condition, definition), *inner), rest
        case Local(name=name) if (local := definition(name)) is not None:
            inner, rest = _separated(local.expr, definition)
            return (inner, rest) if inner else ((), value)
        case Apply(primitive="neg", arguments=(operand,)):
            inner, rest = _separated(operand, definition)
            return inner, apply("neg", rest, span=value.span) if inner else value
        case Cast(operand=operand, dtype=dtype) if is_boolean(operand.dtype):
            return _counted(value, operand, dtype, definition)
        case Cast(operand=operand, dtype=dtype):
            inner, rest = _separated(operand, definition)
            return inner, cast(rest, dtype, value.span) if inner else value
        case _:
            return (), value


def _counted(
    value: Expr, condition: Expr, dtype: str, definition: Callable[[str], Value | None]
) -> tuple[tuple[Expr, ...], Expr]:
    # A count: conjuncts without reads bound the loops, the others are what is added.
    parts = conjuncts(condition, definition)
    bounds = tuple(part for part in parts if is_affine_test(part))
    if not bounds:
        return (), value
    tests = [part for part in parts if part not in bounds]
    if not tests:
        return bounds, constant(1, dtype, value.span)
    rest = tests[0]
    for test in tests[1:]:
        rest = apply("and_", rest, test, span=value.span)
    return bounds, cast(rest, dtype, value.span)


def conjuncts(condition: Expr, definition: Callable[[str], Value | None]) -> tuple[Expr, ...]:
    """The conditions that ``condition`` joins by ``and``, those that local definitions join included."""
    match condition:
        case Apply(primitive="and_", arguments=(left, right)):
            return (*conjuncts(left, definition), *conjuncts(right, definition))
        case Local(name=name) if (local := definition(name)) is not None:
            parts = conjuncts(local.expr, definition)
            return parts if len(parts) > 1 else (condition,)
        case _:
            return (condition,)
