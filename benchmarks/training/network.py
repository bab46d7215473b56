"""The step in index notation: loss, gradients and update in one function, which compiles to machine code as a whole."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import tcdsl as tc
from benchmarks.training.problem import WEIGHT_DECAY, Contender, Problem
from tcdsl import cd, op, output
from tcdsl.indices import i, j, k
from tcdsl.primitives import relu

__all__ = ["called", "hinge_loss", "resident", "train_step"]


@op
def hinge_loss(w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any) -> Any:
    n = y.shape[0]
    h1, h2, score, loss = output(), output(), output(), output()
    h1[i, j] = relu(sum(x[i, k] * w1[k, j]) + b1[j])
    h2[i, j] = relu(sum(h1[i, k] * w2[k, j]) + b2[j])
    score[i] = sum(h2[i, k] * w3[k]) + b3
    loss[()] += relu(1 - y[i] * score[i]) / n
    return loss


@cd
def train_step(
    w1: Any, b1: Any, w2: Any, b2: Any, w3: Any, b3: Any, x: Any, y: Any, *, learning_rate: float, weight_decay: float
) -> Any:
    loss, (d_w1, d_b1, d_w2, d_b2, d_w3, d_b3) = tc.value_and_grad(hinge_loss, argnums=(0, 1, 2, 3, 4, 5))(
        w1, b1, w2, b2, w3, b3, x, y
    )
    w1 -= learning_rate * (d_w1 + weight_decay * w1)
    b1 -= learning_rate * (d_b1 + weight_decay * b1)
    w2 -= learning_rate * (d_w2 + weight_decay * w2)
    b2 -= learning_rate * (d_b2 + weight_decay * b2)
    w3 -= learning_rate * (d_w3 + weight_decay * w3)
    b3 -= learning_rate * (d_b3 + weight_decay * b3)
    return loss


def _arguments(start: Problem) -> list[Any]:
    return [*(p.copy() for p in start.parameters), start.x, start.y]


def called(start: Problem) -> Contender:
    """The function is called with arrays, which are checked at each call."""
    arguments = _arguments(start)

    def run(steps: int, learning_rate: float) -> None:
        for _ in range(steps):
            train_step(*arguments, learning_rate=learning_rate, weight_decay=WEIGHT_DECAY)

    return Contender(run, lambda: arguments[:6])


def resident(start: Problem) -> Contender:
    """The arrays stay and are checked once, at the first step: how routines of tensors run."""
    call = train_step.signature.call(_arguments(start), {"learning_rate": 0.0, "weight_decay": WEIGHT_DECAY})
    entry, arrays = train_step.staging.entry(call)
    rate = next(argument.array for argument in call.arguments if argument.place == "learning_rate")
    bind = cache(lambda: entry.executable.bind(arrays))

    def run(steps: int, learning_rate: float) -> None:
        step = bind()
        for _ in range(steps):
            rate[()] = learning_rate
            step()

    return Contender(run, lambda: [np.asarray(array) for array in arrays[:6]])
