"""The user's line that is being executed, for errors of operators on tensors outside of decorated functions."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcdsl.errors import TcdslError, raise_diagnostics
from tcdsl.installation import FOLDER
from tcdsl.span import Span

__all__ = ["fault", "located", "user_location"]

_BETWEEN = (contextlib.__file__, functools.__file__)


def user_location() -> Span | None:
    """The innermost expression that is being executed and is not the library's own."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(FOLDER) and code.co_filename not in _BETWEEN:
            return Span.executed(frame, frame.f_lasti)
        frame = frame.f_back  # type: ignore[assignment]
    return None


def fault(kind: type[TcdslError], fact: str, hint: str = "", notes: Sequence[str] = ()) -> TcdslError:
    """The error for what is wrong at the user's line that is being executed."""
    return kind.at(fact, user_location(), hint, notes=tuple(notes))


@contextlib.contextmanager
def located(location: Span | None) -> Iterator[None]:
    """Faults that have no place of their own are shown at ``location``: where a node was made that is staged later."""
    try:
        yield
    except TcdslError as error:
        if location is None or not error.diagnostics or any(each.span is not None for each in error.diagnostics):
            raise
        placed = [replace(each, span=location) for each in error.diagnostics]
    else:
        return
    raise_diagnostics(placed)
