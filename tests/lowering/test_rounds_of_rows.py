"""Rounds inside of the loop over rows of which none touches another one's cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

rng = np.random.default_rng(2)


@op
def along(x, y):
    a = np.zeros((x.shape[0], x.shape[1]))
    z = np.zeros_like(y)
    for k in range(1, x.shape[2]):
        a = 0.5 * (x[:, :, k] + x[:, :, k - 1])
        z[:, :, k] = a * y[:, :, k] + z[:, :, k - 1]
        a = a / (1.0 + z[:, :, k] * z[:, :, k])
        z[:, :, k] = z[:, :, k] * a
    return z, a


@op
def of_different_heights(x, y, n):
    a, b = x * 1, y * 1
    for t in range(n):
        a[:, :] = 0.5 * a + a * a
        b[:, :] = b - 0.1 * t
    return a, b


@op
def backwards(x, n):
    y = x * 1
    for t in range(n):
        y[:, ::-1] = 0.5 * y[:, :] + t
        y[:, :] = y * y
    return y


@op
def from_row_to_row(x, n):
    y = x * 1
    for _ in range(n):
        y[1:, :] = 0.5 * (y[1:, :] + y[:-1, :])
        y[:-1, :] = y[:-1, :] - 0.1
    return y


@op
def of_one_row(x, n):
    y = x * 1
    for _t in range(n):
        y[:, :] = y + x[0, :]
        y[:, :] = y * y[0, 0]
    return y


@op
def of_a_vector(x, n):
    y = x[0, :] * 1
    for t in range(n):
        y[:] = 0.5 * y + t
        y[:] = y * y
    return y


@op
def while_small(x, n):
    y = x * 1
    while y[0, 0] < n:
        y = y + 1.0
    return y


@op
def at_positions(x, p, n):
    y = x * 1
    for t in range(n):
        y[:, :] = y * x[p[t], 0] + 1.0
    return y


def arrays(rows: int) -> dict[Any, tuple[Any, ...]]:
    x, y = rng.random((rows, 5)), rng.random((rows + 2, 6))
    deep = rng.random((rows, 5, 4))
    return {
        along: (deep, deep + 1),
        of_different_heights: (x, y, 3),
        backwards: (x, 3),
        from_row_to_row: (x, 4),
        of_one_row: (x, 3),
        of_a_vector: (x, 3),
        while_small: (x, 3.0),
        at_positions: (x, np.array([0, rows - 1, 0]), 3),
    }


INSIDE = (along, of_different_heights)


@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("threads", [1, 2])
def test_rounds_run_row_by_row_where_rows_are_apart(rows: int, threads: int) -> None:
    for function, given in arrays(rows).items():
        with tc.config(threads=threads):
            found = function(*given)
        wanted = function.interpret(*given)
        for one, other in zip(*(each if isinstance(each, tuple) else (each,) for each in (found, wanted)), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=function.__name__)
        loops = str(function.explain("loops", *given))
        assert ("rounds go inside of the loop over rows" in loops) == (function in INSIDE), function
    with tc.config(optimize="-interchange"):
        assert "rounds go inside" not in str(along.explain("loops", *arrays(rows)[along]))


def test_no_row_and_no_round() -> None:
    for shape in ((0, 4, 6), (3, 0, 6), (3, 4, 1), (3, 4, 0)):
        z, a = along(np.ones(shape), np.ones(shape))
        assert z.shape == shape
        assert a.shape == shape[:2]
        assert not z.any()
        assert not a.any()


def test_code_changes_its_arrays_in_place() -> None:
    @cd
    def swing(x, v, n):
        for _ in range(n):
            v[:, :] = 0.9 * v - 0.1 * x
            x[:, :] = x + 0.1 * v

    x, v = rng.random((4, 30)), rng.random((4, 30))
    still, fast = x.copy(), v.copy()
    swing(x, v, 7)
    for _ in range(7):
        fast = 0.9 * fast - 0.1 * still
        still = still + 0.1 * fast
    np.testing.assert_allclose(x, still)
    np.testing.assert_allclose(v, fast)
    tc.check_grads(along, (rng.random((2, 3, 4)), rng.random((2, 3, 4))), modes=("rev", "fwd"))


def test_rows_of_rounds_in_a_loop_in_a_loop_are_made_by_them() -> None:
    @op
    def clustered(x, c, n):
        total = np.zeros_like(c)
        label = np.zeros(x.shape[0], np.int64)
        for t in range(n):
            for i in range(x.shape[0]):
                best = np.inf
                for j in range(c.shape[0]):
                    s = abs(x[i, 0] - c[j, 0]) + t
                    if s < best:
                        best = s
                        label[i] = j
                for a in range(x.shape[1]):
                    total[label[i], a] += x[i, a]
        return total, label

    x, c = rng.random((6, 5)), rng.random((3, 5))
    loops = str(clustered.explain("loops", x, c, 3))
    assert "repeat " not in loops
    assert "parallel for a" not in loops
    for threads in (1, 2):
        with tc.config(threads=threads):
            for found, wanted in zip(clustered(x, c, 3), clustered.interpret(x, c, 3), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-12)
