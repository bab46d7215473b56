"""Gradients that would take too much memory keep some states of their loops instead of tapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

CLEAR = Path("/proc/self/clear_refs")


@op
def chain(y: real[N], n):
    for t in tc.loop(n):
        y = tanh(1.1 * y + 0.01 * t)
    return sum(y[i] * y[i])


def peak(function: object, *arguments: object) -> int:
    return int(str(function.explain("loops", *arguments)).rstrip().rpartition("peak ")[2])  # type: ignore[attr-defined]


def test_each_call_has_as_many_states_as_fit() -> None:
    slope = tc.grad(chain)
    y, long = np.linspace(-1, 1, 1000), np.linspace(-1, 1, 4000)
    calls = ((y, 10), (y, 300), (long, 100), (y, 11))
    with tc.config(tape_memory=0):
        expected = [slope(*call) for call in calls]
        assert peak(slope, y, 300) > 2_400_000
    with tc.config(tape_memory=1_000_000):
        for _ in range(2):
            for call, want in zip(calls, expected, strict=True):
                np.testing.assert_allclose(slope(*call), want, rtol=1e-9)
        assert all(peak(slope, *call) < 1_100_000 for call in calls)
        # Calls for which a tape is small enough have one.
        assert "times checkpointed" not in str(slope.explain("ir", y, 10))
        assert "repeat step" not in str(slope.explain("loops", y, 10))
        assert "repeat step" in str(slope.explain("loops", y, 300))
        shown = str(slope.cache_info())
        assert " * N" in shown
        assert "<= 1000000" in shown
        assert "max(" not in shown
    np.testing.assert_allclose(slope(y, 300), expected[1], rtol=1e-12)


def test_loops_that_ask_for_themselves_are_left_as_they_are() -> None:
    @op
    def segments(y: real[N], n):
        for _ in tc.loop(n, checkpoint_every=10):
            y = tanh(1.1 * y)
        return sum(y[i] * y[i])

    y = np.linspace(-1, 1, 1000)
    expected = tc.grad(segments)(y, 100)
    with tc.config(tape_memory=1000):
        np.testing.assert_allclose(tc.grad(segments)(y, 100), expected, rtol=1e-12)
        np.testing.assert_allclose(tc.grad(chain)(y, 5), tc.grad(chain)(y, 5))


@op
def descended(y: real[N], n, m):
    for _ in range(m):
        y = y - 0.1 * tc.grad(chain)(y, n)
    return y


def test_gradients_inside_of_functions_have_as_many_states_as_fit() -> None:
    y = np.linspace(-1, 1, 1000)
    expected = y
    for _ in range(2):
        expected = expected - 0.1 * tc.grad(chain)(expected, 300)
    np.testing.assert_allclose(descended(y, 300, 2), expected, rtol=1e-12)
    assert peak(descended, y, 300, 2) > 2_400_000
    with tc.config(tape_memory=1_000_000):
        for _ in range(2):
            np.testing.assert_allclose(descended(y, 300, 2), expected, rtol=1e-9)
        assert peak(descended, y, 300, 2) < 1_100_000
        assert "<= 1000000" in str(descended.cache_info())
    np.testing.assert_allclose(descended(y, 300, 2), expected, rtol=1e-12)


@op
def until(y: real[N], n):
    k = 0
    while k < n:
        y = tanh(1.1 * y + 0.01 * k)
        k = k + 1
    return sum(y[i] * y[i])


@op
def broken_off(y: real[N], limit, n):
    for t in range(n):
        if t >= limit:
            break
        y = tanh(1.1 * y + 0.01 * t)
    return sum(y[i] * y[i])


def test_loops_that_data_end_have_as_many_states_as_fit() -> None:
    y, limit = np.linspace(-1, 1, 1000), np.array(300)
    expected = tc.grad(chain)(y, 300)
    for slope, given in ((tc.grad(until), (y, limit)), (tc.grad(broken_off), (y, limit, 400))):
        assert peak(slope, *given) > 2_400_000
        with tc.config(tape_memory=1_000_000):
            np.testing.assert_allclose(slope(*given), expected, rtol=1e-9)
            assert peak(slope, *given) < 1_100_000


@op
def kept_by_many(y: real[N], limit):
    k = 0
    for t in tc.loop(1000, checkpoints=1_000_000):
        if k >= limit:
            break
        y = tanh(1.1 * y + 0.01 * t)
        k = k + 1
    return sum(y[i] * y[i])


def test_loops_that_data_end_keep_no_more_states_than_fit_whatever_they_ask_for() -> None:
    y, limit = np.linspace(-1, 1, 1000), np.array(300)
    with tc.config(tape_memory=1_000_000):
        np.testing.assert_allclose(tc.grad(kept_by_many)(y, limit), tc.grad(chain)(y, 300), rtol=1e-9)
        assert peak(tc.grad(kept_by_many), y, limit) < 1_100_000


@op
def rounds_of_rounds(y: real[N], limit, m):
    if m > 0:
        for t in range(m):
            k = 0
            while k < limit:
                y = tanh(1.1 * y + 0.01 * t)
                k = k + 1
    return sum(y[i] * y[i])


def test_loops_inside_have_as_many_states_as_fit() -> None:
    y, slope = np.linspace(-1, 1, 1000), tc.grad(rounds_of_rounds)
    expected = slope(y, np.array(20), 10)
    with tc.config(tape_memory=300_000):
        np.testing.assert_allclose(slope(y, np.array(20), 10), expected, rtol=1e-9)
        assert peak(slope, y, np.array(20), 10) < 330_000


@op
def chained(y: real[N], n):
    for t in tc.loop(n):
        y = tanh(1.1 * y + 0.01 * t)
    return y


@op
def pulled_back(y: real[N], n):
    _, pullback = tc.vjp(chain, y, n)
    return pullback(2.0)[0]


def test_all_derivatives_have_as_many_states_as_fit() -> None:
    y = np.linspace(-1, 1, 100)

    def found() -> tuple[int, list[np.ndarray]]:
        value, pullback = tc.vjp(chain, y, 300)
        adjoints = [pullback(2.0)[0] for _ in range(2)]
        product = tc.hvp(chain, (y, 300), (np.ones(100), None))[0]
        jacobians = [tc.jacobian(chained, mode=mode)(y[:5], 300) for mode in ("reverse", "forward")]
        hessian = tc.hessian(chain)(y[:5], 300)
        kept = sum(array.nbytes for array in pullback.stored)
        return kept, [value, *adjoints, pulled_back(y, 300), product, *jacobians, hessian]

    with tc.config(tape_memory=0):
        kept, wanted = found()
        assert kept > 240_000
    with tc.config(tape_memory=10_000):
        kept, others = found()
        assert kept < 10_000
        assert peak(pulled_back, y, 300) < 12_000
        assert peak(tc.hessian(chain), y[:5], 300) < 12_000
        # Forward mode has no tape.
        assert "repeat step" not in str(tc.jacobian(chained, mode="forward").explain("loops", y[:5], 300))
    for one, other in zip(wanted, others, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


@pytest.mark.skipif(not CLEAR.exists(), reason="the system does not say what a process has held at most")
def test_ten_thousand_steps_take_no_more_memory_than_asked() -> None:
    slope, y = tc.grad(chain), np.linspace(-1, 1, 4000)
    CLEAR.write_text("5")  # the most begins anew
    before = most_held()
    with tc.config(tape_memory=4_000_000):
        slope(y, 10_000)
        assert peak(slope, y, 10_000) < 4_100_000
    assert most_held() - before < 160_000_000  # with the compiler; a tape takes 320,000,000


def most_held() -> int:
    """The most bytes that this process has held."""
    status = Path("/proc/self/status").read_text()
    return 1000 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))


@pytest.mark.parametrize("wrong", [-1, "many", 2.5])
def test_a_limit_is_a_count_of_bytes(wrong: object) -> None:
    with pytest.raises(tc.ConfigurationError, match=r"tape_memory is .*; write a count of bytes"):
        tc.config(tape_memory=wrong)  # type: ignore[arg-type]


def test_loops_that_change_single_cells_keep_what_these_were() -> None:
    @op
    def solve(values, b, row, column):
        y = np.zeros(b.shape[0])
        for i in range(b.shape[0]):
            s = b[i]
            for k in range(row[i], row[i + 1]):
                s -= values[k] * y[column[k]]
            y[i] = s
        return y

    @op
    def changed_twice(x, many):
        y = x * 1
        for i in range(many.shape[0]):
            s = x[i]
            for k in range(many[i]):
                s = sin(s) + y[many[k]] * y[i]
            y[many.shape[0] - 1 - i] *= s
            y[0] += s * y[i]
        return y

    n, chance = 400, np.random.default_rng(26)
    row, column = np.arange(n + 1) * 2, chance.integers(0, n, 2 * n) % np.repeat(np.arange(1, n + 1), 2)
    values, b = chance.random(2 * n) / 4, chance.random(n)
    assert peak(tc.grad(lambda v: solve(v, b, row, column).sum()), values) < 50 * n * 8
    tc.check_grads(lambda v, c: solve(v, c, row[:6], column), (values[:10], b[:5]), order=2)
    tc.check_grads(lambda x: changed_twice(x, np.array([0, 1, 2, 2, 4])), (b[:5],), order=2)
