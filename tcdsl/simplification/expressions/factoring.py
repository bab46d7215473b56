"""Sums of products with factors in common: ``g * x * a + g * x * b`` is ``g * x * (a + b)``; divisors likewise. Signs
come out of differences: ``-a - b`` is ``-(a + b)``, and ``-(a - b)`` is ``b - a``.

The derivatives of one expression have the derivative of the result in common, and a product that mentions a tensor
twice has its other factors in common. What a user wrote keeps its own rounding and the signs of its zeros: only
derivatives are factored, when they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tcdsl.ir.build import apply, constant
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Constant, Expr, Local, children, map_children
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Statement
from tcdsl.rewrite.kept_spans import once_per_kind
from tcdsl.simplification.expressions.tape import Tape

__all__ = ["factored", "with_factored_values"]

# Products of more factors stay as they are.
_MOST_FACTORS = 12


def factored(expr: Expr) -> Expr:
    """``expr`` with the common factors of its sums and differences written once, where that repeats no work."""
    before = Tape(either_zero=True)
    root = before.flatten(expr)
    uses: dict[str, int] = {}
    order = before.steps([root])
    for name in order:
        for part in children(before.definition(Local(name, ""))):
            if isinstance(part, Local):
                uses[part.name] = uses.get(part.name, 0) + 1
    after = Tape(either_zero=True)
    own: set[str] = set()
    known: dict[str, Expr] = {}
    for name in order:
        step = map_children(before.definition(Local(name, "")), lambda part: _renamed(part, known))
        found = _with_common_factors(after, step, own)
        leaf = after.add(step) if found is None else after.flatten(found)
        known[name] = leaf
        if uses.get(name, 0) == 1 and isinstance(leaf, Local):
            own.add(leaf.name)
    return after.assemble(_renamed(root, known))


def with_factored_values(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements of a derivative, their values `factored`."""
    return tuple(map(_with_factored_value, statements))


@once_per_kind
def _with_factored_value(statement: Statement) -> Statement:
    return replace(statement, value=factored(statement.value))


def _renamed(leaf: Expr, known: Mapping[str, Expr]) -> Expr:
    return known.get(leaf.name, leaf) if isinstance(leaf, Local) else leaf


@dataclass(slots=True)
class _Term:
    """A product of factors over a product of divisors."""

    factors: list[Expr] = field(default_factory=list)
    divisors: list[Expr] = field(default_factory=list)

    def is_number(self) -> bool:
        return not self.divisors and all(isinstance(factor, Constant) for factor in self.factors)

    def is_one(self) -> bool:
        return not self.divisors and not self.factors

    def expression(self, dtype: str) -> Expr:
        result: Expr = constant(1, dtype)
        for factor in self.factors:
            result = apply("mul", result, factor)
        for divisor in self.divisors:
            result = apply("div", result, divisor)
        return result


def _with_common_factors(tape: Tape, step: Expr, own: set[str]) -> Expr | None:
    if not (isinstance(step, Apply) and step.primitive in ("add", "sub") and is_floating(step.dtype)):
        return None
    opposite = tape.definition(step.arguments[0])
    if step.primitive == "sub" and isinstance(opposite, Apply) and opposite.primitive == "neg":
        total = apply("add", opposite.arguments[0], step.arguments[1])
        return apply("neg", _with_common_factors(tape, total, own) or total)
    left, right = (_term(tape, argument, own) for argument in step.arguments)
    if left is None or right is None:
        return None
    common = _Term(_taken(left.factors, right.factors), _taken(left.divisors, right.divisors))
    if common.is_number():
        return None
    if left.is_one() and right.is_one() and step.primitive == "sub":
        return None
    if (left.is_one() or right.is_one()) and not (left.is_number() and right.is_number()):
        return None
    total = apply(step.primitive, left.expression(step.dtype), right.expression(step.dtype))
    common.factors.sort(key=lambda factor: not isinstance(factor, Constant))
    common.factors.append(total)
    return common.expression(step.dtype)


def _taken(left: list[Expr], right: list[Expr]) -> list[Expr]:
    # What both lists hold, taken out of both.
    common = []
    for part in tuple(left):
        if part in right:
            left.remove(part)
            right.remove(part)
            common.append(part)
    return common


def _term(tape: Tape, leaf: Expr, own: set[str]) -> _Term | None:
    """The factors and divisors of a product, whose inner parts nothing else needs; ``None`` if there are too many."""
    term = _Term()
    waiting = [leaf]
    while waiting:
        part = waiting.pop()
        step = tape.definition(part)
        if not (part is leaf or (isinstance(part, Local) and part.name in own)):
            term.factors.append(part)
        elif isinstance(step, Apply) and step.primitive == "mul":
            waiting.extend(reversed(step.arguments))
        elif isinstance(step, Apply) and step.primitive == "div":
            waiting.append(step.arguments[0])
            term.divisors.insert(0, step.arguments[1])
        else:
            term.factors.append(part)
        if len(term.factors) + len(term.divisors) > _MOST_FACTORS:
            return None
    return term
