"""The same loops as one writes them for Numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

__all__ = [
    "cholesky",
    "conjugate_gradient",
    "edit_distance",
    "floyd_warshall",
    "forward_algorithm",
    "gauss_seidel",
    "insertion_sort",
    "lorenz",
    "mandelbrot",
    "viterbi",
    "wave",
]


@njit(cache=True, parallel=True)
def wave(u, v, c, steps):
    """Two steps of the past become the next one."""
    height, width = u.shape
    u, v = u.copy(), v.copy()
    w = np.empty_like(u)
    for _ in range(steps):
        for i in prange(height):
            for j in range(width):
                w[i, j] = 2 * u[i, j] - v[i, j]
                if 0 < i < height - 1 and 0 < j < width - 1:
                    w[i, j] += c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        u, v, w = w, u, v
    return u


@njit(cache=True)
def lorenz(x, y, z, steps, h):
    """Euler's method."""
    for _ in range(steps):
        dx, dy, dz = 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z
        x, y, z = x + h * dx, y + h * dy, z + h * dz
    return x


@njit(cache=True, parallel=True)
def cholesky(A):
    """In place, column by column."""
    n = len(A)
    for k in range(n):
        A[k, k] = math.sqrt(A[k, k])
        for i in range(k + 1, n):
            A[i, k] /= A[k, k]
        for i in prange(k + 1, n):
            for j in range(k + 1, i + 1):
                A[i, j] -= A[i, k] * A[j, k]


@njit(cache=True, parallel=True)
def floyd_warshall(D):
    """All shortest paths."""
    D = D.copy()
    n = len(D)
    for k in range(n):
        for i in prange(n):
            d = D[i, k]
            for j in range(n):
                D[i, j] = min(D[i, j], d + D[k, j])
    return D


@njit(cache=True)
def forward_algorithm(start, transitions, emissions, observed):
    """The log-likelihood of what is observed."""
    states = len(start)
    a = start * emissions[:, observed[0]]
    likelihood = 0.0
    for t in range(1, len(observed)):
        b = np.zeros(states)
        for r in range(states):
            for s in range(states):
                b[s] += a[r] * transitions[r, s]
        b *= emissions[:, observed[t]]
        total = b.sum()
        likelihood += math.log(total)
        a = b / total
    return likelihood


@njit(cache=True, parallel=True)
def mandelbrot(x, y, most):
    """Rounds until escape."""
    height, width = x.shape
    rounds = np.empty((height, width))
    for i in prange(height):
        for j in range(width):
            a = b = n = 0.0
            while a * a + b * b < 4 and n < most:
                a, b = a * a - b * b + x[i, j], 2 * a * b + y[i, j]
                n += 1
            rounds[i, j] = n
    return rounds


@njit(cache=True)
def viterbi(start, transitions, emissions, observed):
    """The most probable states."""
    states, length = len(start), len(observed)
    before = np.zeros((length, states), np.int64)
    score = np.log(start * emissions[:, observed[0]])
    ways = np.log(transitions)
    new = np.empty(states)
    for t in range(1, length):
        for s in range(states):
            best = 0
            for r in range(1, states):
                if score[r] + ways[r, s] > score[best] + ways[best, s]:
                    best = r
            before[t, s] = best
            new[s] = score[best] + ways[best, s] + math.log(emissions[s, observed[t]])
        score[:] = new
    path = np.empty(length, np.int64)
    path[-1] = np.argmax(score)
    for t in range(length - 1, 0, -1):
        path[t - 1] = before[t, path[t]]
    return path


@njit(cache=True)
def conjugate_gradient(A, b, tolerance):
    """A solution, as exact as was asked for."""
    n = len(b)
    x, r, p, q = np.zeros(n), b.copy(), b.copy(), np.empty(n)
    square = (r * r).sum()
    while square > tolerance:
        for i in range(n):
            total = 0.0
            for j in range(n):
                total += A[i, j] * p[j]
            q[i] = total
        step = square / (p * q).sum()
        x += step * p
        r -= step * q
        new = (r * r).sum()
        p = r + new / square * p
        square = new
    return x


@njit(cache=True)
def insertion_sort(x):
    """The numbers of ``x`` in order."""
    x = x.copy()
    for t in range(1, len(x)):
        held = x[t]
        k = t
        while k > 0 and x[k - 1] > held:
            x[k] = x[k - 1]
            k -= 1
        x[k] = held
    return x


@njit(cache=True)
def edit_distance(x, y):
    """How many changes make ``y`` of ``x``."""
    d = np.zeros((len(x) + 1, len(y) + 1), np.int64)
    d[:, 0] = np.arange(len(x) + 1)
    d[0] = np.arange(len(y) + 1)
    for a in range(len(x)):
        for b in range(len(y)):
            d[a + 1, b + 1] = min(d[a, b] + (x[a] != y[b]), d[a, b + 1] + 1, d[a + 1, b] + 1)
    return d[-1, -1]


@njit(cache=True)
def gauss_seidel(u, f, sweeps):
    """``u`` after so many sweeps, each cell from those beside it as they are by then."""
    u = u.copy()
    height, width = u.shape
    for _ in range(sweeps):
        for a in range(1, height - 1):
            for b in range(1, width - 1):
                u[a, b] = 0.25 * (u[a - 1, b] + u[a + 1, b] + u[a, b - 1] + u[a, b + 1] - f[a, b])
    return u
