"""Ctrl-C at any moment: while staging, compiling and running. What was begun is begun anew, and is right."""

from __future__ import annotations

import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import islpy as isl
import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.large_stack import on_large_stack
from tcdsl.locks import COMPILING

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has no interval timers"),
    # What Python calls where nothing can be raised (weak references, callbacks of LLVM and of the garbage collector)
    # shows the interruption that comes there and loses it.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@op
def scaled(x, *, factor):
    return factor * x + 1


@op
def outer(x, y):
    z[i, j] = x[i] * y[j]
    return z


@cd
def increase(a, b):
    a += b
    b[i] = a[i] / 2


@pytest.fixture(autouse=True)
def interrupted() -> Iterator[None]:
    """The alarm of a timer does what Ctrl-C does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupting(call: Callable[[], Any], seconds: float) -> bool:
    """Call, and say whether the interruption came meanwhile."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        return True
    return False


def check_begun_anew(seconds: float, number: int, interpret: bool = False) -> bool:
    """Interrupt the staging and compilation of a function that is new, then call it."""

    @op
    def wave(x):
        (N,) = x.shape
        y: real[N]
        y[i] = sin(x[i] * number) + get(x[i - 1], 0.0)
        t[()] += y[i] * y[i]
        return y, t

    x = np.linspace(0, 1, 6)
    run = wave.interpret if interpret else wave
    done = interrupting(lambda: run(x), seconds)
    want = np.sin(x * number) + np.concatenate([[0], x[:-1]])
    y, t = run(x)
    np.testing.assert_allclose(y, want)
    np.testing.assert_allclose(t, (want**2).sum())
    np.testing.assert_allclose(tc.grad(lambda x: wave(x)[1]).interpret(x).shape, (6,))
    assert COMPILING.acquire(timeout=1)
    COMPILING.release()
    return done


def test_staging_begins_anew() -> None:
    interrupted = [check_begun_anew(0.001 * k, 2, interpret=True) for k in range(1, 20)]
    assert any(interrupted)


@pytest.mark.long
def test_compilations_begin_anew(tmp_path: Path) -> None:
    with tc.config(cache_dir=tmp_path):
        for k in range(1, 40):
            check_begun_anew(0.02 * k, k + 3)


def test_calls_leave_everything_usable() -> None:
    x, y = np.arange(4.0), np.arange(3.0)
    scaled(x, factor=1.0), outer(x, y), increase(x.copy(), x.copy())
    chance = random.Random(5)
    count = 0
    for round_ in range(150):
        m, n = chance.randint(0, 50), chance.randint(0, 50)
        a, b = np.ones(m), np.arange(float(m))

        def calls(m: int = m, n: int = n, a: np.ndarray = a, b: np.ndarray = b) -> None:
            for _ in range(2000):
                scaled(np.ones(m), factor=2.0)
                outer(np.ones(m), np.ones(n))
                increase(a, b)

        count += interrupting(calls, chance.uniform(1e-5, 2e-3))
        if round_ % 10 == 0:
            np.testing.assert_array_equal(scaled(np.ones(m), factor=2.0), np.full(m, 3.0))
            np.testing.assert_array_equal(outer(np.ones(m), np.arange(n)), np.ones((m, 1)) * np.arange(n))
            a, b = np.ones(m), np.arange(float(m))
            increase(a, b)
            np.testing.assert_array_equal(a, 1 + np.arange(m))
            np.testing.assert_array_equal(b, a / 2)
    assert count > 140, count  # one that comes while Python cleans up is lost
    assert threading.active_count() < 20


def test_interruptions_that_isl_drops_are_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    @op
    def sums(x):
        y[i] += x[j], j <= i, i < 3, (i + j) % 2 == 0  # isl names the points of such a set
        return y

    def interrupted(point: Any) -> None:
        raise KeyboardInterrupt

    foreach = isl.Set.foreach_point
    with monkeypatch.context() as patch:
        patch.setattr(isl.Set, "foreach_point", lambda points, collect: foreach(points, interrupted))
        with pytest.raises(KeyboardInterrupt):
            sums.interpret(np.ones(3))
    np.testing.assert_array_equal(sums.interpret(np.ones(3)), [1, 1, 2])


def test_work_on_a_large_stack_is_interrupted() -> None:
    """Python's limit falls only when the thread has left its frames."""

    def depth(levels: int) -> int:
        return 1 + depth(levels - 1) if levels else 0

    def long_work() -> int:
        return sum(depth(5000) for _ in range(3000))

    limit = sys.getrecursionlimit()
    for seconds in (0.01, 0.05, 0.1):
        assert interrupting(lambda: on_large_stack(long_work), seconds)
        assert sys.getrecursionlimit() == limit
    assert on_large_stack(lambda: depth(20_000)) == 20_000
