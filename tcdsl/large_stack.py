"""Programs that are nested more deeply than Python's stack allows: they run once more, on a thread with a large one.

Expressions are trees, and what walks them calls itself. A thousand steps of ``t = t * x + 1`` are a thousand levels,
more than Python's own limit. Raising the limit where the stack is not known to be large could crash the interpreter, so
there is a thread for the few programs that need it, and nothing changes for all others.
"""

from __future__ import annotations

import contextvars
import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tcdsl.locks import lock_of_this_process

__all__ = ["on_large_stack"]

Result = TypeVar("Result")

# Frames of Python, and bytes of the stack below them: what C needs for each is far less than their quotient.
_FRAMES = 40_000
_BYTES = 512 * 2**20
# So many seconds pass before the thread that waits looks whether the other one is still there.
_LOOK = 1.0


class _Limit:
    """Python's limit while threads with large stacks run, which is one for all threads."""

    def __init__(self) -> None:
        self._lock = lock_of_this_process()
        self._running: set[threading.Thread] = set()
        self._usual = 0

    def raised(self, thread: threading.Thread) -> None:
        """Start a thread that has a large stack."""
        with self._lock:
            # First the limit: the thread is at work before `start` returns.
            if not self._running:
                self._usual = sys.getrecursionlimit()
            self._running.add(thread)
            sys.setrecursionlimit(max(self._usual, _FRAMES))
            before = threading.stack_size(_BYTES)
            try:
                thread.start()
            finally:
                threading.stack_size(before)

    def restored(self, thread: threading.Thread) -> None:
        """The thread has ended."""
        with self._lock:
            self._running.discard(thread)
            if not self._running:
                sys.setrecursionlimit(self._usual)


_LIMIT = _Limit()


def on_large_stack(action: Callable[[], Result]) -> Result:
    """``action()`` on a thread with a large stack. `RecursionError` if that is too small as well."""
    outcome: list[Any] = []
    error: list[BaseException] = []
    context = contextvars.copy_context()
    working = threading.Lock()
    working.acquire()

    def run() -> None:
        try:
            outcome.append(context.run(action))
        except BaseException as raised:  # it is raised again where the thread was started
            error.append(raised)
        finally:
            working.release()

    thread = threading.Thread(target=run, name="tcdsl-large-stack", daemon=True)
    try:
        _LIMIT.raised(thread)
        _wait_for(thread, working)
    except RuntimeError:
        raise RecursionError from None  # the system has no memory for such a stack
    finally:
        _LIMIT.restored(thread)
    if not outcome:
        failure = error[0] if error else KeyboardInterrupt()
        cause = failure.__context__
        try:
            raise failure
        finally:
            # Else the attempt that failed before stays with it: thousands of frames, and all that they hold.
            failure.__context__ = cause
    result: Result = outcome[0]
    return result


def _wait_for(thread: threading.Thread, working: threading.Lock) -> None:
    # Neither `join` nor `is_alive`: where they are interrupted, Python 3.11 takes the thread for one that has ended,
    # and the limit would fall below the frames that it has. The lock stays closed where `run` itself is interrupted.
    while thread.ident in sys._current_frames():
        try:
            if working.acquire(timeout=_LOOK):
                return
        except KeyboardInterrupt:
            # What interrupts the thread that waits is meant for the work.
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
            )
