"""On how many threads rounds of loops go on: as many as the call may use, or one, whichever has been faster lately.

Where other programs keep the cores busy, threads that wait for each other in every round wait for these too, and one
thread alone is faster. So both are tried on short stretches of the loop, the better one goes on, and now and then the
other one has another try: soon after a change, since what is known of the other one comes from other times, and ever
more seldom while nothing changes. What a call has found out, the next ones like it know. Results have the same bits
either way.

Nobody knows what a round costs that has a `while` in it. So the first stretch is a short one, and stretches are no
longer than a part of the tenth of a second after which an interrupt is to be heard.
"""

from __future__ import annotations

from time import perf_counter

__all__ = ["Pace"]

_TRIAL = 8  # The stretches of a trial are so many times as short.
_TRIES = 2  # So many of them are a trial: in the first one threads wake up.
_HOPELESS = 4.0  # What is so many times slower in the first one has no second one.
_BETWEEN = 8, 64  # Stretches from one trial to the next, after a change and when there was none for long,
_WORTH = 8.0  # and so many times as long as the last one has taken: threads may wait for other programs' time slices.
_LONGEST = 0.03  # Seconds that a stretch is to take at most.


class Pace:
    """``pace.next_stretch()`` before a stretch of rounds gives its threads and its work; ``done(work)`` comes after it.

    A round may be more work than a stretch shall be: what was done is counted.

    It does not after one in which the loop has ended: that was shorter, and nobody knows by how much. The next loop
    begins with it if it was a trial.
    """

    __slots__ = (
        "_begun",
        "_between",
        "_current",
        "_first",
        "_length",
        "_most",
        "_rates",
        "_since",
        "_stretches",
        "_trials",
        "_tried",
        "threads",
    )

    def __init__(self, threads: int, length: int, first: int = 0) -> None:
        self.threads = threads
        self._most = self._length = length
        #: The work of the stretch before all others, on one thread, if there is one.
        self._first = first
        self._rates: dict[int, float] = {}
        self._trials = [1, *[threads] * _TRIES]
        self._stretches, self._between = 0, _BETWEEN[0]
        #: What the last trial has taken, and the stretches since.
        self._tried = 0.0
        self._since = 0.0
        self._current = threads, length
        self._begun = 0.0

    def next_stretch(self) -> tuple[int, int]:
        """The number of threads, and how much work is to be done before it is asked again."""
        if self._first:
            self._current = 1, self._first
        elif self.threads < 2:
            self._current = self.threads, self._length
        else:
            self._current = self._chosen()
        self._begun = perf_counter()
        return self._current

    def _chosen(self) -> tuple[int, int]:
        if self._stretches >= self._between and self._since >= _WORTH * self._tried:
            self._trials = [1 if self._best > 1 else self.threads] * _TRIES
            self._stretches, self._between = 0, min(2 * self._between, _BETWEEN[1])
            self._tried = self._since = 0.0
        if self._trials:
            return self._trials[0], max(1, self._length // _TRIAL)
        self._stretches += 1
        return self._best, self._length

    @property
    def _best(self) -> int:
        return min(self._rates, key=self._rates.__getitem__)

    def done(self, work: int) -> None:
        """The stretch has ended, in which so much was done."""
        count, taken = self._current[0], perf_counter() - self._begun
        rate, known = taken / work, self._rates.get(count)
        if rate * self._length > _LONGEST:
            self._length = max(1, int(_LONGEST / rate))
        elif self._length < self._most:
            self._length = min(2 * self._length, self._most)
        if self._first:
            self._first = 0
        elif self.threads > 1:
            # One stretch that something has held up decides nothing.
            if not self._trials:
                self._since += taken
                rate = rate if known is None else (rate + known) / 2
            else:
                self._tried += taken
                if len(self._trials) == 1 and known is not None:
                    rate = min(rate, known)
            before = self._best if self._rates else count
            del self._trials[:1]
            self._rates[count] = rate
            if self._best != before:
                self._stretches, self._between = 0, _BETWEEN[0]
            if rate > _HOPELESS * min(self._rates.values()):
                self._trials = []
