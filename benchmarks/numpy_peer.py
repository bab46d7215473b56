"""The computations in NumPy, as a careful programmer writes them: temporaries reused, gradients derived by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import erf

__all__ = [
    "black_scholes",
    "black_scholes_gradient",
    "log_sum_exp",
    "log_sum_exp_gradient",
    "matmul",
    "matmul_gradient",
    "mish",
    "mish_gradient",
    "n_body",
    "n_body_gradient",
    "quick_gelu",
    "quick_gelu_gradient",
    "softmax",
    "softmax_gradient",
    "stencil",
    "stencil_gradient",
]

Array = npt.NDArray[Any]


def matmul(A: Array, B: Array) -> Array:
    return A @ B


def matmul_gradient(A: Array, B: Array, W: Array) -> tuple[Array, Array]:
    return W @ B.T, A.T @ W


def softmax(X: Array) -> Array:
    Y = X - X.max(axis=1, keepdims=True)
    np.exp(Y, out=Y)
    Y /= Y.sum(axis=1, keepdims=True)
    return Y


def softmax_gradient(X: Array, W: Array) -> Array:
    Y = softmax(X)
    inner = np.einsum("ij,ij->i", Y, W)
    gradient = W - inner[:, None]
    gradient *= Y
    return gradient


def stencil(X: Array) -> Array:
    Y = X[:-2, 1:-1] + X[2:, 1:-1]
    Y += X[1:-1, :-2]
    Y += X[1:-1, 2:]
    Y *= 0.25
    Y -= X[1:-1, 1:-1]
    return Y


def stencil_gradient(X: Array, W: Array) -> Array:
    gradient = np.zeros_like(X)
    quarter = 0.25 * W
    gradient[:-2, 1:-1] += quarter
    gradient[2:, 1:-1] += quarter
    gradient[1:-1, :-2] += quarter
    gradient[1:-1, 2:] += quarter
    gradient[1:-1, 1:-1] -= W
    return gradient


def quick_gelu(X: Array) -> Array:
    return X / (1 + np.exp(-1.702 * X))


def quick_gelu_gradient(X: Array, W: Array) -> Array:
    share = 1 / (1 + np.exp(-1.702 * X))
    return W * share * (1 + 1.702 * X * (1 - share))


def mish(X: Array) -> Array:
    return X * np.tanh(np.logaddexp(X, 0))


def mish_gradient(X: Array, W: Array) -> Array:
    tangent = np.tanh(np.logaddexp(X, 0))
    return W * (tangent + X * (1 - tangent**2) / (1 + np.exp(-X)))


def log_sum_exp(X: Array) -> Array:
    top = X.max(axis=1)
    return top + np.log(np.exp(X - top[:, None]).sum(axis=1))


def black_scholes(A: Array, B: Array, C: Array) -> Array:
    price, strike, time = np.exp(0.2 * A), np.exp(0.2 * B), np.exp(0.5 * C)
    spread = 0.3 * np.sqrt(time)
    d = (np.log(price / strike) + 0.065 * time) / spread
    half = math.sqrt(0.5)
    above = 0.5 * price * (1 + erf(half * d))
    below = 0.5 * strike * (1 + erf(half * (d - spread)))
    return above - below * np.exp(-0.02 * time)


def n_body(X: Array) -> Array:
    between = X[:, None, :] - X[:, :, None]
    inverse = 1 / np.sqrt(np.square(between).sum(axis=0) + 0.01)
    return np.einsum("cij,ij->ci", between, inverse**3)


def log_sum_exp_gradient(X: Array, W: Array) -> Array:
    gradient = X - log_sum_exp(X)[:, None]
    np.exp(gradient, out=gradient)
    gradient *= W[:, None]
    return gradient


def black_scholes_gradient(A: Array, B: Array, C: Array, W: Array) -> tuple[Array, Array, Array]:
    price, strike, time = np.exp(0.2 * A), np.exp(0.2 * B), np.exp(0.5 * C)
    spread = 0.3 * np.sqrt(time)
    d = (np.log(price / strike) + 0.065 * time) / spread
    half = math.sqrt(0.5)
    above, below = 0.5 * (1 + erf(half * d)), 0.5 * (1 + erf(half * (d - spread)))
    discounted = strike * np.exp(-0.02 * time)
    density = np.exp(-0.5 * np.square(d - spread)) / math.sqrt(2 * math.pi)
    by_time = discounted * (0.02 * below + density * 0.5 * spread / time)
    return 0.2 * price * above * W, -0.2 * discounted * below * W, 0.5 * time * by_time * W


def n_body_gradient(X: Array, W: Array) -> Array:
    between = X[:, None, :] - X[:, :, None]
    inverse = 1 / np.sqrt(np.square(between).sum(axis=0) + 0.01)
    pull = inverse**3
    along = np.einsum("cij,ci->ij", between, W)
    along *= 3 * inverse**5
    by_between = W[:, :, None] * pull - between * along
    gradient: Array = by_between.sum(axis=1) - by_between.sum(axis=2)
    return gradient
