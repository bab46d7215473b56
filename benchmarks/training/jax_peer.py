"""The step in JAX: compiled as a whole, its parameters donated, so that they are updated in place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.training.problem import WEIGHT_DECAY, Contender, Problem

__all__ = ["CONTENDERS"]

jax.config.update("jax_platforms", "cpu")


def _loss(parameters: Any, x: Any, y: Any) -> Any:
    w1, b1, w2, b2, w3, b3 = parameters
    h1 = jax.nn.relu(x @ w1 + b1)
    h2 = jax.nn.relu(h1 @ w2 + b2)
    return jnp.mean(jax.nn.relu(1 - y * (h2 @ w3 + b3)))


@partial(jax.jit, donate_argnums=0)
def _step(parameters: Any, x: Any, y: Any, rate: Any) -> Any:
    loss, gradients = jax.value_and_grad(_loss)(parameters, x, y)
    return loss, tuple(p - rate * (g + WEIGHT_DECAY * p) for p, g in zip(parameters, gradients, strict=True))


def _contender(start: Problem, *, waiting: bool) -> Contender:
    state = [tuple(jnp.array(p) for p in start.parameters)]
    x, y = jnp.array(start.x), jnp.array(start.y)

    def run(steps: int, learning_rate: float) -> None:
        parameters, rate = state[0], jnp.float32(learning_rate)
        for _ in range(steps):
            _, parameters = _step(parameters, x, y, rate)
            if waiting:
                jax.block_until_ready(parameters)
        state[0] = jax.block_until_ready(parameters)

    return Contender(run, lambda: [np.asarray(p) for p in state[0]])


# Waiting for each step, as a loop does that looks at its loss; and issuing steps while others still run.
CONTENDERS: dict[str, Callable[[Problem], Contender]] = {
    "jax": partial(_contender, waiting=True),
    "jax, queued": partial(_contender, waiting=False),
}
