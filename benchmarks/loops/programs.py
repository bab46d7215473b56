"""The programs as one writes them here."""

from __future__ import annotations

import tcdsl as tc
from tcdsl import cd, op

__all__ = ["cholesky", "floyd_warshall", "forward_algorithm", "lorenz", "lorenz_gradient", "mandelbrot", "wave"]


@op
def wave(u, v, c, steps):
    for _t in range(steps):
        w[i, j] = u[i, j] + u[i, j] - v[i, j]
        w[i, j] += c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        v = u
        u = w
    return u


@op
def lorenz(x, y, z, steps, h):
    for _t in range(steps):
        dx = 10.0 * (y - x)
        dy = x * (28.0 - z) - y
        dz = x * y - 8.0 / 3.0 * z
        x, y, z = x + h * dx, y + h * dy, z + h * dz
    return x


def lorenz_gradient(x, y, z, steps, h):
    """The derivative of x at the end by the state at the beginning."""
    return tc.grad(lorenz, argnums=(0, 1, 2))(x, y, z, steps, h)


@cd
def cholesky(A: real[N, N]):
    for k in range(N):
        A[k, k] = sqrt(A[k, k])
        A[i, k] /= A[k, k], i > k
        A[i, j] -= A[i, k] * A[j, k], i > k, k < j, j <= i


@op
def floyd_warshall(D: real[N, N]):
    for k in range(N):
        D[i, j] <<= D[i, k] + D[k, j]
    return D


@op
def forward_algorithm(start: real[S], transitions: real[S, S], emissions: real[S, V], observed: int64[T]):
    a[s] = start[s] * emissions[s, observed[0]]
    likelihood = 0.0
    for t in range(1, T):
        b[s] = sum(a[r] * transitions[r, s]) * emissions[s, observed[t]]
        total = sum(b[s])
        likelihood = likelihood + log(total)
        a = b / total
    return likelihood


@op
def mandelbrot(x: real[H, W], y: real[H, W], most):
    rounds: real[H, W]
    for i in range(H):
        for j in range(W):
            a = 0.0
            b = 0.0
            n = 0.0
            while a * a + b * b < 4 and n < most:
                a, b = a * a - b * b + x[i, j], 2 * a * b + y[i, j]
                n = n + 1
            rounds[i, j] = n
    return rounds
