"""Threads: the same bits for any number of them, calls from several at once, forked processes."""

from __future__ import annotations

import multiprocessing
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from struct import pack_into

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.build import apply, constant
from tcdsl.lowering.loop_passes.liveness import Temporaries
from tcdsl.lowering.loopir.loops import Kernel, Store, Update
from tcdsl.targets.cpu.call.drivers import Drivers
from tcdsl.targets.cpu.call.launch_plans import LaunchPlan, Planner, of_this_process
from tcdsl.targets.cpu.call.plan_code import PlanCode
from tcdsl.targets.cpu.compiled import CompiledKernel
from tcdsl.targets.cpu.layout.call_arrays import CallArrays
from tcdsl.targets.cpu.layout.frame import frame_layout
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel
from tests.targets.kernels import I, J, N, elementwise, loop, make, matmul, read

RNG = np.random.default_rng(11)


@pytest.fixture
def compiled(options: Build) -> CompiledKernel:
    return compile_kernel(matmul(), contiguous=(True, True), options=options)


def arrays(n: int = 200) -> list[np.ndarray]:
    return [RNG.normal(size=(n, n)).astype(np.float32) for _ in range(2)]


def test_results_do_not_depend_on_threads(compiled: CompiledKernel) -> None:
    A, B = arrays()
    sizes = {"N": 200, "P": 200, "M": 200}
    results = [compiled.run([A, B], sizes, threads=threads)[0] for threads in (1, 2, 3, 5, 64)]
    np.testing.assert_allclose(results[0], A @ B, rtol=1e-3, atol=1e-4)
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_a_bound_program_runs_on_as_many_threads_as_it_is_told(compiled: CompiledKernel) -> None:
    A, B = arrays()
    for threads in (1, 2, 3):
        bound = compiled.bind([A, B], {"N": 200, "P": 200, "M": 200}, threads=threads)
        bound()
        np.testing.assert_allclose(bound.outputs[0], A @ B, rtol=1e-3, atol=1e-4)


def test_only_calls_with_enough_work_take_threads(compiled: CompiledKernel, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def noted(table: int, nests: int, frame: int, threads: int) -> int:
        taken.append(threads)
        return drivers.execute(table, nests, frame)

    drivers = compiled._drivers
    monkeypatch.setattr(Drivers, "available", 3)
    monkeypatch.setattr(drivers, "execute_parallel", noted)
    large, small = arrays(), arrays(3)
    compiled.run(large, {"N": 200, "P": 200, "M": 200})
    compiled.run(large, {"N": 200, "P": 200, "M": 200}, threads=2)
    compiled.run(large, {"N": 200, "P": 200, "M": 200}, threads=1)
    compiled.run(small, {"N": 3, "P": 3, "M": 3})
    assert taken == [3, 2]


def test_calls_take_as_many_threads_as_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def noted(self: Drivers, table: int, nests: int, frame: int, threads: int) -> int:
        taken.append(threads)
        return self.execute(table, nests, frame)

    monkeypatch.setattr(Drivers, "available", 3)
    monkeypatch.setattr(Drivers, "execute_parallel", noted)

    @op
    def product(a, b):
        c[i, j] += a[i, k] * b[k, j]
        return c

    A, B = arrays()
    for threads in (1, 2, 3, 5):
        with tc.config(threads=threads):
            for _ in range(3):
                np.testing.assert_allclose(product(A, B), A @ B, rtol=1e-3, atol=1e-4)
    assert taken == [2] * 3 + [3] * 6


def test_numba_says_at_every_call_how_many_threads_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def noted(self: Drivers, table: int, nests: int, frame: int, threads: int) -> int:
        taken.append(threads)
        return self.execute(table, nests, frame)

    told = [1]
    monkeypatch.setattr("tcdsl.targets.cpu.call.drivers.default_threads", lambda: told[0])
    monkeypatch.setattr("tcdsl.targets.cpu.call.drivers.most_threads", lambda: 3)
    monkeypatch.setattr(Drivers, "execute_parallel", noted)

    @op
    def sums(a, b):
        c[i, j] += a[i, k] + b[k, j]
        return c

    A, B = arrays()
    for number in (1, 3, 1, 2):
        told[0] = number
        first = sums(A, B)
        np.testing.assert_array_equal(sums(A, B), first)
    assert taken == [3, 3, 2, 2]


def test_loops_of_uneven_length_and_large_steps(options: Build) -> None:
    # The lower triangle, rows in steps of 3: Y[i] = sum of X[j] for j <= i.
    three = loop(
        "i",
        N,
        Store("Y", (I,), constant(0, "float64")),
        loop("j", apply("add", I, constant(1, "int64")), Update("Y", (I,), "add", read("X", J, dtype="float64"))),
        start=constant(1, "int64"),
        step=3,
        parallel=True,
    )
    zero = loop("i", N, Store("Y", (I,), constant(-1, "float64")), parallel=True)
    kernel = make({"X": ("float64", (N,))}, {"Y": ("float64", (N,))}, [zero], [three], work=constant(1 << 20, "int64"))
    compiled = compile_kernel(kernel, contiguous=(True,), options=options)
    for n in (0, 1, 2, 3, 4, 100, 1001):
        X = RNG.integers(0, 100, n).astype(np.float64)
        expected = np.full(n, -1.0)
        expected[1::3] = np.cumsum(X)[1::3]
        for threads in (1, 2, 4):
            (Y,) = compiled.run([X], {"N": n}, threads=threads)
            np.testing.assert_array_equal(Y, expected)


def test_calls_from_several_threads(compiled: CompiledKernel) -> None:
    problems = [arrays(n) for n in (30, 90, 30, 120)]

    def check(k: int) -> bool:
        A, B = problems[k % 4]
        n = len(A)
        (C,) = compiled.run([A, B], {"N": n, "P": n, "M": n}, threads=1 + k % 2)
        return np.allclose(C, A @ B, rtol=1e-3, atol=1e-3)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(check, range(120)))


