"""One process of the benchmark: ``python -m benchmarks.first_calls.process CASE LIBRARY`` prints JSON.

By the clock and in the processor's time, which other programs disturb less, the seconds for importing the library
(after NumPy), the first result, the first result of a second program, and the same call again.
"""

from __future__ import annotations

import importlib
import itertools
import json
import sys
import time
from typing import Any

import numpy as np

from benchmarks.first_calls.cases import CASES

__all__ = ["STAGES", "main"]

STAGES = ("import", "first result", "second program", "again")


def _now() -> Any:
    return np.array([time.perf_counter(), time.process_time()])


def main(case: str, library: str) -> int:
    """Measure and print."""
    moments = [_now()]
    importlib.import_module(library)
    moments.append(_now())
    first, second = CASES[case][library]()
    first()
    moments.append(_now())
    second()
    moments.append(_now())
    first()
    moments.append(_now())
    taken = [(after - before).tolist() for before, after in itertools.pairwise(moments)]
    clocks = {
        clock: dict(zip(STAGES, (step[k] for step in taken), strict=True))
        for k, clock in enumerate(("elapsed", "processor"))
    }
    sys.stdout.write(json.dumps(clocks) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
