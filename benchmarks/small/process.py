"""One process: the first call of each case, then turns of the case and its work. Prints JSON.

``call`` is how many times longer the work takes, in the middle of all turns, in processor seconds of one thread.
``first call`` is the same of a compilation, the mean of the middle ones of three before and of three after.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import tcdsl as tc
from benchmarks.small.cases import CASES, SmallCase
from benchmarks.small.work import compilation
from benchmarks.timing import alternate

__all__ = ["main", "measured"]

_SECONDS = 0.15


def measured(case: SmallCase) -> dict[str, float]:
    """Both ratios of a case, of which nothing has been called."""
    call = case.call()
    first = _first_call(call)
    turns = alternate({"ours": call, "work": case.work()}, _SECONDS, time.process_time)
    pairs = zip(turns["ours"].samples, turns["work"].samples, strict=True)
    return {"call": statistics.median(work / ours for ours, work in pairs), "first call": first}


def _first_call(call: Callable[[], Any]) -> float:
    before = _compilation()
    begin = time.process_time()
    call()
    taken = time.process_time() - begin
    return (before + _compilation()) / 2 / taken


def _compilation() -> float:
    return statistics.median(compilation() for _ in range(3))


def main() -> int:
    """Print the ratios of all cases."""
    with tempfile.TemporaryDirectory() as folder, tc.config(threads=1, cache_dir=folder):
        # Imports of the compiler, and the driver, belong to no case; nor do those of the compilation.
        tc.op(_warming_up)(CASES[0].call().args[0])  # type: ignore[attr-defined]
        compilation()
        print(json.dumps({case.name: measured(case) for case in CASES}))  # noqa: T201
    return 0


def _warming_up(X):  # type: ignore[no-untyped-def]  # as users write it
    Y[i] += X[i, j]  # noqa: F821
    return Y  # noqa: F821


if __name__ == "__main__":
    sys.exit(main())
