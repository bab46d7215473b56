"""What a front end hands to range inference: a statement whose ranges, extents and nested reductions are still open.

Its values hold reductions, which bind index variables; what is free in them says which ranges are to be found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from tcdsl.ir.expressions import ExplicitRange, Expr, IndexValue, Reduction, children, map_children
from tcdsl.ir.program import Access, Assertion, Start, Statement, Tensor
from tcdsl.span import Span

__all__ = ["Resolved", "Sketch", "free_variables", "renamed", "renamed_free", "variables_of"]


@dataclass(frozen=True, slots=True)
class Sketch:
    """A statement before range inference.

    ``target.tensor`` is the new tensor's name. ``extents`` has one entry per axis, ``None`` where the extent is to be
    inferred. ``mode`` is ``fresh`` (rule 2), ``declared`` or ``existing`` (rule 3), ``part``: a part of a tensor,
    ``s[1:]``, whose points are known, or ``valid``: a declared target of which all points count whose indices are in
    range, whether they have variables or not, while no extents have to be equal. ``conditions`` are bool expressions,
    in order; range inference decides which of them are explicit ranges, filters, or tests on data. ``filters`` are
    conditions that came from brackets (``O[i] += x[i] * (i < 3)``): tested after ``conditions``, never an explicit
    range; their reads are accesses like those of ``value``. ``value`` is cast to the compute type of ``dtype`` and may
    hold `Reduction` nodes; ``Read`` boundaries are as the user wrote them, ``SKIP`` by default, with ``CHECK`` on data
    indices. ``variables`` lists the index variables in the order of first occurrence.

    ``previous`` is the tensor that holds the target's cells before the statement, if it has any. ``resets`` says that
    the statement starts all of them anew, by ``start``; ``restarts``, that it does so with those that the target's
    index list can reach where these conditions hold (`tcdsl.frontend.stores.partial_resets` records such a sketch).
    ``sized`` is the statement of the same function that has inferred the extents of an existing target, if one has;
    ``weak`` says that only whole numbers of Python have given the target its type. ``bound_at(name, line)`` says where
    the function has bound a name in front of a line of the statement.
    """

    target: Access
    dtype: str
    extents: tuple[Expr | None, ...]
    mode: str
    accumulate: str
    start: Start
    value: Expr
    variables: tuple[str, ...]
    ranges: tuple[ExplicitRange, ...] = ()
    conditions: tuple[Expr, ...] = ()
    filters: tuple[Expr, ...] = ()
    unique: bool = False
    oob: str = "check"
    label: str = ""
    previous: str = ""
    resets: bool = False
    restarts: tuple[Expr, ...] | None = None
    weak: bool = False
    sized: Span | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    bound_at: Callable[[str, int], Span | None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Resolved:
    """What range inference makes of a sketch.

    ``statements`` in order, the last one writing the sketch's target; the others compute nested reductions into
    temporary tensors. ``tensors`` declares what the statements make, in the same order. ``assertions`` hold at the
    call.
    """

    statements: tuple[Statement, ...]
    tensors: tuple[Tensor, ...]
    assertions: tuple[Assertion, ...]


def variables_of(expr: Expr) -> list[str]:
    """The free index variables in the order of occurrence, with repetitions."""
    found: list[str] = []

    # No generators: each name would pass all that stand around it.
    def visit(expr: Expr, bound: tuple[str, ...]) -> None:
        if isinstance(expr, IndexValue) and expr.name not in bound:
            found.append(expr.name)
        bound = (*bound, *expr.variables) if isinstance(expr, Reduction) else bound
        for part in children(expr):
            visit(part, bound)

    visit(expr, ())
    return found


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
