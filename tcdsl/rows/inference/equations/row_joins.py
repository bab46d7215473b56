"""Rows that broadcast to one, aligned at the right."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Sequence

from tcdsl.rows.inference.equations.axis_joins import AxisJoin
from tcdsl.rows.inference.equations.row_equations import Meeting, bind, equate_rows, row_of
from tcdsl.rows.inference.variables.origin import Contradiction, Origin, SourcePlace, axes
from tcdsl.rows.inference.variables.row import EMPTY, MOST_AXES, Dimension, Row, RowVariable, known_dimension
from tcdsl.rows.inference.variables.transaction import ShapeConstraint, ShapeVariable, Transaction

__all__ = ["RowJoin", "join_rows"]


def join_rows(
    transaction: Transaction, rows: Sequence[Row], row: str, place: SourcePlace | None = None, *, kept: bool = False
) -> Row:
    """The least row that all ``rows`` broadcast to; ``row`` is its name for messages.

    With ``kept`` it counts as long as the rows, else as long as the result.
    """
    resolved = list(dict.fromkeys(each.resolved for each in rows))
    with_axes = [each for each in resolved if each.fallback is None]
    if with_axes and all(each.variable is None for each in with_axes):
        resolved = with_axes
    if len(resolved) == 1:
        return resolved[0]
    if all(each.variable is None for each in resolved) and not any(
        axis.root.size is None for each in resolved for axis in each.trailing
    ):
        return _of_known(transaction, resolved, place)
    result = Row((), RowVariable())
    join = RowJoin(result, tuple(resolved), transaction.origin, row, place)
    join.kept |= kept
    transaction.add(join)
    # What follows at once is of use to who asked.
    transaction.propagate()
    return result.resolved


def _of_known(transaction: Transaction, rows: Sequence[Row], place: SourcePlace | None) -> Row:
    """The result of data alone is like data: its axes are known, and uses do not affect them."""
    if all(each.is_weak for each in rows):
        return max(rows, key=lambda each: (len(each.trailing), each.fallback or 0))
    made = []
    for position in reversed(range(max(len(each.trailing) for each in rows))):
        present = [axis.root for each in rows if (axis := each.from_right(position)) is not None]
        if len(present) == 1:
            made.append(present[0])
            continue
        joined = Dimension()
        AxisJoin(joined, tuple(present), transaction.origin, exact=True, place=place).narrow(transaction)
        label = None if joined.label is None else (joined.label, joined.label_reason)
        weak = all(axis.weak for axis in present)
        made.append(known_dimension(joined.root.size or 0, joined.reason, label, weak=weak))
    return row_of(made)


class RowJoin(ShapeConstraint):
    """``operands`` broadcast to ``result``, aligned at the right.

    The result is as long as the longest operand, and each of its axes is the least that those of the operands broadcast
    to (`AxisJoin`). ``joins`` are those that were made so far, from the right.
    """

    __slots__ = ("_result", "joins", "operands", "place", "row")

    def __init__(
        self,
        result: Row,
        operands: tuple[Row, ...],
        origin: Origin,
        row: str,
        place: SourcePlace | None,
    ) -> None:
        super().__init__(origin)
        self._result = _Held(result)
        self.operands = operands
        self.row = row
        self.place = place
        self.joins: tuple[AxisJoin, ...] = ()

    @property
    def result(self) -> Row:
        """The row that is determined."""
        return self._result.row

    @property
    def is_waiting(self) -> bool:
        """Whether what it determines is there at all."""
        return not self.done and self._result.is_there

    def variables(self) -> tuple[Iterable[ShapeVariable], Iterable[ShapeVariable]]:
        """The result's variable determines nothing: the operands' determine it, and with it which axes meet."""
        rows = (self.result.resolved, *(row.resolved for row in self.operands))
        result = rows[0].variable
        operands = [row.variable for row in rows[1:] if row.variable is not None and row.variable is not result]
        is_open = any(row.variable is not None for row in rows)
        axes_ = [axis for row in rows for axis in row.open_axes] if is_open else []
        return ([] if result is None else [result]), [*operands, *axes_]

    def narrow(self, transaction: Transaction) -> None:
        """Draw conclusions on lengths, then align the axes that are known."""
        result = self.result.resolved
        operands = tuple(row.resolved for row in self.operands)
        self._narrow(transaction, result, list(dict.fromkeys(operands)))
        result, operands = result.resolved, tuple(row.resolved for row in operands)
        # The result holds the join, and is not held by it.
        transaction.set(self, "_result", _Held(result, weakly=not self.kept))
        transaction.set(self, "operands", operands)

    def _narrow(self, transaction: Transaction, result: Row, operands: list[Row]) -> None:
        exact = result not in operands
        operands = self._without_numbers(transaction, result, [row for row in operands if row != result])
        if not operands:
            transaction.finish(self)
            return
        if exact and len(operands) == 1:
            transaction.finish(self)
            meeting = Meeting("the result", "what it is made from", self.row, self.row, self.place)
            equate_rows(transaction, result, operands[0], meeting, self.origin)
            return
        result = self._lengthen(transaction, result, operands)
        if result.variable is not None and exact and all(row.variable is None for row in operands):
            bind(transaction, result.variable, EMPTY)
            result = result.resolved
        if result.variable is None:
            self._shorten(transaction, result, operands, exact)
        self._align(transaction, result, [row.resolved for row in operands], exact)

    def _without_numbers(self, transaction: Transaction, result: Row, operands: list[Row]) -> list[Row]:
        """The rows of numbers that have no axes are left out: they determine a row only if nothing else does."""
        kept = [row for row in operands if row.fallback is None]
        fallback = max((row.fallback for row in operands if row.fallback is not None), default=None)
        if fallback is not None and result.variable is not None and result.variable.fallback is None:
            transaction.set(result.variable, "fallback", fallback)
        return kept or operands[:1]

    def _lengthen(self, transaction: Transaction, result: Row, operands: Sequence[Row]) -> Row:
        """The result has at least the axes of each operand."""
        missing = max((row.least_length for row in operands), default=0) - result.least_length
        if missing <= 0:
            return result
        if result.variable is None:
            longest = max(operands, key=lambda row: row.least_length).least_length
            have = axes(len(result.trailing), self.row)
            raise Contradiction(
                f"a row of {axes(longest, self.row)} does not broadcast to one of {have}", place=self.place
            )
        if result.least_length + missing > MOST_AXES:
            missing = MOST_AXES + 1
        bind(transaction, result.variable, Row((), RowVariable(), tuple(Dimension() for _ in range(missing))))
        return result.resolved

    def _shorten(self, transaction: Transaction, result: Row, operands: Sequence[Row], exact: bool) -> None:
        """No operand has more axes than the result, and one has as many if it is exact."""
        length = len(result.trailing)
        reaching = [row for row in operands if row.variable is not None or len(row.trailing) == length]
        if exact and not reaching:
            longest = max(len(row.trailing) for row in operands)
            fact = f"the result has {axes(length, self.row)}, but is made from {axes(longest, self.row)}"
            raise Contradiction(fact, place=self.place)
        alone = exact and len(reaching) == 1
        for row in operands:
            if row.variable is None or row.variable.binding is not None:
                continue
            if row.least_length == length:
                bind(transaction, row.variable, EMPTY)
            elif alone:
                owners = row.variable.owners
                bind(transaction, row.variable, row_of([Dimension(owners) for _ in range(length - row.least_length)]))

    def _align(self, transaction: Transaction, result: Row, operands: Sequence[Row], exact: bool) -> None:
        """Join the axes that are known at each position from the right."""
        joins = list(self.joins)
        decided = all(row.variable is None for row in operands)
        for position, axis in enumerate(reversed(result.trailing)):
            present = tuple(each for row in operands if (each := row.from_right(position)) is not None)
            complete = exact and (
                decided or all(row.variable is None or position < len(row.trailing) for row in operands)
            )
            if position == len(joins):
                joins.append(self._join(axis, present, exact=complete))
            elif present == joins[position].operands and complete == joins[position].exact:
                continue
            else:
                transaction.set(joins[position], "operands", present)
                transaction.set(joins[position], "exact", complete)
                transaction.set(joins[position], "done", False)
            if present:
                transaction.add(joins[position])
        if len(joins) > len(self.joins):
            transaction.set(self, "joins", tuple(joins))
        if decided and result.variable is None:
            transaction.finish(self)

    def _join(self, result: Dimension, operands: tuple[Dimension, ...], *, exact: bool) -> AxisJoin:
        join = AxisJoin(result, operands, self.origin, exact=exact, place=self.place)
        join.kept = self.kept
        return join


class _Held:
    """A row of a join, whose variable may be held weakly: where it holds the join itself."""

    __slots__ = ("_row", "_variable")

    def __init__(self, row: Row, *, weakly: bool = False) -> None:
        weak = row.variable if weakly else None
        self._row = row if weak is None else Row(row.leading, None, row.trailing)
        self._variable = None if weak is None else weakref.ref(weak)

    @property
    def is_there(self) -> bool:
        return self._variable is None or self._variable() is not None

    @property
    def row(self) -> Row:
        if self._variable is None:
            return self._row
        # If it is gone nothing depends on it: any other does.
        variable = self._variable() or RowVariable()
        return Row(self._row.leading, variable, self._row.trailing)
