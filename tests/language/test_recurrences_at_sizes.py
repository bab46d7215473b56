"""Statements that are recurrences at some sizes alone."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import refusal
from tests.language.test_recurrences import RECURS, check, refused, x


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5])
def test_it_is_no_recurrence_at_sizes_where_nothing_is_read_that_is_written(size: int) -> None:
    def sequential(lag: int, first: int, x: np.ndarray) -> tuple[list[float], bool]:
        s, recurs = list(x[:first]) + [0.0] * max(0, len(x) - first), False
        for t in range(lag, len(x)):
            recurs = recurs or t - lag >= max(first, lag)
            s[t] = s[t - lag] + x[t]
        return s, recurs

    @op
    def fibonacci(x):
        (N,) = x.shape
        s: real[N]
        s[i] = x[i], i < 2
        s[t] = s[t - 1] + s[t - 2], t >= 2
        return s

    @op
    def lagged(x, *, d):
        (N,) = x.shape
        s: real[N]
        s[0:1] = x[0:1]
        s[t] = s[t - d] + x[t], t >= d
        return s

    @op
    def parts(x):
        (N,) = x.shape
        s: real[N]
        s[0:1] = x[0:1]
        s[2:] = s[:-2] + x[2:]
        return s

    given = np.arange(1.0, size + 1)
    if size > 3:
        refused(fibonacci, given)
    else:
        check(fibonacci, given, wanted=[1, 2, 3][:size])
    for d in (2, 3, 5):
        wanted, recurs = sequential(d, 1, given)
        for f, configuration in ((lagged, {"d": d}), (parts, {}))[: 2 if d == 2 else 1]:
            if recurs:
                with pytest.raises(tc.ShapeError, match="nothing has written before"):
                    f.interpret(given, **configuration)
            else:
                check(f, given, wanted=wanted, **configuration)


def test_where_it_depends_on_sizes_it_is_checked_at_the_call() -> None:
    @cd
    def f(y, x, lag):
        (N,) = x.shape
        (K,) = lag.shape
        s: real[N]
        s[i] = x[i], i < K
        s[i] = s[i - K] + x[i], i >= K
        y[i] = s[i]

    lag, y = np.zeros(3), np.zeros(5)
    check(f, y, x, lag, wanted=([1, 2, 4, 9, 18],))
    message = refusal(tc.ShapeError, f, y, x, np.zeros(2))
    assert f"`s[i - K]` {RECURS}, unless" in message
    assert "for i in range(" in message
    np.testing.assert_array_equal(y, 0)
    assert f.interpret(y[:4], x[:4], np.zeros(2)) is not None


def test_what_follows_is_not_staged_for_the_few_sizes_at_which_there_is_none() -> None:
    @op
    def f(x):
        (N,) = x.shape
        s: real[N]
        s[0] = x[0]
        s[t] = s[t - 1] + x[t], t >= 1
        tail = output(N - 3)
        tail[i] = s[i + 3]
        return tail

    assert "negative extent" not in refused(f, x)
