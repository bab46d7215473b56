"""One process of the benchmark of first calls: what the first step of a process takes, with Numba's start-up apart.

``python -m benchmarks.training.first_call DIRECTORY`` keeps machine code under ``DIRECTORY`` and prints JSON, in
seconds: ``numba``, what Numba takes to compile, or to load from ``DIRECTORY``, a function that does nothing;
``libraries``, what importing takes; ``graph``, making tensors and linking them into a routine; ``step``, its first
step.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["main"]

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
    clock = time.perf_counter
    begin = clock()
    _load(path)
    numba = clock()
    tc = importlib.import_module("tcdsl")
    network = importlib.import_module("benchmarks.training.network")
    problem = importlib.import_module("benchmarks.training.problem")
    # What the first staging imports, whatever it stages.
    for module in ("tcdsl.runtime.decorated", "tcdsl.autodiff", "tcdsl.codegen.compiled", "tcdsl.lowering.lower"):
        importlib.import_module(module)
    start = problem.problem()
    with tc.config(cache_dir=directory):
        libraries = clock()
        step = network.routine(start)
        staged = clock()
        step.run(1, 0.5)
        end = clock()
    taken = {
        "numba": numba - begin,
        "libraries": libraries - numba,
        "graph": staged - libraries,
        "step": end - staged,
    }
    sys.stdout.write(json.dumps(taken) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
