"""What expressions of sizes are at least and at most over all rounds, as expressions of the sizes outside.

::

    for k in 0 .. N:        extent  N - k - 1        at least 0, at most N - 1
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from tcdsl.ir.build import apply, integer
from tcdsl.ir.dtypes import is_boolean, is_integer
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, SizeValue, size_names
from tcdsl.polyhedra.linear import normalized

__all__ = ["Bounds", "bounds_over_rounds", "is_positive"]

Bounds = tuple[Expr, Expr]
"""The smallest and the largest value, neither of which depends on a round."""


def bounds_over_rounds(expr: Expr, rounds: Mapping[str, Bounds | None]) -> Bounds | None:
    """The bounds of ``expr``, given those of the numbers of rounds, or ``None`` if they are unknown."""
    expr = normalized(expr)
    if not rounds.keys() & size_names(expr):
        return expr, expr
    match expr:
        case SizeValue(name=name):
            return rounds[name]
        case Cast(operand=operand) if is_boolean(operand.dtype):
            return integer(0), integer(1)
        case Cast(operand=operand) if is_integer(operand.dtype):
            return bounds_over_rounds(operand, rounds)
        case Apply(primitive=primitive, arguments=arguments) if is_integer(expr.dtype):
            # Whatever a condition says, it is one of both.
            chosen = arguments[1:] if primitive == "where" else arguments
            parts = [bounds_over_rounds(part, rounds) for part in chosen]
            known = [part for part in parts if part is not None]
            return _applied(primitive, known) if len(known) == len(parts) else None
        case _:
            return None


def _applied(primitive: str, parts: list[Bounds]) -> Bounds | None:
    (low, high), (other_low, other_high) = parts[0], parts[-1]
    match primitive:
        case "add" | "max" | "min":
            return normalized(apply(primitive, low, other_low)), normalized(apply(primitive, high, other_high))
        case "sub":
            return normalized(apply("sub", low, other_high)), normalized(apply("sub", high, other_low))
        case "neg":
            return apply("neg", high), apply("neg", low)
        case "mul":
            ends = [normalized(apply("mul", one, other)) for one in parts[0] for other in parts[1]]
            return reduce(_smaller, ends), reduce(_larger, ends)
        case "floor_div" if is_positive(other_low):
            # What is negative is the larger the more it is divided by.
            least, most = ([apply("floor_div", end, by) for by in parts[-1]] for end in (low, high))
            return reduce(_smaller, least), reduce(_larger, most)
        case "mod" if isinstance(other_low, Constant) and other_low == other_high and other_low.value > 0:
            return integer(0), apply("sub", other_low, integer(1))
        case "where":
            return _smaller(low, other_low), _larger(high, other_high)
        case _:
            return None


def is_positive(expr: Expr) -> bool:
    """Whether ``expr`` is known to be greater than 0, whatever the sizes are."""
    match expr:
        case Constant(value=value):
            return value > 0
        case Apply(primitive="max", arguments=arguments):
            return any(map(is_positive, arguments))
        case Apply(primitive="min" | "mul", arguments=arguments):
            return all(map(is_positive, arguments))
    return False


def _smaller(one: Expr, other: Expr) -> Expr:
    return one if one == other else apply("min", one, other)


def _larger(one: Expr, other: Expr) -> Expr:
    return one if one == other else apply("max", one, other)
