"""The demonstration in index notation: a 64-128-10 network, its loss, and the optimizer.

Index variables: ``n`` counts images, ``p`` pixels, ``h`` hidden units, ``c`` classes.
"""

from __future__ import annotations

from typing import Any

from numpy import argmax

from tcdsl import cd, op, output
from tcdsl.indices import c, h, n, p
from tcdsl.primitives import exp, log, relu

__all__ = ["cross_entropy", "logits", "predictions", "sgd", "update"]


@op
def logits(W1: Any, b1: Any, W2: Any, b2: Any, images: Any) -> Any:
    """Scores ``Z[N, C]`` of ``images[N, P]`` for ``W1[P, H], b1[H], W2[H, C], b2[C]``."""
    X, A, S, Z = output(), output(), output(), output()
    X[n, h] += images[n, p] * W1[p, h]
    A[n, h] = relu(X[n, h] + b1[h])
    S[n, c] += A[n, h] * W2[h, c]
    Z[n, c] = S[n, c] + b2[c]
    return Z


@op
def cross_entropy(W1: Any, b1: Any, W2: Any, b2: Any, images: Any, labels: Any) -> Any:
    """The mean over images of ``-log softmax(Z)[label]``; without each row's maximum, ``exp`` cannot overflow."""
    N, P = images.shape  # noqa: RUF059  # names for those who read the printed programs
    H, C = W2.shape  # noqa: RUF059
    Z = logits(W1, b1, W2, b2, images)
    top, mass, loss = output(), output(), output()
    top[n] = max(Z[n, c])
    mass[n] = sum(exp(Z[n, c] - top[n]))
    loss[()] += (log(mass[n]) + top[n] - Z[n, labels[n]]) / N
    return loss


@op
def predictions(W1: Any, b1: Any, W2: Any, b2: Any, images: Any) -> Any:
    """The class with the highest score for each of ``images[N, P]``: int64, ``[N]``."""
    Z = logits(W1, b1, W2, b2, images)
    best = output()
    best[n] = argmax(Z[n, c])
    return best


@cd
def sgd(p: Any, g: Any, v: Any, learning_rate: Any, *, momentum: float, weight_decay: float) -> None:
    """One step of gradient descent, in place, for a parameter, its gradient and its velocity, all of one shape."""
    v = momentum * v + g + weight_decay * p
    p -= learning_rate * v


@cd
def update(learning_rate: Any, *arrays: Any, momentum: float, weight_decay: float) -> None:
    """`sgd` for all parameters as one program: ``arrays`` are the parameters, then their gradients, then velocities."""
    count = len(arrays) // 3
    for position in range(count):
        parameter, gradient, velocity = arrays[position::count]
        sgd(parameter, gradient, velocity, learning_rate, momentum=momentum, weight_decay=weight_decay)
