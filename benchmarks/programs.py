"""The benchmarked computations in index notation, and the losses whose gradients are benchmarked."""

from __future__ import annotations

from typing import Any

from tcdsl import op, output
from tcdsl.indices import c, i, j, k
from tcdsl.primitives import erf, exp, log, recip_sqrt, sigmoid, softplus, sqrt, square, tanh

__all__ = [
    "black_scholes",
    "copied",
    "log_sum_exp",
    "matmul",
    "mish",
    "n_body",
    "quick_gelu",
    "softmax",
    "stencil",
    "weighted_black_scholes",
    "weighted_log_sum_exp",
    "weighted_matmul",
    "weighted_mish",
    "weighted_n_body",
    "weighted_quick_gelu",
    "weighted_softmax",
    "weighted_stencil",
]


@op
def copied(X: Any) -> Any:
    Y = output()
    Y[i] = X[i]
    return Y


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
def quick_gelu(X: Any) -> Any:
    Y = output()
    Y[i] = X[i] * sigmoid(1.702 * X[i])
    return Y


@op
def mish(X: Any) -> Any:
    Y = output()
    Y[i] = X[i] * tanh(softplus(X[i]))
    return Y


@op
def log_sum_exp(X: Any) -> Any:
    top, Y = output(), output()
    top[i] = max(X[i, j])
    Y[i] = top[i] + log(sum(exp(X[i, j] - top[i])))
    return Y


@op
def black_scholes(A: Any, B: Any, C: Any) -> Any:
    """Prices of call options, from numbers for price, strike and time, at 2 % interest and 30 % volatility."""
    price, strike, time, d, Y = output(), output(), output(), output(), output()
    price[i] = exp(0.2 * A[i])
    strike[i] = exp(0.2 * B[i])
    time[i] = exp(0.5 * C[i])
    d[i] = (log(price[i] / strike[i]) + 0.065 * time[i]) / (0.3 * sqrt(time[i]))
    Y[i] = 0.5 * price[i] * (1 + erf(0.7071067811865476 * d[i])) - 0.5 * strike[i] * exp(-0.02 * time[i]) * (
        1 + erf(0.7071067811865476 * (d[i] - 0.3 * sqrt(time[i])))
    )
    return Y


@op
def n_body(X: Any) -> Any:
    """Accelerations of bodies of one mass, softened."""
    R, A = output(), output()
    R[i, j] = recip_sqrt(sum(square(X[c, j] - X[c, i])) + 0.01)
    A[c, i] += (X[c, j] - X[c, i]) * R[i, j] ** 3
    return A


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


@op
def weighted_quick_gelu(X: Any, W: Any) -> Any:
    Y = quick_gelu(X)
    loss = output()
    loss[()] += Y[i] * W[i]
    return loss


@op
def weighted_mish(X: Any, W: Any) -> Any:
    Y = mish(X)
    loss = output()
    loss[()] += Y[i] * W[i]
    return loss


@op
def weighted_log_sum_exp(X: Any, W: Any) -> Any:
    Y = log_sum_exp(X)
    loss = output()
    loss[()] += Y[i] * W[i]
    return loss


@op
def weighted_black_scholes(A: Any, B: Any, C: Any, W: Any) -> Any:
    Y = black_scholes(A, B, C)
    loss = output()
    loss[()] += Y[i] * W[i]
    return loss


@op
def weighted_n_body(X: Any, W: Any) -> Any:
    A = n_body(X)
    loss = output()
    loss[()] += A[c, i] * W[c, i]
    return loss