def _in_child(compiled: CompiledKernel, queue: multiprocessing.Queue) -> None:
    A, B = arrays()
    (C,) = compiled.run([A, B], {"N": 200, "P": 200, "M": 200})
    queue.put(bool(np.allclose(C, A @ B, rtol=1e-3, atol=1e-3)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
# Python warns of forks beside threads, and JAX, once another test of this process has imported it, of every fork.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:os.fork:RuntimeWarning")
def test_a_forked_process_runs_without_the_threads_it_lacks(compiled: CompiledKernel) -> None:
    A, B = arrays()
    compiled.run([A, B], {"N": 200, "P": 200, "M": 200}, threads=2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(compiled, queue))
    child.start()
    assert queue.get(timeout=60)
    child.join(60)
    assert child.exitcode == 0


def blocks_of(kernel: Kernel, sizes: list[int], threads: int) -> int:
    """Into how many blocks the only nest of ``kernel`` is cut."""
    layout = frame_layout(
        [size.name for size in kernel.program.sizes], [(b.name, len(b.shape)) for b in kernel.buffers]
    )
    arrays = CallArrays(kernel, (True,) * len(kernel.program.inputs))
    code = PlanCode(kernel, layout, arrays)
    evaluate = code.written.bound(of_this_process([1], [0]))
    plan = LaunchPlan(Planner(evaluate, layout.words, code.table, Temporaries(kernel).lives, pack_into), sizes, threads)
    assert plan.parallel == (plan.blocks(0) > 1)
    return plan.blocks(0)


def test_small_work_stays_on_one_thread() -> None:
    kernel = matmul()
    made = elementwise(apply("exp", read("X", I)), "float32", {"X": "float32"})
    costly = replace(made.nests[0], work=N, code=(replace(made.nests[0].body[0], kind="parallel"),))
    exponential = made.with_nests([costly])
    blocks = {
        ("matmul", 8): blocks_of(kernel, [8, 8, 8], 2),
        ("matmul", 200): blocks_of(kernel, [200, 200, 200], 2),
        ("matmul", 3): blocks_of(kernel, [3, 1000, 1000], 2),
        ("exp", 1000): blocks_of(exponential, [1000], 2),
        ("exp", 100000): blocks_of(exponential, [100000], 2),
        ("one", 200): blocks_of(kernel, [200, 200, 200], 1),
    }
    assert blocks == {
        ("matmul", 8): 1,
        ("matmul", 200): 8,
        ("matmul", 3): 3,
        ("exp", 1000): 1,
        ("exp", 100000): 8,
        ("one", 200): 1,
    }
