"""Closing: shapes that are needed become known, by defaults where constraints leave a choice."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from tcdsl.errors import Diagnostic, ShapeError, raise_diagnostics
from tcdsl.rows.inference.equations.affine_axes import AffineAxis
from tcdsl.rows.inference.equations.axis_joins import AxisJoin
from tcdsl.rows.inference.equations.facts import set_fallback, set_label, set_size
from tcdsl.rows.inference.equations.row_equations import bind, row_of
from tcdsl.rows.inference.equations.row_joins import RowJoin
from tcdsl.rows.inference.variables.origin import Contradiction, Origin, Reason
from tcdsl.rows.inference.variables.row import EMPTY, Dimension, Row, RowOwner, RowVariable
from tcdsl.rows.inference.variables.shape import Shape
from tcdsl.rows.inference.variables.transaction import ShapeConstraint, ShapeVariable, Transaction, constraints_of

__all__ = ["OpenVariables", "close"]


def close(shapes: Sequence[Shape], origin: Origin) -> None:
    """Make ``shapes``, and all that they depend on, known.

    Defaults are taken in this order, and again from the start after each that changed something:

    1. a result has no more axes than the operands that are known have;
    2. an axis has the least size that was said of it: positions of a result, data of size 1 that is stretched;
    3. what broadcasts into a known row has as many axes, and what broadcasts into a known axis its size and label:
       parameters take what is above them;
    4. affine axes: indices take the largest size, axes the least;
    5. a row or an axis that only numbers determine is that of a number.

    Then, for what is needed: the input row of a parameter with given output axes is empty, an axis of which only a
    minimum is known has that size, and results that depend on no parameter are empty, or of size 1. What remains are
    axes of parameters that nothing determines: a `ShapeError` names them, and nothing has changed.
    """
    if all(shape.is_known for shape in shapes):
        return
    with Transaction(origin) as transaction:
        _Closing(transaction, shapes).run()


Change = Callable[[], None]


class _Closing:
    def __init__(self, transaction: Transaction, shapes: Sequence[Shape]) -> None:
        self._transaction = transaction
        self._shapes = shapes
        self._refuted: Contradiction | None = None

    def run(self) -> None:
        steps = (
            self._shortest_results,
            self._least_axes,
            self._rows_below,
            self._axes_below,
            self._affine_axes,
            self._rows_of_numbers,
            self._axes_of_numbers,
            self._optional_rows,
            self._remaining_rows,
            self._remaining_axes,
        )
        while True:
            scope = OpenVariables(self._shapes)
            if not scope.needed:
                return
            # Of a step, all changes; after one that changed something, again from the start.
            if not any(sum(map(self._try, step(scope))) for step in steps):
                break
        undetermined = list(self._undetermined(scope))
        if self._refuted is not None and not undetermined:
            raise self._refuted
        raise_diagnostics(undetermined or [self._open_sizes(scope)])

    def _try(self, change: Change) -> bool:
        """Take a default, unless it is contradictory: then what it decides is left to others."""
        found = self._transaction.attempt(change)
        if found is not None and self._refuted is None:
            self._refuted = found
        return found is None

    def _empty(self, variable: RowVariable) -> Change:
        return partial(bind, self._transaction, variable, EMPTY)

    def _size(self, axis: Dimension, size: int) -> Change:
        return partial(set_size, self._transaction, axis, size, _LEAST)

    # -- defaults for all that is connected

    def _shortest_results(self, scope: OpenVariables) -> Iterator[Change]:
        for variable in scope.rows:
            if variable.binding is None and (variable.least or any(_lower(variable, weak=False))):
                yield self._empty(variable)

    def _least_axes(self, scope: OpenVariables) -> Iterator[Change]:
        for axis in scope.axes:
            if axis.root.size is None and axis.root.least is not None:
                yield self._size(axis, max(axis.root.least, axis.root.minimum))

    def _rows_below(self, scope: OpenVariables) -> Iterator[Change]:
        for variable in reversed(scope.rows):
            lengths = [] if variable.binding is not None else list(_upper(variable))
            if lengths:
                yield partial(self._lengthen, variable, min(lengths))

    def _lengthen(self, variable: RowVariable, count: int) -> None:
        bind(self._transaction, variable, row_of([Dimension(variable.owners) for _ in range(count)]))

    def _axes_below(self, scope: OpenVariables) -> Iterator[Change]:
        for axis in reversed(scope.axes):
            root = axis.root
            if root.size is None and root.cap is not None:
                yield partial(self._take_cap, root)
                if root.size is None:
                    yield self._size(root, 1)

    def _take_cap(self, root: Dimension) -> None:
        cap, label = root.cap, root.cap_label
        if label is not None:
            set_label(self._transaction, root, *label)
        if cap is not None:
            set_size(self._transaction, root, cap, root.cap_reason)

    def _affine_axes(self, scope: OpenVariables) -> Iterator[Change]:
        for constraint in scope.constraints:
            if isinstance(constraint, AffineAxis) and not constraint.done and constraint.choice() is not None:
                yield partial(constraint.choose, self._transaction)

    def _rows_of_numbers(self, scope: OpenVariables) -> Iterator[Change]:
        for variable in scope.rows:
            if variable.binding is not None:
                continue
            if any(_lower(variable, weak=True)):
                yield self._empty(variable)
            elif variable.fallback is not None:
                yield partial(self._take_fallback, variable, variable.fallback)

    def _take_fallback(self, variable: RowVariable, count: int) -> None:
        made = [Dimension(variable.owners) for _ in range(count)]
        for axis in made:
            set_fallback(self._transaction, axis, 1)
        bind(self._transaction, variable, row_of(made))

    def _axes_of_numbers(self, scope: OpenVariables) -> Iterator[Change]:
        for axis in scope.axes:
            if axis.root.size is None and axis.root.fallback is not None:
                yield self._size(axis, axis.root.fallback)

    # -- defaults for what is needed

    def _optional_rows(self, scope: OpenVariables) -> Iterator[Change]:
        for variable in scope.rows:
            if variable in scope.needed and variable.binding is None and variable in scope.optional:
                yield self._empty(variable)

    def _remaining_rows(self, scope: OpenVariables) -> Iterator[Change]:
        for variable in scope.rows:
            if variable in scope.needed and variable.binding is None and variable not in scope.owned:
                yield self._empty(variable)

    def _remaining_axes(self, scope: OpenVariables) -> Iterator[Change]:
        for axis in scope.axes:
            root = axis.root
            if axis not in scope.needed or root.size is not None:
                continue
            if root.minimum:
                yield self._size(root, root.minimum)
            elif root not in scope.owned and not _is_affine(root):
                yield self._size(root, 1)

    # -- faults

    def _undetermined(self, scope: OpenVariables) -> Iterator[Diagnostic]:
        here = self._transaction.origin.span
        told: set[RowOwner] = set()
        variables: list[ShapeVariable] = [*scope.rows, *scope.axes]
        for variable in variables:
            new = [owner for owner in variable.owners if owner not in told] if variable in scope.needed else []
            if new:
                told.update(new)
                first = next((owner for owner in new if not owner.optional), new[0])
                others = [owner for owner in variable.owners if owner != first]
                span = here if first.origin is None or first.origin.span is None else first.origin.span
                yield Diagnostic(ShapeError, _fact(first, others, variable), span, self._notes(), _hint(first))

    def _open_sizes(self, scope: OpenVariables) -> Diagnostic:
        fact = "nothing determines the shape"
        affine = next((c for c in scope.constraints if isinstance(c, AffineAxis)), None)
        if affine is not None:
            fact = f"nothing determines the sizes of the indices of `{affine.text}` in `{affine.place.text}`"
        span = self._transaction.origin.span
        return Diagnostic(ShapeError, fact, span, self._notes(), "use the name in another operand, or give its size")

    def _notes(self) -> tuple[str, ...]:
        lines = [f"{shape.name}: {shape}" for shape in self._shapes if shape.name and not shape.is_known]
        if self._refuted is not None:
            lines.append(f"the least sizes do not fit: {self._refuted.fact}")
        return tuple(lines)


_LEAST = Reason(text="an axis that nothing else determines")


def _lower(variable: RowVariable, *, weak: bool) -> Iterator[bool]:
    """Of the results that end in ``variable``: for each operand that is known, that it is."""
    for constraint in constraints_of(variable):
        if isinstance(constraint, RowJoin) and constraint.result.resolved.variable is variable:
            for row in constraint.operands:
                if row.closed and row.is_weak == weak:
                    yield True


def _upper(variable: RowVariable) -> Iterator[int]:
    """How many axes ``variable`` can stand for, by the known rows that it broadcasts into."""
    for constraint in constraints_of(variable):
        if not isinstance(constraint, RowJoin):
            continue
        result = constraint.result.resolved
        if result.variable is not None:
            continue
        for row in constraint.operands:
            if row.resolved.variable is variable:
                yield len(result.trailing) - row.least_length


def _is_affine(variable: ShapeVariable) -> bool:
    return any(isinstance(constraint, AffineAxis) for constraint in constraints_of(variable))


def _fact(owner: RowOwner, others: Sequence[RowOwner], variable: ShapeVariable) -> str:
    if isinstance(variable, Dimension):
        same = " and ".join(f"{other.place_of(variable)} of `{other.name}`" for other in others)
        fact = f"nothing determines the size of {owner.place_of(variable)} of `{owner.name}`"
        return f"{fact}, which is {same} too" if same else fact
    same = " and ".join(f"the {other.row} axes of `{other.name}`" for other in others)
    fact = f"`{owner.name}` has {owner.row} axes that nothing determines"
    return f"{fact}, which are {same} too" if same else fact


def _hint(owner: RowOwner) -> str:
    # A parameter is called by its name first, then by that of the layer: w.L1.
    name = owner.name.split(".", maxsplit=1)[0]
    if owner.row == "output":
        return f'write "{name}"[n], or param("{name}", o=n)'
    return f'write param("{name}", i=n), or compose it with something'


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
        self.owned: set[ShapeVariable] = set()
        """What parameters determine."""
        self.optional: set[ShapeVariable] = set()
        """What those rows of parameters alone determine that may have no axes."""
        for variable in ordered:
            self._mark(variable)

    def _mark(self, variable: ShapeVariable) -> None:
        below = [v for v in _neighbours(variable, below_only=True) if v is not variable]
        owned = [v for v in below if v in self.owned]
        if not variable.owners and not owned:
            return
        self.owned.add(variable)
        if all(owner.optional for owner in variable.owners) and all(v in self.optional for v in owned):
            self.optional.add(variable)


def _open(row: Row) -> list[ShapeVariable]:
    resolved = row.resolved
    found: list[ShapeVariable] = list(resolved.open_axes)
    return found if resolved.variable is None else [*found, resolved.variable]


def _operands(constraint: ShapeConstraint) -> list[ShapeVariable]:
    """The open variables on the side of the operands."""
    if isinstance(constraint, RowJoin):
        return [variable for row in constraint.operands for variable in _open(row)]
    if isinstance(constraint, AxisJoin):
        return [axis.root for axis in constraint.operands if axis.root.size is None]
    determined, others = constraint.variables()
    return [*determined, *others]


def _results(constraint: ShapeConstraint) -> list[ShapeVariable]:
    if isinstance(constraint, RowJoin):
        return _open(constraint.result)
    if isinstance(constraint, AxisJoin):
        return [constraint.result] if constraint.result.size is None else []
    return _operands(constraint)


def _neighbours(variable: ShapeVariable, *, below_only: bool) -> Iterable[ShapeVariable]:
    for constraint in constraints_of(variable):
        if not below_only or variable in _results(constraint):
            yield from _operands(constraint)
        if not below_only:
            yield from _results(constraint)


def _ordered(wanted: Iterable[ShapeVariable], *, below_only: bool) -> list[ShapeVariable]:
    """All that are connected, each after what determines it (cycles aside)."""
    found: dict[ShapeVariable, None] = {}
    seen: set[ShapeVariable] = set()
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
