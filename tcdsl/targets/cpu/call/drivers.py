"""Which driver runs a call: on how many threads, and whether more than one may be used at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tcdsl.locks import lock_of_this_process
from tcdsl.targets.cache.store import store
from tcdsl.targets.cpu.machine.module_names import module_stem
from tcdsl.targets.cpu.machine.numba_modules import load_module

__all__ = ["Drivers"]


class _Forked:
    """Whether this process was forked from one whose worker threads had started: they are missing here."""

    started = False
    unusable = False

    @classmethod
    def after_fork(cls) -> None:
        cls.unusable = cls.unusable or cls.started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Forked.after_fork)


class Drivers:
    """The compiled drivers, kept in one cache directory.

    ``execute(table, nests, frame)`` and ``run(block, frame, inputs, made, mode)`` are always there; `execute_parallel`
    loads the one that uses threads, because it takes longer to load and starts them.
    """

    def __init__(self, cache_dir: Path | None) -> None:
        self._cache_dir = cache_dir
        serial = self._load("driver")
        self.execute: Callable[[int, int, int], int] = serial.execute
        self.run: Callable[[int, int, int, int, int], int] = serial.run
        self._parallel: Callable[[int, int, int, int], int] | None = None
        # Numba's own thread pool ends the process if two threads use it at once; OpenMP and TBB do not.
        self._guard: Any = lock_of_this_process()

    def _load(self, name: str) -> Any:
        text = Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8")
        return load_module(store(self._cache_dir), module_stem(f"tcdsl_{name}", text), text)

    @property
    def available(self) -> int:
        """The number of threads that a call may use."""
        if _Forked.unusable:
            return 1
        from numba import get_num_threads

        return int(get_num_threads())

    def execute_parallel(self, table: int, nests: int, frame: int, threads: int) -> int:
        """Like ``execute``, on up to ``threads`` threads."""
        with self._guard:
            if self._parallel is None:
                return self._start(table, nests, frame, threads)
            return int(self._parallel(table, nests, frame, threads))

    def _start(self, table: int, nests: int, frame: int, threads: int) -> int:
        from numba import threading_layer

        parallel = self._load("parallel_driver").execute
        _Forked.started = True
        done = int(parallel(table, nests, frame, threads))
        if threading_layer() != "workqueue":
            self._guard = nullcontext()
        self._parallel = parallel
        return done
