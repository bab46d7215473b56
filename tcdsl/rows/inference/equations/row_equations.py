"""Equations between rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tcdsl.rows.inference.equations.facts import equate, set_owners
from tcdsl.rows.inference.variables.origin import Contradiction, Origin, SourcePlace, axes
from tcdsl.rows.inference.variables.row import MOST_AXES, Dimension, Row, RowVariable
from tcdsl.rows.inference.variables.transaction import ShapeConstraint, ShapeVariable, Transaction

__all__ = ["Meeting", "bind", "equate_rows", "row_of"]


@dataclass(frozen=True, slots=True)
class Meeting:
    """For messages, the two rows that meet: of which tensor each is, and where a spec says that they do.

    ``places`` are those of the leading and of the trailing axes of the right row, ``place`` that of the row.
    """

    left: str = "one side"
    right: str = "the other"
    left_row: str = ""
    right_row: str = ""
    place: SourcePlace | None = None
    places: tuple[tuple[SourcePlace, ...], tuple[SourcePlace, ...]] = ((), ())
    hint: str = ""

    def lengths(self, left: str, right: str) -> Contradiction:
        """The rows have numbers of axes that differ."""
        return Contradiction(f"{self.left} has {left}, and {self.right} has {right}", hint=self.hint, place=self.place)

    def of_leading(self, position: int) -> SourcePlace | None:
        """Where the leading axis at ``position`` of the right row is written."""
        return self.places[0][position] if position < len(self.places[0]) else self.place

    def of_trailing(self, position: int) -> SourcePlace | None:
        """Where the trailing axis at ``position`` from the right is written."""
        found = self.places[1]
        return found[-1 - position] if position < len(found) else self.place


def row_of(axes_: Sequence[Dimension]) -> Row:
    """The closed row of these axes."""
    return Row((), None, tuple(axes_))


def bind(transaction: Transaction, variable: RowVariable, row: Row) -> None:
    """``variable`` is ``row``, which is resolved and does not contain it. `Contradiction` above the limit of axes."""
    if len(row.leading) + len(row.trailing) > MOST_AXES:
        raise Contradiction(
            f"no shape satisfies this: a row would need more than {MOST_AXES} axes",
            hint="a row is made to contain itself and more axes: look at what it is stored to or compared with",
        )
    for axis in (*row.leading, *row.trailing):
        set_owners(transaction, axis, variable.owners)
    transaction.set(variable, "binding", row)
    other = row.variable
    if other is not None:
        owners = tuple(dict.fromkeys(other.owners + variable.owners))
        if owners != other.owners:
            transaction.set(other, "owners", owners)
        if variable.least and not other.least:
            transaction.set(other, "least", True)
        if variable.fallback is not None and other.fallback is None:
            transaction.set(other, "fallback", variable.fallback)
    transaction.retire(variable)


def equate_rows(
    transaction: Transaction, left: Row, right: Row, meeting: Meeting, origin: Origin | None = None
) -> None:
    """Both rows have the same axes. What cannot be decided yet is left to a constraint."""
    constraint = RowEquation(left, right, meeting, transaction.origin if origin is None else origin)
    constraint.narrow(transaction)
    if not constraint.done:
        transaction.watch(constraint)


class RowEquation(ShapeConstraint):
    """``left`` and ``right`` have the same axes.

    It waits in one case alone: ``[a] r = s [b]``, with variables r and s. Whether a and b are one axis depends on how
    many there are.
    """

    __slots__ = ("left", "meeting", "right")

    def __init__(self, left: Row, right: Row, meeting: Meeting, origin: Origin) -> None:
        super().__init__(origin)
        self.left = left
        self.right = right
        self.meeting = meeting

    def variables(self) -> tuple[Iterable[ShapeVariable], Iterable[ShapeVariable]]:
        """Both row variables determine each other, and with them which axes are one."""
        rows = (self.left.resolved, self.right.resolved)
        found = [row.variable for row in rows if row.variable is not None]
        return found, [axis for row in rows for axis in row.open_axes]

    def narrow(self, transaction: Transaction) -> None:
        """Equate the axes that meet, from both ends, and bind a variable to what remains of the other side."""
        left, right = self.left.resolved, self.right.resolved
        if left.variable is None or right.variable is None:
            self._closed(transaction, left, right)
        else:
            self._open(transaction, left, right)

    def _closed(self, transaction: Transaction, left: Row, right: Row) -> None:
        # Rows without a variable have all their axes on the right.
        transaction.finish(self)
        fixed, flexible = (left, right) if left.variable is None else (right, left)
        row = self.meeting.left_row if fixed is left else self.meeting.right_row
        other = self.meeting.right_row if fixed is left else self.meeting.left_row
        count = len(fixed.trailing)
        needed = len(flexible.leading) + len(flexible.trailing)
        if needed > count or (flexible.variable is None and needed < count):
            here = axes(count, row)
            there = ("at least " if flexible.variable is not None else "") + axes(needed, other)
            raise self.meeting.lengths(*((here, there) if fixed is left else (there, here)))
        head, tail = len(flexible.leading), count - len(flexible.trailing)
        for position, pair in enumerate(zip(fixed.trailing[:head], flexible.leading, strict=True)):
            equate(transaction, *pair, self.meeting.of_leading(position))
        pairs = list(zip(fixed.trailing[tail:], flexible.trailing, strict=True))
        for position, pair in enumerate(pairs):
            equate(transaction, *pair, self.meeting.of_trailing(len(pairs) - 1 - position))
        if flexible.variable is not None:
            bind(transaction, flexible.variable, row_of(fixed.trailing[head:tail]))

    def _open(self, transaction: Transaction, left: Row, right: Row) -> None:
        head = min(len(left.leading), len(right.leading))
        tail = min(len(left.trailing), len(right.trailing))
        for position, pair in enumerate(zip(left.leading[:head], right.leading[:head], strict=True)):
            equate(transaction, *pair, self.meeting.of_leading(position))
        for position in range(tail):
            pair = (left.trailing[-1 - position], right.trailing[-1 - position])
            equate(transaction, *pair, self.meeting.of_trailing(position))
        rest = Row(left.leading[head:], left.variable, left.trailing[: len(left.trailing) - tail])
        other = Row(right.leading[head:], right.variable, right.trailing[: len(right.trailing) - tail])
        if rest.variable is other.variable:
            if rest.least_length != other.least_length:
                fact = "a row cannot equal itself with more axes"
                raise Contradiction(fact, place=self.meeting.place)
            if not rest.least_length:
                transaction.finish(self)
        elif not other.least_length:
            transaction.finish(self)
            _bind_either(transaction, other, rest)
        elif not rest.least_length:
            transaction.finish(self)
            _bind_either(transaction, rest, other)


def _bind_either(transaction: Transaction, bare: Row, row: Row) -> None:
    """``bare`` is nothing but its variable."""
    variable, other = bare.variable, row.variable
    if variable is None or other is None:
        raise ValueError("both rows are open")
    if not row.least_length and len(variable.watchers) > len(other.watchers):
        # Of two variables, the one that fewer constraints wait for.
        variable, row = other, bare
    bind(transaction, variable, row)
