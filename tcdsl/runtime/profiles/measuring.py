"""Running a program some times, with a clock at each of its nests. No argument changes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcdsl.config import settings
from tcdsl.lowering.loopir.loops import Nest
from tcdsl.runtime.calling.execution import Executable
from tcdsl.runtime.profiles.limits import keep_limits, machine_limits
from tcdsl.runtime.profiles.nest_work import NestWork, work_of_nests

__all__ = ["Measured", "measured"]

_ENOUGH = 0.2  # Seconds.
_CERTAIN = 1e-5  # Seconds, of which the clock itself takes no hundredth.
_RUNS = 3, 40


@dataclass(frozen=True, slots=True)
class Measured:
    """A nest, the seconds that it takes in a call, how often it runs in one, its work each time, and what it might
    take at least, by the machine's limits.
    """

    nest: Nest
    seconds: float
    runs: int
    work: NestWork
    least: float


def measured(executable: Executable, arrays: Sequence[np.ndarray]) -> tuple[float, list[Measured]]:
    """The seconds of a call, and what its nests take: medians of some runs, of which the first does not count."""
    current, given = settings(), list(arrays)
    for k, array in enumerate(arrays):
        if k in executable.updated or not array.flags.aligned:
            given[k] = np.array(array)
    sizes = executable.sizes(given)
    contiguous = tuple(array.flags.c_contiguous for array in given)
    compiled = executable.fitting(contiguous, current, sizes.largest)
    wholes: list[float] = []
    runs: list[dict[int, tuple[float, int]]] = []
    begin = time.perf_counter()
    while len(runs) <= _RUNS[0] or (time.perf_counter() - begin < _ENOUGH and len(runs) < _RUNS[1]):
        for k in executable.updated:
            given[k][...] = arrays[k]
        whole, nests = compiled.timed(given, sizes, current.threads or None)
        wholes.append(whole)
        runs.append(nests)
        if time.perf_counter() - begin > 10 * _ENOUGH:
            break
    counted = slice(1 if len(runs) > 1 else 0, None)
    # What was kept on disk may come from a file whose lines have changed since.
    large = sizes.largest > executable.kernel(current.optimize).limit
    kernel = executable.kernel(current.optimize, large, strided=executable.strided(contiguous))
    limits = machine_limits()
    found = []
    for number, (nest, work) in enumerate(zip(kernel.nests, work_of_nests(kernel, sizes), strict=True)):
        seconds = float(np.median([each[number][0] for each in runs[counted]])) if number in runs[-1] else 0.0
        times = runs[-1].get(number, (0.0, 0))[1]
        if times and seconds / times > _CERTAIN:
            # Other programs may have been at work when they were measured.
            limits = limits.raised(work.operations, work.bytes, work.cell_bytes, seconds / times)
        found.append((nest, seconds, times, work))
    keep_limits(limits)
    made = [
        Measured(nest, seconds, times, work, times * limits.seconds(work.operations, work.bytes, work.cell_bytes))
        for nest, seconds, times, work in found
    ]
    return float(np.median(wholes[counted])), made
