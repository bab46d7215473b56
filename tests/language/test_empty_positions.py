"""``argmax`` and ``argmin`` over nothing: an error, as in NumPy, where the position is needed."""

from __future__ import annotations

import numpy as np

import tcdsl as tc
from tcdsl import op
from tests.language.outcomes import assert_gives, refusal


@op
def last(x):
    y[()] = argmax(x[i])
    return y


@op
def rows(x):
    y[i] = argmin(x[i, j] for j in range(x.shape[1]))
    return y


def test_sizes_decide_at_the_call() -> None:
    assert_gives(last, np.array([1.0, 3.0, 2.0]), wanted=1)
    message = refusal(tc.ShapeError, last, np.zeros(0))
    assert "`argmax` over an empty range\n    y[()] = argmax(x[i])\n            ^^^^^^^^^^^^" in message
    assert_gives(rows, np.array([[1.0, 0.0], [2.0, 3.0]]), wanted=[1, 0])
    assert "`argmin` over an empty range" in refusal(tc.ShapeError, rows, np.zeros((3, 0)))
    assert_gives(rows, np.zeros((0, 0)), wanted=np.zeros(0))


def test_a_position_without_points_whatever_the_sizes() -> None:
    @op
    def f(x):
        y[i] = argmin(x[j]), j < i, i < 3
        return y

    assert "`argmin` over an empty range" in refusal(tc.ShapeError, f, np.arange(4.0))


def test_conditions_on_data_decide_while_running() -> None:
    @op
    def f(x, b):
        y[i] = argmax(x[j + 1] for j in range(-1, 3) if b[i, j + 1])
        return y

    @op
    def guarded(x, b):
        y[i] = argmax(x[j] for j in range(4) if b[i, j]) if any(b[i, k]) else -1
        return y

    x, b = np.array([1.0, 5.0, 3.0, 4.0]), np.array([[1, 1, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0]], bool)
    assert_gives(guarded, x, b, wanted=[1, 3, 0])
    b[1] = False
    assert_gives(guarded, x, b, wanted=[1, -1, 0])
    assert_gives(f, x, np.ones((2, 4), bool), wanted=[0, 0])
    message = refusal(tc.ShapeError, f, x, b)
    assert "`argmax` over an empty range: no condition of it holds" in message
    assert "at i = 1" in message


def test_conditions_count_where_extents_are_known() -> None:
    @op
    def f(x: real[3], b: bool[N, 3]):
        y[i] = argmax(x[j] for j in range(3) if b[i, j])
        return y

    x, b = np.array([1.0, 5.0, 2.0]), np.array([[True, True, True], [True, False, True]])
    assert_gives(f, x, b, wanted=[1, 2])
    message = refusal(tc.ShapeError, f, x, b & [[True], [False]])
    assert "`argmax` over an empty range: no condition of it holds" in message
