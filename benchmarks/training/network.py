"""The step in tcdsl: of tensors, as a routine; and in index notation, as a function of arrays."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import tcdsl as tc
from benchmarks.training.problem import WEIGHT_DECAY, Contender, Problem
from tcdsl import cd, op, output
from tcdsl.indices import i, j, k
from tcdsl.primitives import relu

__all__ = ["called", "hinge_loss", "resident", "routine", "train_step"]


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


def routine(start: Problem) -> Contender:
    """Of tensors: forward pass, backward pass and update are linked into one function."""
    names = ("w1", "b1", "w2", "b2", "w3", "b3")
    parameters = []
    for name, array in zip(names, start.parameters, strict=True):
        # Tensors have their output axes first, and then their input axes; the network has one output.
        cells = array.reshape(len(array), -1).T if name.startswith("w") else np.atleast_1d(array)
        inputs = cells.shape[1] if name.startswith("w") else ()
        parameters.append(tc.param(name, o=len(cells), i=inputs, init=cells))
    w1, b1, w2, b2, w3, b3 = parameters
    x, y = tc.tensor(start.x, batch=1, label="x"), tc.tensor(start.y[:, np.newaxis], batch=1, label="y")
    score = w3 @ relu(w2 @ relu(w1 @ x + b1) + b2) + b3
    loss = relu(1 - y * score).sum() / len(start.y)
    update = tc.train.sgd_update(loss, learning_rate=0.0, weight_decay=WEIGHT_DECAY)
    step = tc.compile(tc.train.grad_update(loss), update)

    def run(steps: int, learning_rate: float) -> None:
        step.run(learning_rate=learning_rate)
        for _ in range(steps - 1):
            step.run()

    def found() -> list[Any]:
        return [np.asarray(p.value).T.reshape(a.shape) for p, a in zip(parameters, start.parameters, strict=True)]

    return Contender(run, found)


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
    """The arrays stay, and are checked once, at the first step."""
    call = train_step.signature.call(_arguments(start), {"learning_rate": 0.0, "weight_decay": WEIGHT_DECAY})
    entry, arrays = train_step.staging.entry(call)
    rate = next(argument.array for argument in call.arguments if argument.place == "learning_rate")
    bind = cache(lambda: entry.executable.bind(arrays))

    def run(steps: int, learning_rate: float) -> None:
        step = bind()
        rate[()] = learning_rate
        for _ in range(steps):
            step()

    return Contender(run, lambda: [np.asarray(array) for array in arrays[:6]])
