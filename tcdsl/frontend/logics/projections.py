"""Projections: the index lists of a statement's target and operands, and the ranges of its index variables.

::

    Projections of "ij;jk=>ik" for A: float64[N, K] and B: float64[K, M]

        target        i, k
        operands      i, j        j, k
        ranges        0 <= i < N, 0 <= j < K, 0 <= k < M

They follow from a logic and the extents of the operands (`project`): axes of row variables whose extent is 1 stretch.
In diagnostics of faults of specs the caret stands inside the spec, in the user's source where it is written there.
"""

from __future__ import annotations

import linecache
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword

from tcdsl.errors import Diagnostic, DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.arithmetic import meet
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.recognition import CONSTANTS
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Constant, ExplicitRange, Expr, IndexValue
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.text.domain_text import domain_name
from tcdsl.rows.alignment import Alignment
from tcdsl.rows.ranks import RowRanks
from tcdsl.rows.spec import AxisSpec, SpecError, SpecSyntaxError
from tcdsl.span import Span

__all__ = ["Projections", "project", "spec_diagnostic"]


@dataclass(frozen=True, slots=True)
class Projections:
    """Where the points of a statement read and write.

    ``target`` and ``operands`` are index expressions of ``variables``, one per axis in the order of storage. ``ranges``
    bounds the variables that stand alone on an axis; the others follow from the accesses. ``rows`` are the target's.
    """

    target: tuple[Expr, ...]
    operands: tuple[tuple[Expr, ...], ...]
    variables: tuple[str, ...]
    ranges: tuple[ExplicitRange, ...]
    rows: RowRanks
    text: str = field(default="", compare=False)


def project(
    session: Session,
    alignment: Alignment,
    operands: Sequence[Sequence[Expr]],
    target: Sequence[Expr] | None = None,
    span: Span | None = None,
) -> Projections:
    """The projections of ``alignment`` for operands of these extents, and for the target's if it has its extents.

    `ShapeError` where row variables do not broadcast, or a position is known to be out of range.
    """
    return _Projector(session, alignment, span).project(operands, target)


class _Projector:
    def __init__(self, session: Session, alignment: Alignment, span: Span | None) -> None:
        self._session = session
        self._alignment = alignment
        self._span = span
        self._places = SpecPlaces(alignment.text, span)
        names = FreshNames(session.builder.size_names())
        self._names = {name: names.fresh(_spoken(name)) for name in alignment.variables}
        # The axes where a variable stands alone: operand, axis, extent.
        self._met: dict[str, list[tuple[int, int, Expr]]] = {}
        self._stretched: set[tuple[int, int]] = set()

    def project(self, operands: Sequence[Sequence[Expr]], target: Sequence[Expr] | None) -> Projections:
        for k, (indices, extents) in enumerate(zip(self._alignment.operands, operands, strict=True)):
            for axis, (entry, extent) in enumerate(zip(indices, extents, strict=True)):
                self._note(k, axis, entry, extent)
        extents_of = {name: self._common(name) for name in self._met}
        if target is not None:
            for entry, extent in zip(self._alignment.result, target, strict=True):
                self._into_target(entry, extent, extents_of)
        return Projections(
            tuple(map(self._index, self._alignment.result)),
            tuple(
                tuple(
                    integer(0) if (k, axis) in self._stretched else self._index(entry)
                    for axis, entry in enumerate(indices)
                )
                for k, indices in enumerate(self._alignment.operands)
            ),
            tuple(self._names.values()),
            tuple(
                ExplicitRange(self._names[name], integer(0), extent, False, self._span)
                for name, extent in extents_of.items()
            ),
            self._alignment.rows,
            self._alignment.text,
        )

    def _note(self, operand: int, axis: int, entry: AxisSpec, extent: Expr) -> None:
        if entry.name is not None:
            self._met.setdefault(entry.name, []).append((operand, axis, extent))
        elif entry.position is not None:
            self._require_position(entry, extent)

    def _require_position(self, entry: AxisSpec, extent: Expr) -> None:
        position = integer(entry.position or 0)
        fact = f"the spec fixes the position {entry.position} of an axis whose extent is {valued(extent)}"
        span, notes = self._places.span(entry.place), self._places.notes(entry.place)
        condition = apply("lt", position, extent)
        if isinstance(condition, Constant) and not condition.value:
            raise ShapeError.at(fact, span, "a position has to be less than the extent", notes=notes)
        self._session.builder.require(condition, "\n".join((fact, *(f"    {note}" for note in notes))), span)

    def _common(self, name: str) -> Expr:
        """The extent that all axes of a variable have, apart from those that stretch."""
        axes = self._met[name]
        # Those that do not stretch come first: range inference compares them with each other.
        fixed = [found for found in axes if not self._stretches(found)]
        common = (fixed or axes)[0][2]
        joined = [(fixed or axes)[0]]
        for found in axes:
            if not self._stretches(found) or found in joined:
                continue
            operand, axis, extent = found
            relation = meet(self._session, common, extent)
            if relation == "right":
                self._stretched.add((operand, axis))
            elif relation == "left" and not fixed:
                self._stretched.update((earlier, place) for earlier, place, _ in joined)
                common, joined = extent, [found]
            elif relation == "left":
                self._session.builder.require_equal(common, extent, self._differ(common, extent), self._span)
            else:
                joined.append(found)
        return common

    def _stretches(self, found: tuple[int, int, Expr]) -> bool:
        return self._alignment.operands[found[0]][found[1]].stretches

    def _differ(self, left: Expr, right: Expr) -> str:
        return f"the arrays do not broadcast: extents {valued(left)} and {valued(right)} meet on one axis"

    def _into_target(self, entry: AxisSpec, extent: Expr, common: dict[str, Expr]) -> None:
        if entry.position is not None:
            self._require_position(entry, extent)
        name = entry.name
        if name is None or not entry.stretches or name not in common:
            return
        relation = meet(self._session, common[name], extent)
        if relation == "left":
            self._stretched.update((operand, axis) for operand, axis, _ in self._met[name])
            common[name] = extent
        elif relation == "right":
            fact = (
                f"the value does not broadcast to the target: an axis of extent {valued(common[name])} meets one of 1"
            )
            hint = "a target keeps its shape; only the value's axes of extent 1 stretch"
            raise ShapeError.at(fact, self._span, hint)

    def _index(self, entry: AxisSpec) -> Expr:
        return index_expression(entry, self._names, self._places.span(entry.place))


