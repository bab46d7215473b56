"""Long work shows itself: a line in terminals and notebooks after half a second; nothing in pipes, logs and tests.

::

    with shown("compiling attention"):
        ...
        advance("12 of 43 nests")       # compiling attention: 12 of 43 nests
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tcdsl.config import settings

__all__ = ["advance", "shown"]

_PATIENCE = 0.5
_EVERY = 0.1


class _Compilation:
    """What is done: the text of the line."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.part = ""

    @property
    def text(self) -> str:
        return f"{self.title}: {self.part}" if self.part else f"{self.title} ..."


class _Shown(threading.local):
    work: _Compilation | None = None


_SHOWN = _Shown()


@contextmanager
def shown(title: str) -> Iterator[None]:
    """While the block runs, show ``title`` and what `advance` said last, once it has taken half a second."""
    place = _place() if settings().progress and _SHOWN.work is None else None
    if place is None:
        yield
        return
    work = _SHOWN.work = _Compilation(title)
    finished = threading.Event()
    watcher = threading.Thread(target=_watch, args=(work, finished, place), name="tcdsl progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        _SHOWN.work = None
        finished.set()
        # Nothing may be written into what the user writes next.
        watcher.join()


def advance(part: str) -> None:
    """What of the work in this thread is done."""
    if _SHOWN.work is not None:
        _SHOWN.work.part = part


def _watch(work: _Compilation, finished: threading.Event, place: Callable[[], Any]) -> None:
    if finished.wait(_PATIENCE):
        return
    with suppress(Exception), place() as write:
        while True:
            write(work.text)
            if finished.wait(_EVERY):
                return


def _place() -> Callable[[], Any] | None:
    # Where lines are shown, if there is such a place.
    if _in_notebook():
        return _notebook
    with suppress(AttributeError, ValueError):  # there is no standard error, or it is closed
        if sys.stderr.isatty():
            return _terminal
    return None


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


@contextmanager
def _terminal() -> Iterator[Callable[[str], None]]:
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("") as status:
        yield lambda text: status.update(escape(text))


@contextmanager
def _notebook() -> Iterator[Callable[[str], None]]:
    import IPython.display

    display: Any = IPython.display.display
    handle = display({"text/plain": ""}, raw=True, display_id=True)
    try:
        yield lambda text: handle.update({"text/plain": text}, raw=True)
    finally:
        handle.update({"text/plain": ""}, raw=True)
