"""Faults of specs as diagnostics: the caret stands inside the spec, in the user's source where it is written there."""

from __future__ import annotations

import linecache

from tcdsl.errors import Diagnostic, DslSyntaxError, ShapeError
from tcdsl.ir.span import Span
from tcdsl.shapes.rows.spec import SpecError, SpecSyntaxError

__all__ = ["place_in", "spec_diagnostic", "spec_notes"]


def spec_diagnostic(error: SpecError, span: Span | None) -> Diagnostic:
    """The fault of the spec that stands somewhere in ``span``."""
    kind = DslSyntaxError if isinstance(error, SpecSyntaxError) else ShapeError
    place = (error.start, error.stop)
    notes = spec_notes(error.text, place, span)
    return Diagnostic(kind, error.fact, place_in(error.text, place, span), notes, error.hint)


def place_in(text: str, place: tuple[int, int], span: Span | None) -> Span | None:
    """The part ``place`` of the spec ``text`` in the source, if ``span`` has it once as a literal; else ``span``."""
    found = _found(text, span)
    if found is None or span is None:
        return span
    line, column = found
    return Span(span.filename, line, column + place[0], line, column + max(place[1], place[0] + 1))


def spec_notes(text: str, place: tuple[int, int], span: Span | None) -> tuple[str, ...]:
    """The spec with a caret, for where the source cannot show it."""
    if _found(text, span) is not None:
        return ()
    start, stop = place
    shown = "".join(" " if letter.isspace() else letter for letter in text)
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
