"""Locks, what becomes of them when a process forks, and Python's collector, which waits for what takes long.

A forked process has only the thread that forked: a lock that another thread held would never be released in it, and
what that thread was changing is half done.
"""

from __future__ import annotations

import gc
import logging  # noqa: F401  # its lock is taken at forks: after ours, if it registers first, as compilers log
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar
from weakref import WeakSet

__all__ = ["COMPILING", "COMPILING_AHEAD", "computed_once", "lock_of_this_process", "without_collecting"]

Value = TypeVar("Value")

COMPILING = threading.RLock()
"""Held by whoever stages or compiles: neither isl's contexts nor LLVM's are made for several threads."""

COMPILING_AHEAD = threading.Lock()
"""Held while a thread of ours compiles what will be needed by whoever holds `COMPILING`, or waits for it."""

# A fork waits so long for compilations to end; one that is in a wait itself for the thread that forks never does.
_PATIENCE = 20.0
_OWN: WeakSet[Any] = WeakSet()
_AT_FORK = threading.local()


class computed_once(Generic[Value]):  # noqa: N801  # a decorator
    """`functools.cached_property` without the lock that Python 3.11 takes, which a forked process would wait for.

    Threads that ask at once may compute it several times; all get the same.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]
        value: Value = vars(instance).setdefault(self._compute.__name__, self._compute(instance))
        return value


def lock_of_this_process() -> threading.Lock:
    """A lock that is open in every forked process."""
    lock = threading.Lock()
    _OWN.add(lock)
    return lock


@contextmanager
def without_collecting() -> Iterator[None]:
    """Compilers make many small objects that refer to no circles: looking for some takes a sixth of their time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _compilers() -> Iterator[Any]:
    # In the order in which they are taken; the others are Numba's and LLVM's, which user functions take as well.
    yield COMPILING
    yield COMPILING_AHEAD
    numba = sys.modules.get("numba.core.compiler_lock")
    yield getattr(getattr(numba, "global_compiler_lock", None), "_lock", None)
    llvm = sys.modules.get("llvmlite.binding.ffi")
    yield getattr(getattr(getattr(llvm, "lib", None), "_lock", None), "_lock", None)


def _before() -> None:
    end = time.monotonic() + _PATIENCE
    locks = [lock for lock in _compilers() if lock is not None]
    _AT_FORK.taken = [(lock, lock.acquire(timeout=max(0.0, end - time.monotonic()))) for lock in locks]


def _in_parent() -> None:
    for lock, taken in reversed(_AT_FORK.taken):
        if taken:
            lock.release()


def _in_child() -> None:
    for lock, taken in reversed(_AT_FORK.taken):
        if taken:
            lock.release()
        else:
            lock._at_fork_reinit()
    for lock in tuple(_OWN):
        lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
