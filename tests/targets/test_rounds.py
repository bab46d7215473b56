"""Loops that run, compiled: the driver goes round without Python."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.autodiff import adjoint
from tcdsl.errors import DataIndexError, NanError, ShapeError
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.sizes.size_binding import SizePlan
from tcdsl.ir.text.parser import parse_program
from tcdsl.runtime.calling.execution import Executable
from tcdsl.targets.cpu.call import driver
from tcdsl.targets.cpu.call.drivers import Drivers
from tcdsl.targets.cpu.compiled import CompiledKernel
from tcdsl.targets.cpu.layout.call_block import PAUSED
from tests.autodiff.loop_derivatives.test_adjoints import shapes_of
from tests.autodiff.programs import floating_inputs
from tests.ir.loop_programs import DERIVED, LOOPS, LOWERED, rounds_of
from tests.long_variants import every


def check(executable: Executable, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """The results, which are those of the interpreter."""
    expected = interpret(executable.program, arrays)
    given = [array.copy() for array in arrays]
    results = executable.run(given)
    for want, got in zip(expected.outputs, results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-12)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
    for tensor, array, before in zip(executable.program.inputs, given, arrays, strict=True):
        np.testing.assert_allclose(array, expected.updates.get(tensor.name, before), rtol=1e-5, atol=1e-12)
    return results


@pytest.mark.parametrize("name", LOWERED)
def test_compiled_loops_compute_what_programs_say(name: str) -> None:
    executable = Executable(LOOPS[name].program)
    for arrays in LOOPS[name].problems():
        check(executable, arrays)


@pytest.mark.parametrize("name", LOWERED)
def test_loops_are_compiled_without_optimization_and_with_checks_of_every_access(name: str) -> None:
    with tc.config(optimize=False):
        check(Executable(LOOPS[name].program), LOOPS[name].of(3))
    with tc.config(check="bounds, nan, ir"):
        check(Executable(LOOPS[name].program), LOOPS[name].of(3))


@pytest.mark.parametrize("name", LOWERED)
def test_bound_loops_run_again_and_again(name: str) -> None:
    program = LOOPS[name].program
    for count in (0, 3):
        arrays = [array.copy() for array in LOOPS[name].of(count)]
        bound = Executable(program).bind(arrays)
        for _ in range(3):
            expected = interpret(program, bound.arrays)
            bound()
            for want, got in zip(expected.outputs, bound.outputs, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-12)


@op
def sought(x, y, most):
    k = 0
    while x[k] < y:
        k += 1
    s = 0.0
    for t in range(most):
        if x[t] >= y:
            break
        s += x[t]
    return k, s


def test_rounds_that_look_for_interrupts_together_end_where_they_should() -> None:
    x = np.arange(12.0)
    for y in range(12):
        for most in (0, 1, 5, 11, 12):
            found, ended = sought(x, float(y), most), min(y, most)
            assert (int(found[0]), float(found[1])) == (y, ended * (ended - 1) / 2)


def test_arrays_may_have_strides() -> None:
    executable = Executable(LOOPS["cholesky in place"].program)
    (A,) = LOOPS["cholesky in place"].of(6)
    wide = np.zeros((6, 12))
    wide[:, ::2] = A
    executable.run([wide[:, ::2]])
    np.testing.assert_allclose(np.tril(wide[:, ::2]), np.linalg.cholesky(A), rtol=1e-12)
    assert not wide[:, 1::2].any()


def test_a_data_index_out_of_range_names_the_round_and_changes_nothing() -> None:
    executable = Executable(LOOPS["counted rounds"].program)
    with pytest.raises(DataIndexError, match=r"t = 15"):
        executable.run([np.array(9), np.ones(15, np.float32)])
    check(executable, LOOPS["counted rounds"].of(7))


def test_loops_run_in_several_threads_at_once() -> None:
    executable = Executable(LOOPS["wave"].program)
    problems = [LOOPS["wave"].of(count) for count in range(8)]
    expected = [executable.run(arrays) for arrays in problems]

    def right(k: int) -> bool:
        found = executable.run(problems[k % 8])
        return all(np.array_equal(a, b) for a, b in zip(found, expected[k % 8], strict=True))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(right, range(200)))


def test_results_do_not_depend_on_threads() -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(1200, 900)).astype(np.float32) for _ in range(2)] + [rounds_of(5)]
    executable = Executable(LOOPS["wave"].program)
    results = []
    for threads in (1, 2, 3):
        with tc.config(threads=threads):
            results.append(executable.run(arrays))
    for result in results[1:]:
        for one, other in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(one, other)


ENDLESS = """\
program endless
input x: float64[N]
input carrier: bool[steps, none]
tensor x_9: float64[N]
tensor y: float64[N]

