"""Sketch values as trees: sub-expressions including those of nested reductions, and the variables that are free in
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import cast

from tcdsl.ir.expressions import Expr, IndexValue, Let, Local, children, rebuild
from tcdsl.ranges.sketches.sketch import Reduction

__all__ = [
    "as_expr",
    "as_reduction",
    "free_locals",
    "free_variables",
    "parts",
    "renamed",
    "renamed_free",
    "rewritten",
    "variables_of",
]


def as_reduction(node: object) -> Reduction | None:
    """``node`` if it is a `Reduction`, which sketches hold in the place of an expression."""
    return node if isinstance(node, Reduction) else None


def as_expr(reduction: Reduction) -> Expr:
    """A reduction in the place of an expression."""
    return cast(Expr, reduction)


def parts(expr: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, those of a reduction included."""
    reduction = as_reduction(expr)
    if reduction is None:
        return children(expr)
    ends = (end for given in reduction.ranges for end in (given.low, given.high))
    return (*ends, *reduction.conditions, *reduction.filters, reduction.value)


def rewritten(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """`tcdsl.ir.expressions.transform` that enters reductions; ``rule`` sees the reductions themselves as well."""
    before = parts(expr)
    after = tuple(rewritten(part, rule) for part in before)
    if any(a is not b for a, b in zip(before, after, strict=True)):
        reduction = as_reduction(expr)
        expr = rebuild(expr, after) if reduction is None else as_expr(_rebuilt(reduction, after))
    return rule(expr)


def _rebuilt(reduction: Reduction, new: tuple[Expr, ...]) -> Reduction:
    given = tuple(replace(r, low=new[2 * k], high=new[2 * k + 1]) for k, r in enumerate(reduction.ranges))
    rest = new[2 * len(given) :]
    count = len(reduction.conditions)
    return replace(reduction, ranges=given, conditions=rest[:count], filters=rest[count:-1], value=rest[-1])


def variables_of(expr: Expr) -> Iterator[str]:
    """The free index variables in the order of occurrence, with repetitions."""
    reduction = as_reduction(expr)
    if isinstance(expr, IndexValue):
        yield expr.name
    for part in parts(expr):
        for name in variables_of(part):
            if reduction is None or name not in reduction.variables:
                yield name


def free_variables(expr: Expr) -> frozenset[str]:
    """The index variables of ``expr`` that no reduction in it binds."""
    return frozenset(variables_of(expr))


def free_locals(expr: Expr) -> frozenset[str]:
    """The names that ``expr`` reads from `Let`s around it, reductions included."""
    match expr:
        case Local(name=name):
            return frozenset((name,))
        case Let(name=name, value=value, body=body):
            return free_locals(value) | (free_locals(body) - {name})
        case _:
            return frozenset().union(*map(free_locals, parts(expr)))


def renamed(reduction: Reduction, names: Mapping[str, str]) -> Reduction:
    """``reduction`` with other names for some of the variables that it binds."""
    if not names:
        return reduction
    changed = _rebuilt(reduction, tuple(renamed_free(part, names) for part in parts(as_expr(reduction))))
    given = tuple(replace(r, variable=names.get(r.variable, r.variable)) for r in changed.ranges)
    return replace(changed, ranges=given, variables=tuple(names.get(name, name) for name in changed.variables))


def renamed_free(expr: Expr, names: Mapping[str, str]) -> Expr:
    """``expr`` with other names for some of its free index variables."""
    if isinstance(expr, IndexValue):
        return replace(expr, name=names.get(expr.name, expr.name))
    inner = as_reduction(expr)
    if inner is not None:
        names = {old: new for old, new in names.items() if old not in inner.variables}
    before = parts(expr)
    if not before or not names:
        return expr
    after = tuple(renamed_free(part, names) for part in before)
    return rebuild(expr, after) if inner is None else as_expr(_rebuilt(inner, after))
