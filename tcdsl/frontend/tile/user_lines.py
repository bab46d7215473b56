"""The user's line that is being executed, in decorated functions, helpers and outside of both, and what names hold."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from tcdsl.errors import TcdslError
from tcdsl.frontend.staging.session import current_session
from tcdsl.installation import FOLDER
from tcdsl.span import Span

__all__ = ["enclosing_frames", "fault", "location", "names_held"]

_BETWEEN = (contextlib.__file__, functools.__file__)


def user_frame() -> FrameType | None:
    """The innermost frame that is not the library's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(FOLDER) and name not in _BETWEEN:
            return frame
        frame = frame.f_back
    return None


def enclosing_frames() -> list[FrameType]:
    """The user's frames that are being executed, from the innermost expression to the function that holds it."""
    frame, found = user_frame(), []
    # Rewritten statements, and comprehensions, are functions inside of the user's.
    while frame is not None:
        own = not frame.f_code.co_filename.startswith(FOLDER)
        if own:
            found.append(frame)
        if own and not _is_inner(frame.f_code.co_name):
            break
        frame = frame.f_back
    return found


def location() -> Span | None:
    """The user's expression that is being executed."""
    frame, session = user_frame(), current_session()
    if session is not None and (frame is None or frame.f_code.co_filename in session.filenames):
        return session.location()
    return None if frame is None else Span.executed(frame, frame.f_lasti)


def fault(kind: type[TcdslError], fact: str, hint: str = "", notes: Sequence[str] = ()) -> TcdslError:
    """The error for what is wrong at the user's line that is being executed."""
    return kind.at(fact, location(), hint, tuple(notes))


def names_held(kind: type, key: Callable[[Any], Any] = id) -> dict[Any, str]:
    """What the user calls the objects of this kind where their line is being executed, by their ids or another key.

    What a list holds is called by its place: ``x_0`` is `x[0]`.
    """
    frame = next(reversed(enclosing_frames()), None)
    found: dict[Any, str] = {}
    for name, value in () if frame is None else frame.f_locals.items():
        if isinstance(value, kind):
            found.setdefault(key(value), name)
        elif isinstance(value, list | tuple):
            for k, each in enumerate(value):
                if isinstance(each, kind):
                    found.setdefault(key(each), f"{name}_{k}")
    return found


def _is_inner(name: str) -> bool:
    return name in ("<lambda>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
