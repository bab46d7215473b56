"""What this machine can do at most, measured: operations and bytes in a second, kept on disk for later processes.

The most operations are those of products of matrices, which are compiled as users' are; the most bytes those of copies
and sums of arrays that lie in a core's own caches, in the shared one, and in memory.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tcdsl.config import config, settings
from tcdsl.ir.text.parser import parse_program
from tcdsl.runtime.calling.execution import Executable
from tcdsl.targets.cache.store import store, value_name
from tcdsl.targets.registry import target_named

__all__ = ["MachineLimits", "keep_limits", "machine_limits"]

_PRODUCT = """
program product
input A: {0}[N, K]
input B: {0}[K2, M]
assert K == K2
tensor C: {0}[N, M]

C[i, j] += A[i, k] * B[k, j]  for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K

return C
"""
_COPY = """
program copy
input x: float32[N]
tensor y: float32[N]

y[i] = x[i] * 2.0  for [i]: 0 <= i < N

return y
"""
_SUM = """
program total
input x: float32[N]
tensor s: float32

s[] += x[i]  for [i]: 0 <= i < N

return s
"""
_ROWS = 384  # A product that ends within a time slice, where other programs are at work.
_SIZES = 1 << 17, 1 << 22, 1 << 26
_SECONDS = 0.15  # For each; the best run counts, since other programs may be at work.


@dataclass(frozen=True, slots=True)
class MachineLimits:
    """The most operations in a second, by the bytes of a number, and the most bytes, for nests that touch so many."""

    threads: int
    operations: tuple[tuple[int, float], ...]
    bytes: tuple[tuple[int, float], ...]

    def peak(self, cell_bytes: int) -> float:
        """The most operations in a second on numbers of so many bytes."""
        return next((rate for size, rate in self.operations if cell_bytes <= size), self.operations[-1][1])

    def bandwidth(self, touched: float) -> float:
        """The most bytes in a second for a nest that touches so many."""
        return next((rate for size, rate in self.bytes if touched <= size), self.bytes[-1][1])

    def raised(self, operations: float, touched: float, cell_bytes: int, seconds: float) -> MachineLimits:
        """The limits, which a nest that took so long for its work may have shown to be too low."""
        peak, bandwidth = self.peak(cell_bytes), self.bandwidth(touched)
        peaks = tuple((n, max(rate, operations / seconds) if rate == peak else rate) for n, rate in self.operations)
        rates = tuple((n, max(rate, touched / seconds) if rate == bandwidth else rate) for n, rate in self.bytes)
        return MachineLimits(self.threads, peaks, rates)

    def seconds(self, operations: float, touched: float, cell_bytes: int) -> float:
        """The least time for so many operations and bytes."""
        return max(operations / self.peak(cell_bytes), touched / self.bandwidth(touched))


def machine_limits() -> MachineLimits:
    """What is measured for the settings in force: threads, target, and where things are kept."""
    current = settings()
    folder = Path(current.cache_dir) if current.cache_dir else None
    key = current.target, current.threads, folder
    found = _KNOWN.get(key)
    if found is None:
        known = store(folder).value(_name(key))
        found = known if isinstance(known, MachineLimits) else _measured(current.threads)
        keep_limits(found)
    return found


def keep_limits(limits: MachineLimits) -> None:
    """Use these from now on, for the settings in force, and in later processes."""
    current = settings()
    folder = Path(current.cache_dir) if current.cache_dir else None
    key = current.target, current.threads, folder
    if _KNOWN.get(key) != limits:
        _KNOWN[key] = limits
        store(folder).keep(_name(key), limits)


_Key = tuple[str, int, Path | None]
_KNOWN: dict[_Key, MachineLimits] = {}


def _name(key: _Key) -> str | None:
    target, threads, _ = key
    return value_name("machine", (target, threads, tuple(target_named(target).fingerprint())), "limits")


def _measured(threads: int) -> MachineLimits:
    with config(optimize=True, debug=False, check=()):
        peaks = [(np.dtype(dtype).itemsize, _peak(dtype)) for dtype in ("float32", "float64")]
        rates = [(size, _bandwidth(size)) for size in _SIZES]
    return MachineLimits(threads, tuple(peaks), tuple(rates))


def _peak(dtype: str) -> float:
    square = np.ones((_ROWS, _ROWS), dtype)
    return 2 * _ROWS**3 / _seconds(_PRODUCT.format(dtype), [square, square])


def _bandwidth(touched: int) -> float:
    copied, added = np.ones(touched // 8, "float32"), np.ones(touched // 4, "float32")
    return max(2 * copied.nbytes / _seconds(_COPY, [copied]), added.nbytes / _seconds(_SUM, [added]))


def _seconds(text: str, arrays: Sequence[np.ndarray]) -> float:
    # Of the nests alone: a call takes as long as a small array.
    executable = Executable(parse_program(text))
    current, sizes = settings(), executable.sizes(arrays)
    compiled = executable.fitting((True,) * len(arrays), current, sizes.largest)
    least, begin = float("inf"), time.perf_counter()
    while time.perf_counter() - begin < _SECONDS:
        _, nests = compiled.timed(arrays, sizes, current.threads or None)
        least = min(least, sum(seconds for seconds, _ in nests.values()))
    return max(least, 1e-9)
