"""Matrices that are thin, or read in thin parts only, are never stored: neither by a function nor by its gradient."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.autodiff import gradient
from tcdsl.lowering.lower import lower
from tcdsl.simplification import without_sparse_tensors
from tests.simplification.sparse_tensors import FUNCTIONS

__all__: list[str] = []

MILLION = 10**6
GIGABYTE = 10**9


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_results(function: Any) -> None:
    for size in (4, 7):
        x = np.random.default_rng(size).uniform(0.5, 1.5, size)
        np.testing.assert_allclose(function(x), function.interpret(x), rtol=1e-13)
        tc.check_grads(function, (x,), order=2)
        value, gradient = tc.value_and_grad(function)(x)
        np.testing.assert_allclose(value, function(x), rtol=1e-13)
        np.testing.assert_allclose(gradient, tc.grad(function)(x), rtol=1e-13)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_nothing_has_two_axes(function: Any) -> None:
    program = function.program(np.ones(5))
    for made in (program, gradient(program, ["x"]), gradient(program, ["x"], keep_outputs=False)):
        kernel = lower(without_sparse_tensors(made))
        assert max(len(buffer.shape) for buffer in kernel.buffers) <= 1, str(kernel)


SCRIPT = """
import json, os, resource
import numpy as np
import tcdsl as tc
from benchmarks.sparse import programs
from tests.simplification.sparse_tensors import FUNCTIONS


def peak():
    # In kilobytes; getrusage would tell the peak of the process that started this one, if that was higher.
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))


x = np.linspace(0.5, 1.5, {size})
calls = [(f, (x,), {{}}) for f in FUNCTIONS]
calls += [(programs.traces, (x,), {{"count": 3}}), (programs.row_times_column, (x,), {{}})]
calls += [(programs.trace_of_identity, (np.float64(2.0), x), {{}})]


def measured(function, arguments, configuration):
    small = tuple(argument[:4] if argument.ndim else argument for argument in arguments)
    for run in (function, tc.grad(function), tc.value_and_grad(function)):
        run(*small, **configuration)
    before = peak()
    # Virtual memory, so that not even an untouched matrix fits.
    limit = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize() + {limit}
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for run in (function, tc.grad(function), tc.value_and_grad(function)):
        run(*arguments, **configuration)
    return before, peak()


# One process imports all that is needed, and forks for each function, of which none has memory of another one.
for function, arguments, configuration in calls:
    if function.__name__ in {names}:
        if os.fork() == 0:
            print(json.dumps([function.__name__, *measured(function, arguments, configuration)]), flush=True)
            os._exit(0)
        os.wait()
"""
MEASURED = (
    "traces",
    "row_times_column",
    "trace_of_identity",
    "many_readers",
    "three_diagonals",
    "sums_on_the_diagonal",
)


@pytest.fixture(scope="module")
def peaks() -> dict[str, tuple[int, int]]:
    script = SCRIPT.format(size=MILLION, limit=GIGABYTE // 2, names=MEASURED)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    found = {name: (before, after) for name, before, after in map(json.loads, done.stdout.splitlines())}
    assert sorted(found) == sorted(MEASURED), done.stderr
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory as Linux reports it")
@pytest.mark.parametrize("name", MEASURED)
def test_a_million_rows_in_less_than_a_gigabyte(name: str, peaks: dict[str, tuple[int, int]]) -> None:
    before, after = (1024 * kilobytes for kilobytes in peaks[name])
    assert after < GIGABYTE
    # A dozen vectors of eight megabytes, not a matrix.
    assert after - before < 25 * 8 * MILLION