repeat x_9 = steps times with x
| program endless_loop
| input round: bool[t]
| input x: float64[N]
| tensor x_2: float64[N]
|
| x_2[i] = x[N - i - 1] + 1.0  for [i]: 0 <= i < N
|
| update x = x_2

y[i] = 2.0 * x_9[i]  for [i]: 0 <= i < N

update x = y
"""


@pytest.mark.parametrize("extent", [1, 1 << 16])
def test_loops_can_be_interrupted(extent: int) -> None:
    executable = Executable(parse_program(ENDLESS))
    x = np.zeros(extent)
    executable.run([x, rounds_of(3)])
    np.testing.assert_array_equal(x, 6.0)
    bound = executable.bind([x, rounds_of(2**40)])
    for run in (lambda: executable.run([x, rounds_of(2**40)]), bound):
        threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()
        with pytest.raises(KeyboardInterrupt):
            run()
        np.testing.assert_array_equal(x, 6.0)
    executable.run([x, rounds_of(0)])
    np.testing.assert_array_equal(x, 12.0)


@op
def reached(x: real[N], step, most: real[N]):
    """How often ``step`` is added before ``most`` is reached, and how often that took more than 5 rounds."""
    found: real[N]
    for i in range(N):
        y = x[i]
        n = 0.0
        while y < most[i]:
            y = y + step
            n = n + 1
        found[i] = n
    long = 0
    for i in range(N):
        if found[i] > 5:
            long = long + 1
    return found, long


class TimeIsUpError(Exception):
    """Raised by a handler of a signal."""


def test_loops_of_scalars_are_nests_and_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Drivers, "available", 2)
    x, most = np.zeros(1 << 15), np.arange(1 << 15) % 9.0
    text = reached.explain("loops", x, 1.0, most)
    assert "repeat" not in text
    assert "    parallel for i in 0 .. N:" in text
    expected = most, np.sum(most > 5)
    for threads in (1, 2):
        with tc.config(threads=threads):
            for found, want in zip(reached(x, 1.0, most), expected, strict=True):
                np.testing.assert_array_equal(found, want)
            # One cell never gets there. Whichever thread has it, the call ends, as the handler of the signal says.
            for place in (0, -1):
                endless = np.zeros_like(most)
                endless[place] = np.inf

                def handler(number: int, frame: Any) -> None:
                    raise TimeIsUpError

                before = signal.signal(signal.SIGALRM, handler)
                try:
                    signal.setitimer(signal.ITIMER_REAL, 0.2)
                    with pytest.raises(TimeIsUpError):
                        reached(x, 0.0, endless)
                finally:
                    signal.signal(signal.SIGALRM, before)
            assert reached(x, 1.0, most)[1] == expected[1]


@op
def stopped(n, limit):
    """The sum of the numbers before ``limit``, and how many pairs of numbers below 1,500 differ by 3 at least."""
    total = 0
    for t in range(n):
        if t == limit:
            break
        total = total + t
    pairs = 0
    for a in tc.loop(1500):
        for b in range(a):
            if a - b < 3:
                break
            pairs = pairs + 1
    return total, pairs


@pytest.mark.parametrize("limit", [0, 5, 2**20 - 1, 2**20, 2**20 + 1, 3 * 2**20 + 7])
def test_rounds_go_on_behind_each_look_for_interrupts(limit: int) -> None:
    pairs = 1497 * 1498 // 2
    for n in (limit, limit + 1, 2 * limit + 3):
        assert tuple(map(int, stopped(n, limit))) == (limit * (limit - 1) // 2, pairs)
    assert "for t in rounds(frame, range(" in stopped.explain("python", 3, 1)


@op
def restless(n):
    """Rounds in which a loop ends at once."""
    found = 0
    while found < n:
        for k in range(n):
            if k >= 1:
                break
            found = found + k
    return found


def test_loops_that_end_at_once_do_not_keep_interrupts_waiting() -> None:
    threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()
    with pytest.raises(KeyboardInterrupt):
        restless(10)


@cd
def rows_of_rounds(A: real[N, N]):
    for a in range(N):
        for b in range(a):
            A[a, b] -= 1e-9 * sum(A[a, k] * A[b, k] for k in range(b))


@pytest.mark.skipif(not hasattr(signal, "ITIMER_PROF"), reason="counts time of the processor")
def test_rounds_with_long_rows_look_for_interrupts_as_often() -> None:
    A = np.ones((1200, 1200))
    expected = np.ones((40, 40))
    for a in range(40):
        for b in range(a):
            expected[a, b] -= 1e-9 * (expected[a, :b] @ expected[b, :b])
    rows_of_rounds(A[:40, :40].copy())
    assert "repeat" not in rows_of_rounds.explain("loops", A)
    heard: list[int] = []
    before = signal.signal(signal.SIGPROF, lambda number, frame: heard.append(number))
    try:
        signal.setitimer(signal.ITIMER_PROF, 0.005, 0.005)
        rows_of_rounds(A)
        signal.setitimer(signal.ITIMER_PROF, 0)
        # 700,000 rounds: fewer than there are of one cell between two looks.
        assert len(heard) > 4
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    np.testing.assert_allclose(A[:40, :40], expected, rtol=1e-12)


def test_loops_whose_bounds_depend_on_the_round_run_on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(20, 1 << 17)), rng.normal(size=1 << 17)]
    executable = Executable(LOOPS["history"].program)
    assert any(nest.bounds for nest in executable.kernel().nests)
    monkeypatch.setattr(Drivers, "available", 3)
    results = []
    for threads in (1, 2, 3):
        with tc.config(threads=threads):
            results.append(executable.run(arrays)[0])
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
    states = np.zeros((21, 1 << 17))
    states[0] = arrays[1]
    for t, x in enumerate(arrays[0]):
        seen = states[:t] * arrays[0][:t]
        states[t + 1] = np.tanh(states[t] + x) * t + 0.1 * (seen * seen).sum(0)
    np.testing.assert_allclose(results[0], states, rtol=1e-9)


@pytest.mark.parametrize("name", every(2, DERIVED))
def test_derivatives_of_loops_are_compiled(name: str) -> None:
    case = LOOPS[name]
    program = adjoint(case.program, floating_inputs(case.program))
    executable = Executable(program)
    for size in (0, 1, 4):
        given = case.of(size)
        shapes = shapes_of(program, given)[len(given) :]
        arrays = [*given, *(np.random.default_rng(0).normal(size=shape) for shape in shapes)]
        arrays = [np.asarray(array, tensor.dtype) for array, tensor in zip(arrays, program.inputs, strict=True)]
        # The interpreter does not round what is kept in half precision.
        for want, got in zip(interpret(program, arrays).outputs, executable.run(arrays), strict=True):
            np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-3)


def test_what_a_body_asks_of_shapes_is_checked_at_the_call() -> None:
    text = """\
