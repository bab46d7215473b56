"""The programs as one writes them here."""

from __future__ import annotations

import numpy as np

import tcdsl as tc
from tcdsl import cd, op

__all__ = [
    "cholesky",
    "conjugate_gradient",
    "edit_distance",
    "floyd_warshall",
    "forward_algorithm",
    "gauss_seidel",
    "insertion_sort",
    "kalman_gradient",
    "lorenz",
    "lorenz_gradient",
    "lstm_gradient",
    "mandelbrot",
    "viterbi",
    "wave",
    "wave_gradient",
    "wave_gradient_checkpointed",
]


@op
def wave(u, v, c, steps):
    for _t in range(steps):
        w[i, j] = u[i, j] + u[i, j] - v[i, j]
        w[i, j] += c * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        v = u
        u = w
    return u


@op
def wave_energy(c, u, v, steps):
    for _t in range(steps):
        w[i, j] = u[i, j] + u[i, j] - v[i, j]
        w[i, j] += c[i, j] * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        v = u
        u = w
    return (u * u).sum()


def wave_gradient(c, u, v, steps):
    """The derivative of what the wave holds at the end by the velocities of the medium."""
    return tc.grad(wave_energy)(c, u, v, steps)


@op
def wave_energy_checkpointed(c, u, v, steps):
    for _t in tc.loop(steps, checkpoint_every=10):
        w[i, j] = u[i, j] + u[i, j] - v[i, j]
        w[i, j] += c[i, j] * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j])
        v = u
        u = w
    return (u * u).sum()


def wave_gradient_checkpointed(c, u, v, steps):
    """The same, which keeps the state of every tenth step, and computes each step once more."""
    return tc.grad(wave_energy_checkpointed)(c, u, v, steps)


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


@op
def lstm(U, W, x: real[T, B, D], h: real[B, H]):
    c = 0 * h
    for t in range(T):
        z = x[t] @ W + h @ U
        c = sigmoid(z[:, :H]) * tanh(z[:, H : 2 * H]) + sigmoid(z[:, 2 * H : 3 * H]) * c
        h = sigmoid(z[:, 3 * H :]) * tanh(c)
    return (h * h).sum()


def lstm_gradient(U, W, x, h):
    """A training step: the derivatives by both matrices, of which the first is compared."""
    return tc.grad(lstm, argnums=(0, 1))(U, W, x, h)[0]


@op
def viterbi(start: real[S], transitions: real[S, S], emissions: real[S, V], observed: int64[T]):
    before: int64[T, S]
    path: int64[T]
    score[s] = log(start[s] * emissions[s, observed[0]])
    for t in range(1, T):
        ways[r, s] = score[r] + log(transitions[r, s])
        before[t, s] = argmax(ways[r, s] for r in range(S))
        score = ways.max(axis=0) + np.log(emissions[:, observed[t]])
    path[T - 1] = argmax(score[s] for s in range(S))
    for t in range(T - 1, 0, -1):
        path[t - 1] = before[t, path[t]]
    return path


@op
def conjugate_gradient(A, b, tolerance):
    x = 0 * b
    r = b
    p = b
    square = sum(r[i] * r[i])
    while square > tolerance:
        q = A @ p
        step = square / sum(p[i] * q[i])
        x = x + step * p
        r = r - step * q
        new = sum(r[i] * r[i])
        p = r + new / square * p
        square = new
    return x


@op
def kalman(noises, seen: real[T], F: real[S, S], P: real[S, S]):
    q, r = exp(noises[0]), exp(noises[1])
    mean = 0 * P[0]
    likelihood = 0.0
    for t in range(T):
        mean = F @ mean
        P = F @ P @ F.T
        P[i, i] += q
        error = seen[t] - mean[0]
        spread = P[0, 0] + r
        gain[i] = P[i, 0] / spread
        likelihood = likelihood - 0.5 * (error * error / spread + log(spread))
        mean = mean + gain * error
        row[j] = P[0, j]
        P[i, j] -= gain[i] * row[j]
    return likelihood


def kalman_gradient(noises, seen, F, P):
    """The derivative of the likelihood by the two noises."""
    return tc.grad(kalman)(noises, seen, F, P)


@op
def insertion_sort(x: real[N]):
    for t in range(1, N):
        held = x[t]
        k = t
        while k > 0 and x[k - 1] > held:
            x[k] = x[k - 1]
            k = k - 1
        x[k] = held
    return x


@op
def edit_distance(x: int64[N], y: int64[M]):
    d: int64[N + 1, M + 1]
    d[i, 0] = i
    d[0, j] = j
    for a in range(N):
        for b in range(M):
            d[a + 1, b + 1] = min(d[a, b] + (x[a] != y[b]), d[a, b + 1] + 1, d[a + 1, b] + 1)
    return d[N, M]


@op
def gauss_seidel(u: real[N, M], f: real[N, M], sweeps):
    for _s in range(sweeps):
        for a in range(1, N - 1):
            for b in range(1, M - 1):
                u[a, b] = 0.25 * (u[a - 1, b] + u[a + 1, b] + u[a, b - 1] + u[a, b + 1] - f[a, b])
    return u
