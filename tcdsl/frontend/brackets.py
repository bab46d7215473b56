"""Brackets at the top of a sum become filters: ``O[i] += I[k] * (k <= i)`` adds only where the bracket holds.

A product with a false bracket is 0, and adding 0 changes nothing; so for ``+=``, ``-=`` and ``sum``, and for these
only, the bracket may decide which points are visited at all, and affine ones become loop bounds.
"""

from __future__ import annotations

from tcdsl.frontend.points import open_walk
from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.dtypes import is_boolean
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, IndexValue, SizeValue

__all__ = ["without_brackets"]


def without_brackets(value: Expr) -> tuple[tuple[Expr, ...], Expr]:
    """The brackets of a term of a sum and the rest: ``where(k <= i, I[k], 0)`` gives ``((k <= i,), I[k])``."""
    match value:
        case Apply(primitive="where", arguments=(condition, taken, Constant(value=0))):
            inner, rest = without_brackets(taken)
            return (*_conjuncts(condition), *inner), rest
        case Apply(primitive="neg", arguments=(operand,)):
            inner, rest = without_brackets(operand)
            return inner, apply("neg", rest, span=value.span) if inner else value
        case Cast(operand=operand, dtype=dtype) if is_boolean(operand.dtype):
            return _counted(value, operand, dtype)
        case Cast(operand=operand, dtype=dtype):
            inner, rest = without_brackets(operand)
            return inner, cast(rest, dtype, value.span) if inner else value
        case _:
            return (), value


def _counted(value: Expr, condition: Expr, dtype: str) -> tuple[tuple[Expr, ...], Expr]:
    # A count: conjuncts without reads bound the loops, the others are what is added.
    parts = _conjuncts(condition)
    bounds = tuple(part for part in parts if _is_affine(part))
    if not bounds:
        return (), value
    tests = [part for part in parts if part not in bounds]
    if not tests:
        return bounds, constant(1, dtype, value.span)
    rest = tests[0]
    for test in tests[1:]:
        rest = apply("and_", rest, test, span=value.span)
    return bounds, cast(rest, dtype, value.span)


def _conjuncts(condition: Expr) -> tuple[Expr, ...]:
    if isinstance(condition, Apply) and condition.primitive == "and_":
        left, right = condition.arguments
        return (*_conjuncts(left), *_conjuncts(right))
    return (condition,)


def _is_affine(condition: Expr) -> bool:
    return all(isinstance(node, Apply | Constant | IndexValue | SizeValue) for node in open_walk(condition))
