"""Timing that is fair between peers: they take turns, samples are long enough for the clock, all samples are kept."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["Timing", "alternate"]

SAMPLE_SECONDS = 0.002
FEWEST, MOST = 5, 200


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per call, one number per sample; a sample is the mean over ``calls`` calls."""

    samples: tuple[float, ...]
    calls: int

    @property
    def median(self) -> float:
        """Seconds per call, the middle sample."""
        return statistics.median(self.samples)

    @property
    def minimum(self) -> float:
        """Seconds per call, the fastest sample."""
        return min(self.samples)


def _seconds(function: Callable[[], object], calls: int, clock: Callable[[], float]) -> float:
    begin = clock()
    for _ in range(calls):
        function()
    return (clock() - begin) / calls


def alternate(
    functions: Mapping[str, Callable[[], object]], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> dict[str, Timing]:
    """Time every function for about ``seconds`` in total, one sample of each in turn, after a warm-up.

    Where all runs on one thread, ``clock`` may be `time.process_time`, in which nobody else's work is.
    """
    calls = {}
    longest = 0.0
    for name, function in functions.items():
        function()
        once = min(_seconds(function, 1, clock) for _ in range(3))
        calls[name] = max(1, round(SAMPLE_SECONDS / max(once, 1e-9)))
        longest = max(longest, once * calls[name])
    rounds = min(MOST, max(FEWEST, round(seconds / longest)))
    samples: dict[str, list[float]] = {name: [] for name in functions}
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, function in functions.items():
                samples[name].append(_seconds(function, calls[name], clock))
    finally:
        if collecting:
            gc.enable()
    return {name: Timing(tuple(samples[name]), calls[name]) for name in functions}
