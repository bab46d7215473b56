"""The user's line that is being executed, for errors of operators on tensors outside of decorated functions."""

from __future__ import annotations

import contextlib
import dis
import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tcdsl.errors import TcdslError, raise_diagnostics
from tcdsl.installation import FOLDER
from tcdsl.span import Span
from tcdsl.tracebacks import user_location

__all__ = ["asked_attribute", "fault", "located"]

_BETWEEN = (contextlib.__file__, functools.__file__)


def asked_attribute() -> str:
    """Which attribute the user's expression takes of the one that is being executed: ``merge`` in ``p.grad.merge``."""
    frame = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith(FOLDER) or frame.f_code.co_filename in _BETWEEN):
        frame = frame.f_back  # type: ignore[assignment]
    if frame is None:
        return ""
    following = (each for each in dis.get_instructions(frame.f_code) if each.offset > frame.f_lasti)
    taken = next((each for each in following if each.opname not in ("CACHE", "COPY")), None)
    return str(taken.argval) if taken is not None and taken.opname in ("LOAD_ATTR", "STORE_ATTR") else ""


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
