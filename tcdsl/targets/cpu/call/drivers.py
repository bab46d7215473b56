"""Which driver runs a call: on how many threads, and whether more than one may be used at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tcdsl.locks import lock_of_this_process
from tcdsl.targets.cache.store import store
from tcdsl.targets.cpu.call.pace import Pace
from tcdsl.targets.cpu.call.words import load_word
from tcdsl.targets.cpu.layout import call_block, frame
from tcdsl.targets.cpu.layout.call_block import PAUSED
from tcdsl.targets.cpu.layout.frame import DONE_WORD
from tcdsl.targets.cpu.machine.machine_code import begin_driver, compiled_driver, python_function
from tcdsl.targets.cpu.machine.threading_layer import ThreadingLayer, default_threads, most_threads, threading_layer

__all__ = ["Drivers", "begin_drivers"]

_BUDGET = 1 << 22  # Points: milliseconds, a tenth of a second if each calls functions.
_FIRST = 1 << 10  # Points before anything is known.


class _Forked:
    """Whether this process was forked from one whose worker threads had started: they are missing here."""

    started = False
    unusable = False

    @classmethod
    def after_fork(cls) -> None:
        cls.unusable = cls.unusable or cls.started


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_Forked.after_fork)


def begin_drivers(cache_dir: Path | None) -> None:
    """Begin to compile what ``Drivers(cache_dir)`` will need, in a thread."""
    begin_driver(store(cache_dir), *_text_and_constants())


def _text_and_constants() -> tuple[str, dict[str, int]]:
    text = Path(__file__).with_name("driver.py").read_text(encoding="utf-8")
    named = vars(call_block) | vars(frame)
    return text, {name: word for name, word in named.items() if name.isupper()}


class Drivers:
    """The compiled drivers, kept in one cache directory.

    ``execute(table, nests, frame)`` and ``run(block, frame, inputs, made, mode)`` are those of
    `tcdsl.targets.cpu.call.driver`.
    """

    def __init__(self, cache_dir: Path | None) -> None:
        self._code = compiled_driver(store(cache_dir), *_text_and_constants())

        self.execute: Callable[[int, int, int], int] = python_function(self._code, "execute")
        self.run: Callable[[int, int, object, object, int], int] = python_function(self._code, "run")
        self._parallel: Callable[[int, int, int, int, int, int], int] = python_function(self._code, "execute_parallel")
        self._rounds: Callable[..., int] = python_function(self._code, "execute_rounds")
        self._timed: Callable[..., int] = python_function(self._code, "execute_timed")
        self._share = self._code.addresses["share"]
        #: The address of the function that nests call.
        self.interrupted: int = self._code.addresses["look_for_interrupts"]
        #: Those of ``execute`` and ``execute_rounds``.
        self.addresses = self._code.addresses["execute"], self._code.addresses["execute_rounds"]
        self._layer: ThreadingLayer | None = None
        # Numba's own thread pool ends the process if two threads use it at once; OpenMP and TBB do not.
        self._guard: Any = lock_of_this_process()

    @property
    def available(self) -> int:
        """The number of threads that a call may use."""
        return 1 if _Forked.unusable else default_threads()

    @property
    def planned(self) -> int:
        """The number of threads that calls are planned for, since later ones may use more than are available now."""
        return max(self.available, 1 if _Forked.unusable else most_threads())

    def execute_parallel(self, table: int, nests: int, frame: int, threads: int) -> int:
        """Like ``execute``, on up to ``threads`` threads."""
        with self._guard:
            return self._parallel(table, nests, frame, threads, self._started().parallel_for, self._share)

    def execute_rounds(self, table: int, rows: int, frame: int, pace: Pace) -> int:
        """Like ``execute_parallel``, of a table with loops of rounds, however long they are, at a `pace`.

        Python handles its signals every few milliseconds, so that ``KeyboardInterrupt`` may leave it.
        """
        return self._at_pace(self._rounds, table, rows, frame, pace)

    def execute_timed(self, table: int, rows: int, frame: int, pace: Pace, times: int) -> int:
        """Like ``execute_rounds``, which adds to the words at ``times`` what each row takes."""
        return self._at_pace(self._timed, table, rows, frame, pace, times)

    def _at_pace(self, run: Callable[..., int], table: int, rows: int, frame: int, pace: Pace, *more: int) -> int:
        done = PAUSED
        while True:
            count, budget = pace.next_stretch()
            starting = count > 1 and self._layer is None
            done = self._some_rounds(run, table, PAUSED - done, rows, frame, budget, count, *more)
            if done > PAUSED:
                return done
            if not starting:
                # The stretch in which threads start says nothing of those after it.
                pace.done(load_word(frame + 8 * DONE_WORD))

    @staticmethod
    def pace(threads: int, known: Pace | None) -> Pace:
        """The pace of a call on so many threads: that of calls before, if it is ``known``."""
        return known if known is not None and known.threads == threads else Pace(threads, _BUDGET, _FIRST)

    def _some_rounds(
        self,
        run: Callable[..., int],
        table: int,
        first: int,
        rows: int,
        frame: int,
        budget: int,
        threads: int,
        *more: int,
    ) -> int:
        if threads < 2:
            return run(table, first, rows, frame, budget, 1, 0, 0, *more)
        with self._guard:
            parallel_for = self._started().parallel_for
            return run(table, first, rows, frame, budget, threads, parallel_for, self._share, *more)

    def _started(self) -> ThreadingLayer:
        if self._layer is None:
            _Forked.started = True
            self._layer = threading_layer()
            if self._layer.concurrent:
                self._guard = nullcontext()
        return self._layer
