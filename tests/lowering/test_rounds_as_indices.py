"""Loops that make a row in each round, as those that call an op for each row, are statements over all rows."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DataIndexError

rng = np.random.default_rng(0)
X, W, R, COL = (
    rng.uniform(0.5, 1.5, (5, 4)),
    rng.uniform(0.5, 1.5, 4),
    np.array([0, 2, 2, 7, 9, 4]),
    rng.integers(0, 4, 9),
)
V = rng.uniform(0.5, 1.5, 9)


@op
def dot(r, w):
    s[()] += r[k] * w[k]
    return s


@op
def norm(r):
    return sqrt((r * r).sum())


@op
def unit(r):
    return r / norm(r)


@op
def turned(p, c):
    q = np.zeros(4)
    q[0] = c * p[0] - p[1]
    q[3] = c * p[1] + p[0]
    return q


@op
def of_range(low, high, v, col, w):
    return sum(v[k] * w[col[k]] for k in range(low, high))


@op
def series(a):
    s[()] += a**k / (k + 1), k < 8
    return s


@op
def dots(X, w):
    y = np.zeros(X.shape[0])
    for i in range(X.shape[0]):
        y[i] = dot(X[i], w)
    return y


@op
def units(X):
    y = np.zeros_like(X)
    for i in range(X.shape[0]):
        y[i] = unit(X[i])
    return y


@op
def all_turned(X, w):
    y = np.zeros_like(X)
    for i in range(X.shape[0]):
        y[i] = turned(X[i], w[i % 4])
    return y


@op
def of_ranges(r, v, col, w):
    y = np.zeros(r.shape[0] - 1)
    for i in range(r.shape[0] - 1):
        y[i] = of_range(r[i], r[i + 1], v, col, w)
    return y


@op
def all_series(w):
    y = np.zeros(w.shape[0] + 1)
    for i in range(w.shape[0]):
        y[i + 1] = series(w[i]) + i
    return y


@op
def distances(P, Q):
    d = np.zeros((P.shape[0], Q.shape[0]))
    for i in range(P.shape[0]):
        for j in range(Q.shape[0]):
            d[i, j] = norm(P[i] - Q[j])
    return d


@op
def onto_rows(X):
    y = X + 0.0
    for i in range(X.shape[0]):
        y[i, 1:] += unit(y[i])[1:]
        y[i] *= norm(y[i])
    return y


@op
def covariance(X):
    n, m = X.shape
    mean, cov = np.zeros(m), np.zeros((m, m))
    for j in range(m):
        for i in range(n):
            mean[j] += X[i, j]
        mean[j] /= n
    for i in range(m):
        for j in range(i, m):
            s = 0.0
            for k in range(n):
                s += (X[k, i] - mean[i]) * (X[k, j] - mean[j])
            s /= n - 1.0
            cov[i, j] = s
            cov[j, i] = s
    return cov


@op
def added(col, v, X):
    y = np.zeros((4, X.shape[0]))
    for k in range(len(col)):
        for i in range(X.shape[0]):
            y[col[k], i] += v[k] * X[i, 0]
    return y


@op
def gathered(X, col):
    y = np.zeros((len(col), X.shape[0]))
    for k in range(len(col)):
        for i in range(X.shape[0]):
            y[k, i] = X[i, col[k]]
    return y


def onto(x: np.ndarray) -> np.ndarray:
    y = x.copy()
    for row in y:
        row[1:] += (row / np.linalg.norm(row))[1:]
        row *= np.linalg.norm(row)
    return y


TURNED = np.stack(
    [W[[0, 1, 2, 3, 0]] * X[:, 0] - X[:, 1], 0 * X[:, 0], 0 * X[:, 0], W[[0, 1, 2, 3, 0]] * X[:, 1] + X[:, 0]], 1
)
TERMS = V * W[COL]
MAPPED: dict[str, tuple[Any, tuple[np.ndarray, ...], np.ndarray]] = {
    "dots": (dots, (X, W), X @ W),
    "units": (units, (X,), X / np.linalg.norm(X, axis=1, keepdims=True)),
    "turned": (all_turned, (X, W), TURNED),
    "ranges": (of_ranges, (R, V, COL, W), np.array([TERMS[a:b].sum() for a, b in pairwise(R)])),
    "series": (
        all_series,
        (W,),
        np.r_[0, (W[:, None] ** np.arange(8) / np.arange(1, 9)).sum(1) + np.arange(4)],
    ),
    "distances": (distances, (X, X[:3] * 2), np.linalg.norm(X[:, None] - X[:3] * 2, axis=2)),
    "onto": (onto_rows, (X,), onto(X)),
    "covariance": (covariance, (X,), np.cov(X, rowvar=False)),
    "added": (added, (COL, V, X), np.stack([V @ (k == COL) for k in range(4)])[:, None] * X[:, 0]),
    "gathered": (gathered, (X, COL), X[:, COL].T),
}


@pytest.mark.parametrize("name", MAPPED)
def test_no_round_is_left(name: str) -> None:
    function, arrays, wanted = MAPPED[name]
    assert not re.search("repeat |rounds_of_", str(function.explain("loops", *arrays)))
    np.testing.assert_allclose(function(*arrays), wanted, rtol=1e-12)
    np.testing.assert_allclose(function.interpret(*arrays), wanted, rtol=1e-12)
    with tc.config(optimize="-fusion"):
        assert re.search("repeat |rounds_of_", str(function.explain("loops", *arrays)))


@pytest.mark.parametrize("name", ["dots", "turned", "onto"])
def test_without_rows_and_their_derivatives(name: str) -> None:
    function, (x, *others), _ = MAPPED[name]
    assert function(x[:0], *others).shape == (0, *function(x, *others).shape[1:])
    tc.check_grads(function, (x, *others))


def test_memory_of_the_caller() -> None:
    @cd
    def scale(y, X):
        for i in range(X.shape[0]):
            y[i] = norm(X[i])
            X[i] = X[i] / y[i]

    y, x = np.ones(6), X.copy()
    scale(y, x)
    np.testing.assert_allclose(y, [*np.linalg.norm(X, axis=1), 1])
    np.testing.assert_allclose(x, X / np.linalg.norm(X, axis=1, keepdims=True))


@op
def recurrence(r, t):
    s = 0.0
    for k in range(r.shape[0]):
        s = s * t + r[k]
    return s


@op
def nested(r, w):
    s = 0.0
    for k in range(r.shape[0]):
        s = 0.5 * s + recurrence(w[1:], r[k]) * r[3 - k]
    return s


@op
def columns(X, w):
    y = np.zeros(X.shape[1])
    for i in range(X.shape[1]):
        y[i] = nested(X[:4, i], w)
    return y


@op
def rows(X, w):
    y = np.zeros((2, X.shape[0]))
    for i in range(X.shape[0]):
        y[0, i] = nested(X[i], w)
        y[1, i] = recurrence(X[X.shape[0] - 1 - i, 1:], w[0])
    return y


@pytest.mark.parametrize("function", [rows, columns])
def test_loops_in_ops_read_rows_where_they_are(function: Any) -> None:
    def plain(r: np.ndarray) -> float:
        s = 0.0
        for k in range(4):
            inner = 0.0
            for each in W[1:]:
                inner = inner * r[k] + each
            s = 0.5 * s + inner * r[3 - k]
        return s

    wanted = [plain(row) for row in (X if function is rows else X[:4].T)]
    found = np.atleast_2d(function(X, W))
    np.testing.assert_allclose(found[0], wanted, rtol=1e-12)
    np.testing.assert_allclose(np.atleast_2d(function.interpret(X, W)), found, rtol=1e-12)
    assert ("temporary" in str(function.explain("loops", X, W))) == (function is columns)
    tc.check_grads(function, (X, W))


@op
def running(X):
    y = np.zeros(X.shape[0] + 1)
    for i in range(X.shape[0]):
        y[i + 1] = 0.5 * y[i] + norm(X[i])
    return y


@op
def reversed_rows(X):
    y = X + 0.0
    for i in range(X.shape[0]):
        y[i] = unit(y[X.shape[0] - 1 - i])
    return y


@op
def ends(X):
    y = X + 0.0
    for i in range(X.shape[0]):
        y[i, :i] = X[i, :i] / norm(X[i, : i + 1])
    return y


@op
def shifted(X):
    y = X + 0.0
    for i in range(X.shape[0] - 1):
        for j in range(X.shape[1]):
            y[i + 1, j] += 0.5 * y[i, j]
    return y


@op
def totals(X):
    y = np.zeros(X.shape[1])
    for j in range(X.shape[1]):
        for i in range(X.shape[0]):
            y[j] += X[i, j] * y[0]
    return y + 1


@op
def large(A, B, X):
    y = np.zeros(X.shape[0])
    for i in range(X.shape[0]):
        y[i] = norm(B @ exp(A @ X[i]))
    return y


@pytest.mark.parametrize("function", [running, reversed_rows, shifted, totals, large])
def test_rounds_stay_that_read_each_other_or_would_need_more_memory(function: Any) -> None:
    given = (rng.uniform(0, 1, (6, 4)), rng.uniform(0, 1, (3, 6)), X) if function is large else (X,)
    assert re.search("repeat |rounds_of_", str(function.explain("loops", *given)))
    np.testing.assert_allclose(function(*given), function.interpret(*given), rtol=1e-12)


def test_rows_whose_length_depends_on_the_round() -> None:
    np.testing.assert_allclose(ends(X), ends.interpret(X), rtol=1e-12)


@op
def factored(A):
    A = A.copy()
    for i in range(A.shape[0]):
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[k, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            for k in range(i):
                A[i, j] -= A[i, k] * A[k, j]
    return A


def test_some_loops_in_a_round_become_statements() -> None:
    given = np.random.default_rng(0).random((9, 9)) + 9 * np.eye(9)
    found = factored(given)
    np.testing.assert_allclose((np.tril(found, -1) + np.eye(9)) @ np.triu(found), given)
    # The first loop over j reads what it has written, of the second one no round reads another one's cells.
    text = str(factored.explain("loops", given))
    assert text.count("for [j_round, k]") == text.count("for j_round in") == 1
    assert text.partition("for j_round in")[2].count("for ") == 0


def test_faults_are_those_of_the_first_round() -> None:
    @op
    def picked(X, w, p):
        y = np.zeros(X.shape[0])
        for i in range(X.shape[0]):
            y[i] = dot(X[i], w) * w[p[i]]
        return y

    np.testing.assert_allclose(picked(X, W, np.array([3, 3, 2, 1, 0])), (X @ W) * W[[3, 3, 2, 1, 0]])
    with pytest.raises(DataIndexError, match="7"):
        picked(X, W, np.array([3, 7, 2, 9, 0]))


@cd
def relaxed(u, f, w, steps):
    n, m = u.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1 + (i + t) % 2, m - 1, 2):
                r = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j] - f[i, j]
                u[i, j] += 0.25 * w * r


def test_scalars_made_of_what_rounds_change_are_not_kept_for_a_second_pass() -> None:
    for n, m in ((7, 8), (8, 7), (3, 3), (2, 5), (1, 0)):
        u, f = (np.random.default_rng(k).random((n, m)) for k in range(2))
        wanted = u.copy()
        for t in range(3):
            for i in range(1, n - 1):
                for j in range(1 + (i + t) % 2, m - 1, 2):
                    four = wanted[i - 1, j] + wanted[i + 1, j] + wanted[i, j - 1] + wanted[i, j + 1]
                    wanted[i, j] += 0.3 * (four - 4 * wanted[i, j] - f[i, j])
        relaxed(u, f, 1.2, 3)
        np.testing.assert_allclose(u, wanted)
    text = str(relaxed.explain("loops", u, f, 1.2, 3))
    assert "temporary r" not in text
    # Each round changes cells of another color than those that it reads, which sets alone show.
    assert "parallel for i_round in" in text