def _spoken(name: str) -> str:
    # Programs print and parse: an index variable may not be a word of Python's.
    return domain_name(f"{name}_" if iskeyword(name) or name in CONSTANTS else name)


def index_expression(entry: AxisSpec, names: Mapping[str, str], span: Span | None) -> Expr:
    """The index on one axis as an expression: ``2 * o + k``."""
    result: Expr | None = None
    for coefficient, name in entry.terms:
        variable: Expr = IndexValue(names[name], span)
        term = variable if coefficient == 1 else apply("mul", integer(coefficient), variable, span=span)
        result = term if result is None else apply("add", result, term, span=span)
    if result is None:
        return integer(entry.offset)
    return result if not entry.offset else apply("add", result, integer(entry.offset), span=span)


def spec_diagnostic(error: SpecError, span: Span | None) -> Diagnostic:
    """The fault of the spec that stands somewhere in ``span``."""
    kind = DslSyntaxError if isinstance(error, SpecSyntaxError) else ShapeError
    places = SpecPlaces(error.text, span)
    place = (error.start, error.stop)
    return Diagnostic(kind, error.fact, places.span(place), places.notes(place), error.hint)


class SpecPlaces:
    """Where the parts of a spec are: in the source around ``span``, if that has the spec once as a literal."""

    def __init__(self, text: str, span: Span | None) -> None:
        self._text = text
        self._around = span
        self._found = _found(text, span)

    def span(self, place: tuple[int, int]) -> Span | None:
        """The part ``place`` of the spec in the source, or all that is known."""
        if self._found is None or self._around is None:
            return self._around
        line, column = self._found
        start, stop = place
        return Span(self._around.filename, line, column + start, line, column + max(stop, start + 1))

    def notes(self, place: tuple[int, int]) -> tuple[str, ...]:
        """The spec with a caret, for where the source cannot show it."""
        if self._found is not None:
            return ()
        start, stop = place
        shown = "".join(" " if letter.isspace() else letter for letter in self._text)
        return (shown, " " * start + "^" * max(1, stop - start))


def _found(text: str, span: Span | None) -> tuple[int, int] | None:
    # The line and column of the text in the source, if it stands there once as it is.
    if span is None or not text:
        return None
    places = []
    for line in range(span.line, span.end_line + 1):
        source = linecache.getline(span.filename, line)
        first = span.column if line == span.line else 0
        last = span.end_column if line == span.end_line else len(source)
        quoted = [f"{quote}{text}{quote}" for quote in "\"'"]
        places += [
            (line, column + 1)
            for column in range(first, last)
            if any(source.startswith(literal, column) for literal in quoted)
        ]
    return places[0] if len(places) == 1 else None
