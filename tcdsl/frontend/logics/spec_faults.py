"""Faults of specs as diagnostics: the caret stands inside the spec, in the user's source where it is written there."""

from __future__ import annotations

import linecache

from tcdsl.errors import Diagnostic, DslSyntaxError, ShapeError
from tcdsl.rows.spec import SpecError, SpecSyntaxError
from tcdsl.span import Span

__all__ = ["SpecPlaces", "spec_diagnostic"]


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
