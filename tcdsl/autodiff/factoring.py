"""Sums of products with factors in common: ``g * x * a + g * x * b`` is ``g * x * (a + b)``.

The derivatives of one expression have the derivative of the result in common, and a product that mentions a tensor
twice has its other factors in common. What a user wrote keeps its own rounding: only derivatives are factored, when
they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tcdsl.autodiff.tape import Tape
from tcdsl.ir.build import apply, constant
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Constant, Expr, Local, children, rebuild
from tcdsl.ir.program import Statement

__all__ = ["factored", "with_factored_values"]

# Products of more factors stay as they are.
_MOST_FACTORS = 12


def factored(expr: Expr) -> Expr:
    """``expr`` with the common factors of its sums and differences written once, where that repeats no work."""
    before = Tape()
    root = before.flatten(expr)
    uses: dict[str, int] = {}
    order = before.steps([root])
    for name in order:
        for part in children(before.definition(Local(name, ""))):
            if isinstance(part, Local):
                uses[part.name] = uses.get(part.name, 0) + 1
    after = Tape()
    own: set[str] = set()
    known: dict[str, Expr] = {}
    for name in order:
        step = before.definition(Local(name, ""))
        step = rebuild(step, tuple(_renamed(part, known) for part in children(step)))
        found = _with_common_factors(after, step, own)
        leaf = after.add(step) if found is None else after.flatten(found)
        known[name] = leaf
        if uses.get(name, 0) == 1 and isinstance(leaf, Local):
            own.add(leaf.name)
    return after.assemble(_renamed(root, known))


def with_factored_values(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """The statements of a derivative, their values `factored`."""
    return tuple(replace(statement, value=factored(statement.value)) for statement in statements)


def _renamed(leaf: Expr, known: Mapping[str, Expr]) -> Expr:
    return known.get(leaf.name, leaf) if isinstance(leaf, Local) else leaf


def _with_common_factors(tape: Tape, step: Expr, own: set[str]) -> Expr | None:
    if not (isinstance(step, Apply) and step.primitive in ("add", "sub") and is_floating(step.dtype)):
        return None
    left, right = (_factors(tape, argument, own) for argument in step.arguments)
    if left is None or right is None:
        return None
    rest = list(right)
    common: list[Expr] = []
    others: list[Expr] = []
    for factor in left:
        if factor in rest:
            rest.remove(factor)
            common.append(factor)
        else:
            others.append(factor)
    if not [factor for factor in common if not isinstance(factor, Constant)]:
        return None
    if not others and not rest and step.primitive == "sub":
        return None
    one = constant(1, step.dtype)
    total = apply(step.primitive, _product(others, one), _product(rest, one))
    if isinstance(total, Apply) and not (others and rest) and not _constants(others + rest):
        return None
    numbers = [factor for factor in common if isinstance(factor, Constant)]
    rest_of_common = [factor for factor in common if not isinstance(factor, Constant)]
    return _product([*numbers, *rest_of_common, total], one)


def _constants(factors: list[Expr]) -> bool:
    return all(isinstance(factor, Constant) for factor in factors)


def _product(factors: list[Expr], one: Expr) -> Expr:
    result = one
    for factor in factors:
        result = apply("mul", result, factor)
    return result


def _factors(tape: Tape, leaf: Expr, own: set[str]) -> list[Expr] | None:
    """The factors of a product whose parts nothing else needs; ``None`` if there are too many."""
    found: list[Expr] = []
    waiting = [leaf]
    while waiting:
        part = waiting.pop()
        step = tape.definition(part)
        if part is not leaf and not (isinstance(part, Local) and part.name in own):
            found.append(part)
        elif isinstance(step, Apply) and step.primitive == "mul":
            waiting.extend(reversed(step.arguments))
        else:
            found.append(part)
        if len(found) > _MOST_FACTORS:
            return None
    return found
