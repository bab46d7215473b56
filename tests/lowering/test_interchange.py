"""Loops along memory go inside those that go on from row to row, where no step touches what another one writes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

rng = np.random.default_rng(0)


@op
def filtered(x, a):
    y = np.zeros(x.shape)
    for j in range(x.shape[1]):
        before, last = 0.0, 0.0
        for i in range(x.shape[0]):
            y[i, j] = x[i, j] + a * last - 0.25 * before
            before = last
            last = y[i, j]
    return y


@op
def alternating(x, a):
    y = np.zeros(x.shape)
    for j in range(x.shape[1]):
        s = a
        for i in range(x.shape[0] - 1, -1, -1):
            if i % 3 == 0:
                s = 1.0
            if x[i, j] > 0.5:
                s = s * x[i, j]
            y[i, j] = s
    return y


@op
def totals(x, a):
    y[i, j, k] += a * x[n, k] + i, n <= j, j < x.shape[0], i < 2
    return y


@op
def beside(x, a):
    y = np.zeros((x.shape[0], x.shape[1] + 1))
    for j in range(x.shape[1]):
        s = 0.0
        for i in range(x.shape[0]):
            s = s * a + y[i, j] + x[i, j]
            y[i, j + 1] = s
    return y


@op
def along_rows(x, a):
    y = np.zeros(x.shape)
    for i in range(x.shape[0]):
        s = 0.0
        for j in range(x.shape[1]):
            s = s * a + x[i, j]
            y[i, j] = s
    return y


SHAPES = [(0, 3), (3, 0), (1, 1), (6, 9), (3, 600), (600, 2)]


@op
def totals_of_rows(x, a):
    y[i, j] >>= x[i, n] * a, n <= j, j < x.shape[1]
    return y


@pytest.mark.parametrize("function", [filtered, alternating, totals, along_rows])
def test_steps_go_on_together(function: Any) -> None:
    for shape in SHAPES:
        x = rng.uniform(-1, 1, shape)
        x[1:2, 1:2], x[:1, 2:3] = np.nan, np.inf
        found = function(x, 0.5)
        with tc.config(optimize="-interchange"):
            np.testing.assert_allclose(found, function(x, 0.5), rtol=1e-12)
        if x.size < 100:
            np.testing.assert_allclose(found, function.interpret(x, 0.5), rtol=1e-12)
    text = str(function.explain("loops", x, 0.5))
    assert ("local row_" if function in (filtered, alternating, totals) else " - low == 4:") in text
    with tc.config(optimize="-interchange"):
        assert "low" not in str(function.explain("loops", x, 0.5))


def test_steps_that_read_each_other_stay() -> None:
    x = rng.uniform(-1, 1, (5, 9))
    np.testing.assert_allclose(beside(x, 0.5), beside.interpret(x, 0.5), rtol=1e-12)
    assert "low" not in str(beside.explain("loops", x, 0.5))


def test_rows_that_vectors_add_up_stay() -> None:
    x = rng.uniform(-1, 1, (6, 9))
    np.testing.assert_array_equal(totals_of_rows(x, 0.5), np.maximum.accumulate(x * 0.5, axis=1))
    assert "low" not in str(totals_of_rows.explain("loops", x, 0.5))


@op
def decoded(start, step, emit, seen):
    y = np.zeros((len(seen), len(start)))
    y[0, s] = start[s]
    for t in range(1, len(seen)):
        for s in range(len(start)):
            best = -np.inf
            for r in range(len(start)):
                best = max(best, y[t - 1, r] + step[r, s])
            y[t, s] = best + emit[s, seen[t] + s]
    return y


def test_rows_made_of_the_row_before() -> None:
    for n, states in ((1, 1), (4, 9), (3, 300)):
        arrays = rng.random(states), rng.random((states, states)), rng.random((states, states + 2)), np.arange(n) % 2
        found = decoded(*arrays)
        with tc.config(optimize="-interchange"):
            np.testing.assert_array_equal(found, decoded(*arrays))
        if states < 10:
            np.testing.assert_array_equal(found, decoded.interpret(*arrays))
    assert "local row_" in decoded.explain("loops", *arrays)
    # What fails first is what fails row by row.
    start, step, emit, seen = rng.random(9), rng.random((9, 9)), rng.random((9, 11)), np.array([0, 4, 5])
    with pytest.raises(IndexError, match=r"(?s)index 11 is out of range.*s = 7"):
        decoded(start, step, emit, seen)
