"""Threads are Numba's: which library starts them, and how many there are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tcdsl.targets.cpu.machine.threading_layer import default_threads, threading_layer

_PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from tcdsl import op
{before}
@op
def product(a, b):
    c[i, j] += a[i, k] * b[k, j]
    return c

a = np.random.default_rng(0).normal(size=(200, 200))
with ThreadPoolExecutor(4) as pool:
    assert all(np.allclose(c, a @ a) for c in pool.map(lambda n: product(a, a), range(20)))
from tcdsl.targets.cpu.machine.threading_layer import default_threads, threading_layer
print(threading_layer().concurrent, default_threads(), "numba" in sys.modules)
{after}
"""


def _told(folder: Path, before: str = "", after: str = "", **environment: str) -> list[str]:
    program = folder / "program.py"
    program.write_text(_PROGRAM.format(before=before, after=after))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, env={**kept, **environment}, check=True
    )
    return done.stdout.split()


def test_threads_come_without_numbas_compiler(tmp_path: Path) -> None:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # Numba, imported later, finds the library that runs, and its threads work.
    sums = """
import numba
@numba.njit(parallel=True)
def total(n):
    found = 0
    for k in numba.prange(n):
        found += k
    return found
assert total(1000) == 499500
"""
    concurrent, threads, imported = _told(tmp_path, after=sums)
    assert int(threads) == cores
    if sys.platform == "linux":
        assert (concurrent, imported) == ("True", "False")


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_settings_of_numba_are_heeded(tmp_path: Path, layer: str) -> None:
    concurrent, threads, imported = _told(tmp_path, NUMBA_THREADING_LAYER=layer, NUMBA_NUM_THREADS="2")
    assert (concurrent, threads, imported) == (str(layer == "omp"), "2", "True")


def test_numba_says_how_many_threads_there_are(tmp_path: Path) -> None:
    _, threads, imported = _told(tmp_path, "import numba; numba.set_num_threads(1)", NUMBA_NUM_THREADS="3")
    assert (threads, imported) == ("1", "True")


def test_the_address_is_that_of_a_function() -> None:
    assert threading_layer().parallel_for > 0
    assert default_threads() >= 1
