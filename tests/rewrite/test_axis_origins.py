"""Which axes of inputs the axes of results come from: through statements, loops and operations of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.rewrite.axis_origins import Way, axis_origins

X, V, P = np.ones((4, 3)), np.ones(4), np.array([0, 1])
OWN, OTHER = Way.OWN, Way.OTHER


@op
def added(x, y):
    return x + y


@op
def standardized(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


@op
def turned(x):
    return x.T[::-1]


@op
def joined(x, y):
    return np.concatenate([x, y])


@op
def attention(q, k, v):
    s[i, j] += q[i, d] * k[j, d]
    e[i, j] = exp(s[i, j])
    y[i, d] = sum(e[i, j] * v[j, d]) / sum(e[i, j])
    return y


@op
def difference(x):
    y[t, i] = x[t + 1, i] - x[t, i]
    return y


@op
def accumulated(x):
    y[i] += x[k], k <= i, i < x.shape[0]
    return y


@op
def windows(x):
    y[i, k] = x[i + k], k < 3
    return y


@op
def coarse(x):
    y[i] += x[2 * i + k], k < 2
    return y


@op
def picked(x, p):
    y[i] = x[p[i]]
    return y


@op
def counted(b, w):
    h = output(10)
    h[b[i]] += w[i]
    return h


@op
def gram(a):
    g[i, j] += a[i, k] * a[j, k]
    return g


@op
def diagonal(x, y):
    z[i] = x[i, i] * y[i]
    return z


@op
def outer_of_loops(x, n):
    s = x * 1.0
    for _ in range(n):
        s = s * 0.5 + sin(s)
    return s


@op
def heat(x, n):
    s = x * 1.0
    for _ in range(n):
        r[i] = get(s[i - 1], 0.0) + s[i]
        s = r
    return s


@op
def smoothed(x):
    y = output(x.shape[0])
    y[0] = x[0]
    for t in range(1, x.shape[0]):
        y[t] = 0.5 * y[t - 1] + x[t]
    return y


@op
def row_by_row(x, w):
    y = output(x.shape)
    for t in range(x.shape[0]):
        y[t, j] = x[t, j] * w[t]
    return y


squared = tc.interop.host(lambda x: x**2, shape=lambda x: x.shape)


@op
def hosted(x):
    return squared(x) + 1.0


X0, X1 = ("x", 0), ("x", 1)
# The results' axes, and the groups of axes that one index goes over.
FOUND: list[tuple[Any, tuple[Any, ...], list[dict[tuple[str, int], Way]], list[set[tuple[str, int]]]]] = [
    (added, (X, X[0]), [{X0: OWN}, {X1: OWN, ("y", 0): OWN}], [{X1, ("y", 0)}]),
    (added, (X, X[:, :1]), [{X0: OWN, ("y", 0): OWN}, {X1: OWN}], [{X0, ("y", 0)}]),
    (standardized, (X,), [{X0: OWN}, {X1: OWN}], []),
    (turned, (X,), [{X1: OTHER}, {X0: OWN}], []),
    (joined, (X, X), [{X0: OWN, ("y", 0): OTHER}, {X1: OWN, ("y", 1): OWN}], [{X1, ("y", 1)}]),
    (attention, (X, X, X), [{("q", 0): OWN}, {("v", 1): OWN}], [{("q", 1), ("k", 1)}, {("k", 0), ("v", 0)}]),
    (difference, (X,), [{X0: OWN | OTHER}, {X1: OWN}], []),
    (accumulated, (V,), [{X0: OTHER}], []),
    (windows, (V,), [{X0: OTHER}, {X0: OTHER}], []),
    (coarse, (V,), [{X0: OTHER}], []),
    (picked, (V, P), [{X0: OTHER, ("p", 0): OWN}], []),
    (counted, (P, V[:2]), [{}], [{("b", 0), ("w", 0)}]),
    (gram, (X,), [{("a", 0): OWN}, {("a", 0): OWN}], []),
    (diagonal, (X[:3], V[:3]), [{X0: OWN, X1: OWN, ("y", 0): OWN}], [{X0, X1, ("y", 0)}]),
    (outer_of_loops, (X, 30), [{X0: OWN}, {X1: OWN}], []),
    (heat, (V, 30), [{X0: OWN | OTHER}], []),
    (smoothed, (V,), [{X0: OWN | OTHER}], []),
    (row_by_row, (X, V), [{X0: OWN, ("w", 0): OWN}, {X1: OWN}], [{X0, ("w", 0)}]),
    (hosted, (X,), [{}, {}], []),
    (tc.grad(lambda x: (x * x).sum()), (X,), [{X0: OWN}, {X1: OWN}], []),
    (tc.grad(lambda x, y: (x + y).sum()), (V, V), [{}], [{X0, ("y", 0)}]),
]


@pytest.mark.parametrize(
    ("function", "arguments", "results", "tied"), FOUND, ids=[getattr(each[0], "__name__", "") for each in FOUND]
)
def test_origins(function: Any, arguments: tuple[Any, ...], results: list[Any], tied: list[Any]) -> None:
    found = axis_origins(function.program(*arguments))
    assert [dict(axis.origins) for axis in found.results[0]] == results
    assert sorted(map(sorted, found.tied)) == sorted(map(sorted, tied))


def test_letters_are_those_of_the_statement_that_makes_a_result() -> None:
    assert [axis.letter for axis in axis_origins(attention.program(X, X, X)).results[0]] == ["i", "d"]
    assert [axis.letter for axis in axis_origins(counted.program(P, V[:2])).results[0]] == [None]
