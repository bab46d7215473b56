"""Affine reads and targets: shifted, strided, reversed, dilated, diagonal, triangular, broadcast, of tiny extents."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl import op
from tests.autodiff.hard_cases.cases import Table

__all__ = ["TABLE"]

TABLE = case = Table()
RNG = np.random.default_rng(11)


def some(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


SHAPES = [[some(n), some(m)] for n, m in ((5, 3), (3, 3), (3, 1), (2, 2), (1, 1), (2, 3))]
LINES = [[some(n)] for n in (5, 3, 2, 1, 0)]


# -- every variable of a sum counts --------------------------------------------------------------------------


@case([1.0, 2.0], [3.0, 4.0, 5.0], slopes=([3, 3], [2, 2, 2]), smooth=True, compiled=True)
@case([1.0, 2.0], np.zeros(0), slopes=([0, 0], []), smooth=True, name="empty")
@op
def constant_derivative(A, B):
    O[i] += A[i] + B[k]
    return O


@case([1.0, 2.0], [[3.0, 4.0, 5.0]] * 2, slopes=([3, 6], [[2, 2, 2], [1, 1, 1]]), smooth=True)
@op
def constant_derivative_below_a_triangle(A, B):
    O[i] += A[i] + B[l, k], l <= i
    return O


@case([2.0, 3.0], slopes=([4, 7],), smooth=True)
@op
def constant_over_generated_points(x):
    s[i] = sum(x[i] for j in range(4) for k in range(3) if 2 * j + k <= 2 * i + 2)
    return s


# -- shifted and strided targets -----------------------------------------------------------------------------


@case.each(LINES, smooth=True)
@op
def odd_cells(x):
    N = x.shape[0]
    y = output(2 * N + 2)
    y[2 * i + 1] += x[i] * x[i]
    return y


@case.each(LINES, smooth=True)
@op
def reversed_target(x):
    N = x.shape[0]
    y = output(N)
    y[N - 1 - i] += x[i] * x[N - 1 - i]
    return y


@case(some(3, 2), some(6), smooth=True, compiled=True)
@case(some(1, 1), some(1), smooth=True, name="one")
@case(some(2, 0), some(0), smooth=True, name="empty")
@op
def flattened(A, w):
    N, P = A.shape
    C = output(N * P)
    C[i * P + p] = A[i, p] * w[i * P + p]
    return C


@case(some(6), some(2), smooth=True)
@op
def unflattened(x, w):
    P = w.shape[0]
    y[i, p] = x[i * P + p] * x[i * P + p] * w[p], i < 3
    return y


@case.each(SHAPES, smooth=True)
@op
def scattered_onto_sums_of_indices(x, c):
    y[i + k] += x[i] * c[k]
    return y


@case.each(SHAPES, smooth=True)
@op
def padded_on_the_left(x, c):
    N = x.shape[0]
    f = output(N)
    f[i] += x[i - j] * c[j]
    return f


@case([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [1.0, 2.0, 3.0], slopes=([6, 6, 6, 6, 3, 1], [21, 15, 10]), name="by hand")
@case.each(SHAPES, smooth=True)
@op
def shifted_both_ways(x, c):
    N, M = x.shape[0], c.shape[0]
    f = output(N)
    f[i] += x[i - j] * c[j]
    return f


@case.each(SHAPES, smooth=True)
@op
def strided_and_dilated(x, c):
    N, M = x.shape[0], c.shape[0]
    y = output(N)
    y[2 * i + 1] += x[3 * i + 2 * k - 1] * c[k] * c[k]
    return y


@case.each(LINES, smooth=True)
@op
def halves(x):
    N = x.shape[0]
    y = output(N)
    y[i // 2] += x[i] * x[i // 2]
    z = output(N)
    z[i] = y[i // 3] * x[i % 2] if N > 1 and i < 2 * N else 0.0
    return z


@case.each(LINES, smooth=True)
@op
def every_third(x):
    N = x.shape[0]
    y = output(N)
    y[i] += x[i]
    y[i % 3] += x[i] * x[i]
    y[3 * (i // 3)] += x[i] * y[i]
    return y


# -- diagonals and triangles ---------------------------------------------------------------------------------


@case(some(3, 3), smooth=True)
@case(some(1, 1), smooth=True, name="one")
@case(some(0, 0), smooth=True, name="empty")
@op
def diagonals(A):
    d[i] = A[i, i] * A[i, i]
    B[i, i] = d[i]
    B[i, j] += A[j, i] * A[i, 0]
    t[()] += B[i, i] * B[0, i]
    return t


@case(some(4, 4), oracle=lambda xp, A: xp.sum(xp.tril(A) @ xp.triu(A), 0), smooth=True)
@case(some(1, 1), oracle=lambda xp, A: xp.sum(xp.tril(A) @ xp.triu(A), 0), smooth=True, name="one")
@op
def triangles(A):
    y[j] += A[i, k] * A[k, j], k <= i, k <= j
    return y


@case(some(5), oracle=lambda xp, x: xp.cumsum(x, 0) ** 2, smooth=True)
@case(some(1), oracle=lambda xp, x: xp.cumsum(x, 0) ** 2, smooth=True, name="one")
@op
def cumulative(x):
    N = x.shape[0]
    y = output(N)
    y[i] += x[k] * x[l], k <= i, l <= i
    return y


@case.each(LINES, smooth=True)
@op
def strictly_below(x):
    N = x.shape[0]
    s[()] += x[i] * x[j] * x[k], i < j, j < k
    return s


@case.each(LINES, smooth=True)
@op
def empty_domain(x):
    N = x.shape[0]
    y = output(N)
    y[i] += x[i] * x[i], i > N
    y[i] *= x[i] + 1.0, i > 3 * N + 2
    y[i] += 2.0 * x[i]
    return y


# -- broadcasting along axes of extent one -------------------------------------------------------------------


def mixed(xp: Any, a: Any, b: Any, c: Any) -> Any:
    return (a + b) * c / (a * a + 2)


def chosen(xp: Any, a: Any, b: Any) -> Any:
    return xp.maximum(a, b) * xp.where(a > b, b, a * b)


@case(
    some(3, 1),
    some(1, 4),
    some(4),
    oracle=mixed,
    smooth=True,
    compiled=True,
    broadcast=True,
)
@case(
    some(3, 1),
    some(1, 1),
    some(1),
    oracle=mixed,
    smooth=True,
    name="ones",
    broadcast=True,
)
@case(
    some(1, 1),
    some(3, 4),
    some(1),
    oracle=mixed,
    smooth=True,
    name="left",
    broadcast=True,
)
@case(
    some(0, 1),
    some(1, 4),
    some(4),
    oracle=mixed,
    smooth=True,
    name="empty",
    broadcast=True,
)
@op
def broadcast(a, b, c):
    return (a + b) * c / (a * a + 2)


@case(some(3, 1), some(2, 1, 4), oracle=lambda xp, a, b: xp.exp(a) * b + a[0, 0], smooth=True, broadcast=True)
@op
def broadcast_of_ranks(a, b):
    return exp(a) * b + a[0, 0]


@case(some(3, 4), some(1, 4), oracle=chosen, broadcast=True)
@case(
    some(1, 4),
    some(1, 4),
    oracle=chosen,
    name="equal",
    broadcast=True,
)
@op
def broadcast_choice(a, b):
    return max(a, b) * where(a > b, b, a * b)


@case(some(2, 3), some(), oracle=lambda xp, a, s: a**2 * s - s / (a + 3) + s * s, smooth=True)
@op
def scalar_beside_arrays(a, s):
    return a**2 * s - s / (a + 3) + s * s


@case(some(3, 2), oracle=lambda xp, A: (A - xp.mean(A, 0)) / xp.sum(A * A), smooth=True)
@op
def centred(A):
    return (A - A.mean(axis=0)) / (A * A).sum()


# -- views ---------------------------------------------------------------------------------------------------


@case(some(5), oracle=lambda xp, x: x[1:] * x[:-1] + x[-1] * x[0], smooth=True)
@op
def slices(x):
    return x[1:] * x[:-1] + x[-1] * x[0]


@case(some(3, 4), oracle=lambda xp, A: A[:, None, 1:3] * A[0, ..., None], smooth=True)
@op
def slices_with_new_axes(A):
    return A[:, None, 1:3] * A[0, ..., None]
