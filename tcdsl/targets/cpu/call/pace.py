"""On how many threads rounds of loops go on: as many as the call may use, or one, whichever has been faster lately.

Where other programs keep the cores busy, threads that wait for each other in every round wait for these too, and one
thread alone is faster. So both are tried on a short stretch of the loop, the better one goes on, and now and then the
other one has another try. Results have the same bits either way.
"""

from __future__ import annotations

from time import perf_counter

__all__ = ["Pace"]

_TRIAL = 8  # A trial is a stretch so many times as short.
_BETWEEN = 32  # Stretches from one trial to the next.


class Pace:
    """``pace.next_stretch()`` before a stretch of rounds gives its threads and its work; `done` comes after it."""

    __slots__ = ("_begun", "_current", "_length", "_rates", "_stretches", "_threads")

    def __init__(self, threads: int, length: int) -> None:
        self._threads = threads
        self._length = length
        self._rates: dict[int, float] = {}
        self._stretches = 0
        self._current = threads, length
        self._begun = 0.0

    def next_stretch(self) -> tuple[int, int]:
        """The number of threads, and how much work is to be done before it is asked again."""
        if self._threads < 2:
            return self._current
        best = min(self._rates, key=self._rates.__getitem__, default=self._threads)
        untried = next((count for count in (self._threads, 1) if count not in self._rates), None)
        if untried is not None or self._stretches % _BETWEEN == 0:
            other = 1 if best > 1 else self._threads
            self._current = other if untried is None else untried, self._length // _TRIAL
        else:
            self._current = best, self._length
        self._stretches += 1
        self._begun = perf_counter()
        return self._current

    def done(self) -> None:
        """The stretch has ended."""
        if self._threads > 1:
            count, work = self._current
            self._rates[count] = (perf_counter() - self._begun) / work
