"""What is open and connected to given shapes, and which part of that they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tcdsl.rows.inference.equations.axis_joins import AxisJoin
from tcdsl.rows.inference.equations.row_joins import RowJoin
from tcdsl.rows.inference.variables.dimension import Dimension
from tcdsl.rows.inference.variables.row import Row, RowVariable
from tcdsl.rows.inference.variables.shape import Shape
from tcdsl.rows.inference.variables.transaction import Constraint, Variable, constraints_of

__all__ = ["OpenVariables"]


class OpenVariables:
    """``rows`` and ``axes`` are the open variables that constraints connect with ``shapes``, operands before results.

    ``needed`` are those of the shapes themselves, and of what determines them: faults are reported for these alone,
    since other parts of a graph may be not finished. ``constraints`` are those that wait for any of them.
    """

    def __init__(self, shapes: Sequence[Shape]) -> None:
        wanted = [variable for shape in shapes for row in shape.rows for variable in _open(row)]
        self.needed = set(_ordered(wanted, below_only=True))
        ordered = _ordered(wanted, below_only=False)
        self.rows = [variable for variable in ordered if isinstance(variable, RowVariable)]
        self.axes = [variable for variable in ordered if isinstance(variable, Dimension)]
        self.constraints = list(dict.fromkeys(c for variable in ordered for c in constraints_of(variable)))
        self.owned: set[Variable] = set()
        """What parameters determine."""
        self.optional: set[Variable] = set()
        """What those rows of parameters alone determine that may have no axes."""
        for variable in ordered:
            self._mark(variable)

    def _mark(self, variable: Variable) -> None:
        below = [v for v in _neighbours(variable, below_only=True) if v is not variable]
        owned = [v for v in below if v in self.owned]
        if not variable.owners and not owned:
            return
        self.owned.add(variable)
        if all(owner.optional for owner in variable.owners) and all(v in self.optional for v in owned):
            self.optional.add(variable)


def _open(row: Row) -> list[Variable]:
    resolved = row.resolved
    found: list[Variable] = list(resolved.open_axes)
    return found if resolved.variable is None else [*found, resolved.variable]


def _operands(constraint: Constraint) -> list[Variable]:
    """The open variables on the side of the operands."""
    if isinstance(constraint, RowJoin):
        return [variable for row in constraint.operands for variable in _open(row)]
    if isinstance(constraint, AxisJoin):
        return [axis.root for axis in constraint.operands if axis.root.size is None]
    determined, others = constraint.variables()
    return [*determined, *others]


def _results(constraint: Constraint) -> list[Variable]:
    if isinstance(constraint, RowJoin):
        return _open(constraint.result)
    if isinstance(constraint, AxisJoin):
        return [constraint.result] if constraint.result.size is None else []
    return _operands(constraint)


def _neighbours(variable: Variable, *, below_only: bool) -> Iterable[Variable]:
    for constraint in constraints_of(variable):
        if not below_only or variable in _results(constraint):
            yield from _operands(constraint)
        if not below_only:
            yield from _results(constraint)


def _ordered(wanted: Iterable[Variable], *, below_only: bool) -> list[Variable]:
    """All that are connected, each after what determines it (cycles aside)."""
    found: dict[Variable, None] = {}
    seen: set[Variable] = set()
    for start in wanted:
        if start in seen:
            continue
        seen.add(start)
        stack = [(start, iter(list(_neighbours(start, below_only=below_only))))]
        while stack:
            variable, rest = stack[-1]
            following = next((v for v in rest if v not in seen), None)
            if following is None:
                stack.pop()
                found[variable] = None
            else:
                seen.add(following)
                stack.append((following, iter(list(_neighbours(following, below_only=below_only)))))
    return list(found)
