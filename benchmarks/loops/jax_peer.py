"""The same loops for JAX, by `jax.lax`."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)

__all__ = ["floyd_warshall", "forward_algorithm", "lorenz", "lorenz_gradient", "wave"]


@partial(jax.jit, static_argnums=3)
def wave(u, v, c, steps):
    """Two steps of the past become the next one."""

    def step(_, state):
        u, v = state
        w = 2 * u - v
        inner = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        return w.at[1:-1, 1:-1].add(c * inner), u

    return jax.lax.fori_loop(0, steps, step, (u, v))[0]


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