program fitting
input x: float64[N]
input y: float64[M]
input carrier: bool[steps, none]
tensor x_9: float64[N]

repeat x_9 = steps times with x, y
| program fitting_loop
| input round: bool[t]
| input x: float64[K]
| input y: float64[K]
| tensor x_2: float64[K]
| assert K > 1
|
| x_2[i] = x[i] + y[i]  for [i]: 0 <= i < K
|
| update x = x_2

return x_9
"""
    executable = Executable(parse_program(text))
    check(executable, [np.ones(3), np.ones(3), rounds_of(4)])
    check(executable, [np.ones(3), np.ones(2), rounds_of(0)])
    with pytest.raises(ShapeError, match="the shape of y does not fit the loop"):
        executable.run([np.ones(3), np.ones(2), rounds_of(4)])
    with pytest.raises(ShapeError, match="N > 1"):
        executable.run([np.ones(1), np.ones(1), rounds_of(4)])


@pytest.mark.parametrize("name", ["newton", "triangle", "counted rounds", "wave", "history"])
def test_the_driver_goes_round_in_python_too(name: str) -> None:
    program = LOOPS[name].program
    arrays = LOOPS[name].of(4)
    with tc.config(optimize="-joining"):  # otherwise loops of scalars are nests
        compiled = Executable(program).compiled((True,) * len(arrays))
    assert isinstance(compiled, CompiledKernel)
    sizes = SizePlan(program).bind([array.shape for array in arrays])
    call = compiled._begun(arrays, sizes, None)
    expected = compiled.run(arrays, sizes)
    rows = compiled._count
    for budget in (1 << 40, 1):
        assert compiled._entered(call) == 0
        done = PAUSED
        pauses = -1
        while done <= PAUSED:
            place = call.plan.table_address, PAUSED - done, rows, call.frame.address
            done = driver.execute_rounds(*place, budget, 1, 0, 0)
            pauses += 1
        assert done == rows
        assert (pauses == 0) == (budget > 1)
        for got, want in zip(call.made, expected, strict=True):
            np.testing.assert_array_equal(got, want)


def test_nan_that_a_loop_makes_is_told_of() -> None:
    executable = Executable(
        parse_program(ENDLESS.replace("x[N - i - 1] + 1.0", "sqrt(x[i] - 1.0)").replace(" = y", " = x_9"))
    )
    with tc.config(check="nan"):
        executable.run([np.ones(2), rounds_of(1)])
        with pytest.raises(NanError, match=r"(?s)`x_2` holds NaN at \(0,\).*at t = 1.*where `x\[i\]` is 0"):
            executable.run([np.ones(2), rounds_of(2)])
