"""Statements after statements: versions, resets, overwritten cells, nested reductions, local definitions."""

from __future__ import annotations

import numpy as np

from tcdsl import op
from tests.autodiff.hard_cases.cases import Table

__all__ = ["TABLE"]

TABLE = case = Table()
RNG = np.random.default_rng(14)


def some(*shape: int) -> np.ndarray:
    return RNG.uniform(0.3, 1.5, shape)


@case(some(4), some(4), smooth=True, compiled=True)
@case(some(1), some(1), smooth=True, name="one")
@op
def versions(x, w):
    w[i] += x[i] * x[i]
    w[2 * i] = x[i] * w[i]
    w[i] *= w[i] + x[0]
    w[i] /= x[i]
    w[0] -= w[i] * x[i]
    w[i] >>= 0.1 * x[i]
    w[i] **= 2.0
    return w


@case(some(4), some(4), slopes=([2, 2, 2, 2], [0, 0, 0, 0]))
@op
def reset(x, w):
    w[i] = sum(x[i] for k in range(2))
    return w


@case(some(3, 4), some(3), smooth=True)
@op
def every_reset(A, w):
    w[i] = sum(A[i, j] * w[i])
    w[i] = w[i] + prod(A[i, j])
    w[i] = prod(A[i, j] * w[i])
    w[i] = max(A[i, j] * w[i])
    w[i] = mean(A[i, j] * w[i])
    w[i] = min(A[i, j] + w[i])
    return w


@case(some(5), slopes=([0, 0, 0, 0, 200],))
@op
def overwritten(x):
    y[i] = 200.0 * x[i]
    y[i] = 7.0, i < 4
    return y


@case(some(3), some(2), smooth=True)
@op
def cells_outside_keep_their_start(x, w):
    w[0] = x[2] * x[1]
    y[i] = 1.0 * w[i]
    y[1] *= x[0]
    return y


@case(some(3, 4), oracle=lambda xp, A: A / xp.sum(A, 1)[:, None] + xp.amax(A, 0) * xp.mean(A), smooth=True)
@op
def reductions_in_values(A):
    y[i, j] = A[i, j] / sum(A[i, l]) + max(A[k, j]) * mean(A[k, l])
    return y


@case(some(2, 3), smooth=True)
@op
def nested_reductions(A):
    y[()] = sum(A[i, 0] * max(A[i, j] * sum(A[k, j] for k in range(2)) for j in range(3)) for i in range(2))
    return y


@case(some(2, 3), smooth=True)
@case(some(2, 1), smooth=True, name="one")
@op
def softmax(A):
    e[i, j] = exp(A[i, j] - max(A[i, k]))
    y[i, j] = e[i, j] / sum(e[i, k])
    return y


@case(np.zeros((2, 0)), slopes=(np.zeros((2, 0)),), smooth=True)
@op
def sums_over_nothing(A):
    y[i] = sum(A[i, k]) + prod(A[i, k] + 1) * 3.0
    return y


@case(np.zeros((2, 0)), slopes=(np.zeros((2, 0)),))
@op
def largest_of_nothing(A):
    y[i] = max(A[i, k]) - min(A[i, k])
    return y


@case(some(3), np.zeros((3, 0)), slopes=([1, 1, 1], np.zeros((3, 0))), smooth=True)
@op
def onto_a_target_from_nothing(w, A):
    w[i] *= A[i, k]
    w[i] >>= A[i, k]
    w[i] /= A[i, k]
    w[i] += A[i, k]
    return w


@case(some(3), some(3), smooth=True)
@op
def local_definitions(x, w):
    a = x[i] * w[i]
    b = exp(a) + a
    y[i] = b * a + sum(x[k] * w[k]) * b
    s[()] += y[j] * x[j]
    y[i] += s[()] * a if i > 0 else b
    return y


@case(some(3), some(3), smooth=True)
@op
def several_results(x, w):
    y[i] = x[i] * w[i]
    s[()] += y[i]
    n[()] += int64(x[i] > 0.5)
    return y, s, n, x, y * s


@op
def inner(x, w):
    y[i] = tanh(x[i]) * w[i]
    return y


@case(some(3), some(3), oracle=lambda xp, x, w: xp.tanh(xp.tanh(x) * w) * w * x, smooth=True)
@op
def operations_in_operations(x, w):
    return inner(inner(x, w), w) * x


@case([0.5, 0.9], [0.5, 0.4], slopes=([0, 1], [0, 1]))
@op
def gates(x, w):
    assign(a[()], "=:?/", x[i])
    assign(b[()], "=:?^", w[i] - 0.45)
    return a + b


@case([0.5, 0.9], [0.5, 0.4], slopes=([0, 0], [0, 1]))
@op
def gates_onto_targets(w, x):
    assign(w[i], "=?/", x[i] + 0.4 * float64(1 - i))
    assign(w[1], "=?^", w[0] * 0.0 + x[1])
    return w[1:] * 1.0 - 0.0 * w[:1]
