"""The benchmarked computations in index notation, and the losses whose gradients are benchmarked."""

from __future__ import annotations

from typing import Any

from tcdsl import op, output
from tcdsl.indices import i, j, k
from tcdsl.primitives import exp

__all__ = ["matmul", "softmax", "stencil", "weighted_matmul", "weighted_softmax", "weighted_stencil"]


@op
def matmul(A: Any, B: Any) -> Any:
    C = output()
    C[i, j] += A[i, k] * B[k, j]
    return C


@op
def softmax(X: Any) -> Any:
    top, E, Y = output(), output(), output()
    top[i] = max(X[i, j])
    E[i, j] = exp(X[i, j] - top[i])
    Y[i, j] = E[i, j] / sum(E[i, k])
    return Y


@op
def stencil(X: Any) -> Any:
    """The mean of the four neighbours minus the cell, where all five exist."""
    Y = output()
    Y[i, j] = 0.25 * (X[i, j + 1] + X[i + 2, j + 1] + X[i + 1, j] + X[i + 1, j + 2]) - X[i + 1, j + 1]
    return Y


@op
def weighted_matmul(A: Any, B: Any, W: Any) -> Any:
    C = matmul(A, B)
    loss = output()
    loss[()] += C[i, j] * W[i, j]
    return loss


@op
def weighted_softmax(X: Any, W: Any) -> Any:
    Y = softmax(X)
    loss = output()
    loss[()] += Y[i, j] * W[i, j]
    return loss


@op
def weighted_stencil(X: Any, W: Any) -> Any:
    Y = stencil(X)
    loss = output()
    loss[()] += Y[i, j] * W[i, j]
    return loss
