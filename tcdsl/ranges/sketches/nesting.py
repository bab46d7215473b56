"""What is free in sketch values, whose reductions bind index variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tcdsl.ir.expressions import Expr, IndexValue, Reduction, children, map_children

__all__ = ["free_variables", "renamed", "renamed_free", "variables_of"]


def variables_of(expr: Expr) -> Iterator[str]:
    """The free index variables in the order of occurrence, with repetitions."""
    bound = expr.variables if isinstance(expr, Reduction) else ()
    if isinstance(expr, IndexValue):
        yield expr.name
    for part in children(expr):
        yield from (name for name in variables_of(part) if name not in bound)


def free_variables(expr: Expr) -> frozenset[str]:
    """The index variables of ``expr`` that no reduction in it binds."""
    return frozenset(variables_of(expr))


def renamed(reduction: Reduction, names: Mapping[str, str]) -> Reduction:
    """``reduction`` with other names for some of the variables that it binds."""
    if not names:
        return reduction
    changed = reduction.with_parts(tuple(renamed_free(part, names) for part in children(reduction)))
    given = tuple(replace(r, variable=names.get(r.variable, r.variable)) for r in changed.ranges)
    return replace(changed, ranges=given, variables=tuple(names.get(name, name) for name in changed.variables))


def renamed_free(expr: Expr, names: Mapping[str, str]) -> Expr:
    """``expr`` with other names for some of its free index variables."""
    if isinstance(expr, IndexValue):
        return replace(expr, name=names.get(expr.name, expr.name))
    if isinstance(expr, Reduction):
        names = {old: new for old, new in names.items() if old not in expr.variables}
    return map_children(expr, lambda part: renamed_free(part, names)) if names else expr
