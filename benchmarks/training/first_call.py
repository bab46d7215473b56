"""One process of the benchmark of first calls: what the first step of a process takes, with Numba's start-up apart.

``python -m benchmarks.training.first_call DIRECTORY`` keeps machine code under ``DIRECTORY`` and prints JSON: by the
clock and in the processor's time, which other programs do not disturb, the seconds for

- ``numba``: compiling, or loading from ``DIRECTORY``, functions that do nothing;
- ``libraries``: importing what every first call imports;
- ``graph``: making tensors and linking them into a routine;
- ``step``: the first step.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["PARTS", "main"]

PARTS = ("numba", "libraries", "graph", "step")

_NOTHING = """
from numba import cfunc, njit

@cfunc("void(int64, int64, int64)", cache=True)
def nest(begin, end, frame):
    pass

@njit("int64(int64, int64)", cache=True, nogil=True)
def nothing(a, b):
    return a + b

nothing(1, 2)
"""


def _now() -> Any:
    return np.array([time.perf_counter(), time.process_time()])


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def main(directory: Path) -> int:
    """Measure and print."""
    path = directory / "nothing.py"
    if not path.exists():
        path.write_text(_NOTHING, encoding="utf-8")
    moments = [_now()]
    _load(path)
    moments.append(_now())
    tc = importlib.import_module("tcdsl")
    network = importlib.import_module("benchmarks.training.network")
    problem = importlib.import_module("benchmarks.training.problem")
    # What the first staging imports, whatever it stages.
    for module in ("tcdsl.runtime.decorated", "tcdsl.autodiff", "tcdsl.targets.cpu.compiled", "tcdsl.lowering.lower"):
        importlib.import_module(module)
    start = problem.problem()
    with tc.config(cache_dir=directory):
        moments.append(_now())
        step = network.routine(start)
        moments.append(_now())
        step.run(1, 0.5)
        moments.append(_now())
    steps = [(after - before).tolist() for before, after in itertools.pairwise(moments)]
    taken = {
        clock: {part: step[k] for part, step in zip(PARTS, steps, strict=True)}
        for k, clock in enumerate(("elapsed", "processor"))
    }
    sys.stdout.write(json.dumps(taken) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
