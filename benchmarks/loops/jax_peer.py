"""The same loops for JAX, by `jax.lax`."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

__all__ = [
    "conjugate_gradient",
    "floyd_warshall",
    "forward_algorithm",
    "kalman_gradient",
    "lorenz",
    "lorenz_gradient",
    "lstm_gradient",
    "viterbi",
    "wave",
    "wave_gradient",
    "wave_gradient_checkpointed",
]


@partial(jax.jit, static_argnums=3)
def wave(u, v, c, steps):
    """Two steps of the past become the next one."""

    def step(_, state):
        u, v = state
        w = 2 * u - v
        inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        return w.at[1:-1, 1:-1].add(c * inner), u

    return jax.lax.fori_loop(0, steps, step, (u, v))[0]


def _waves(c, state, steps):
    def step(state, _):
        u, v = state
        inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        return ((2 * u - v).at[1:-1, 1:-1].add(c[1:-1, 1:-1] * inner), u), None

    return jax.lax.scan(step, state, length=steps)[0]


def _wave_energy(c, u, v, steps):
    u, _ = _waves(c, (u, v), steps)
    return (u * u).sum()


def _wave_energy_checkpointed(c, u, v, steps):
    @jax.checkpoint
    def ten_steps(state, _):
        return _waves(c, state, 10), None

    state, _ = jax.lax.scan(ten_steps, (u, v), length=steps // 10)
    u, _ = _waves(c, state, steps % 10)
    return (u * u).sum()


wave_gradient = partial(jax.jit, static_argnums=3)(jax.grad(_wave_energy))
wave_gradient_checkpointed = partial(jax.jit, static_argnums=3)(jax.grad(_wave_energy_checkpointed))


def _lorenz(x, y, z, steps, h):
    def step(state, _):
        x, y, z = state
        dx, dy, dz = 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z
        return (x + h * dx, y + h * dy, z + h * dz), None

    return jax.lax.scan(step, (x, y, z), length=steps)[0][0]


lorenz = partial(jax.jit, static_argnums=3)(_lorenz)
lorenz_gradient = partial(jax.jit, static_argnums=3)(jax.grad(_lorenz, argnums=(0, 1, 2)))


@jax.jit
def floyd_warshall(D):
    """All shortest paths."""
    return jax.lax.fori_loop(0, len(D), lambda k, D: jnp.minimum(D, D[:, k, None] + D[None, k]), D)


@jax.jit
def forward_algorithm(start, transitions, emissions, observed):
    """The log-likelihood of what is observed."""

    def step(state, seen):
        a, likelihood = state
        b = a @ transitions * emissions[:, seen]
        total = b.sum()
        return (b / total, likelihood + jnp.log(total)), None

    first = start * emissions[:, observed[0]]
    return jax.lax.scan(step, (first, 0.0), observed[1:])[0][1]


def _lstm(U, W, x, h):
    size = h.shape[1]

    def step(state, x):
        h, c = state
        z = x @ W + h @ U
        gates = jax.nn.sigmoid(z[:, :size]), jnp.tanh(z[:, size : 2 * size]), jax.nn.sigmoid(z[:, 2 * size : 3 * size])
        c = gates[0] * gates[1] + gates[2] * c
        return (jax.nn.sigmoid(z[:, 3 * size :]) * jnp.tanh(c), c), None

    h = jax.lax.scan(step, (h, 0 * h), x)[0][0]
    return (h * h).sum()


_lstm_gradients = jax.jit(jax.grad(_lstm, argnums=(0, 1)))


def lstm_gradient(U, W, x, h):
    """A training step."""
    return _lstm_gradients(U, W, x, h)[0]


@jax.jit
def viterbi(start, transitions, emissions, observed):
    """The most probable states."""

    def step(score, seen):
        ways = score[:, None] + jnp.log(transitions)
        return ways.max(0) + jnp.log(emissions[:, seen]), ways.argmax(0)

    score, before = jax.lax.scan(step, jnp.log(start * emissions[:, observed[0]]), observed[1:])

    def back(state, before):
        return before[state], before[state]

    last = score.argmax()
    return jnp.append(jax.lax.scan(back, last, before, reverse=True)[1], last)


@jax.jit
def conjugate_gradient(A, b, tolerance):
    """A solution, as exact as was asked for."""

    def step(state):
        x, r, p, square = state
        q = A @ p
        length = square / (p @ q)
        r = r - length * q
        return x + length * p, r, r + r @ r / square * p, r @ r

    return jax.lax.while_loop(lambda state: state[3] > tolerance, step, (0 * b, b, b, b @ b))[0]


def _kalman(noises, seen, F, P):
    q, r = jnp.exp(noises)

    def step(state, seen):
        mean, P, likelihood = state
        mean, P = F @ mean, F @ P @ F.T + q * jnp.eye(len(F))
        error, spread = seen - mean[0], P[0, 0] + r
        gain = P[:, 0] / spread
        likelihood -= 0.5 * (error * error / spread + jnp.log(spread))
        return (mean + gain * error, P - gain[:, None] * P[0], likelihood), None

    return jax.lax.scan(step, (0 * P[0], P, 0.0), seen)[0][2]


kalman_gradient = jax.jit(jax.grad(_kalman))
