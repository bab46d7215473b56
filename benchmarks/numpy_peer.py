"""The computations in NumPy, where it has them, as a careful programmer writes them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import erf

__all__ = ["FUNCTIONS", "adjoints", "convert"]


def convert(array: Any) -> Any:
    return array


def _softmax(X: Any) -> Any:
    Y = X - X.max(axis=1, keepdims=True)
    np.exp(Y, out=Y)
    Y /= Y.sum(axis=1, keepdims=True)
    return Y


def _log_sum_exp(X: Any) -> Any:
    top = X.max(axis=1)
    return top + np.log(np.exp(X - top[:, None]).sum(axis=1))


def _five_points(X: Any) -> Any:
    Y = X[:-2, 1:-1] + X[2:, 1:-1]
    Y += X[1:-1, :-2]
    Y += X[1:-1, 2:]
    Y *= 0.25
    Y -= X[1:-1, 1:-1]
    return Y


def _black_scholes(A: Any, B: Any, C: Any) -> Any:
    price, strike, time = np.exp(0.2 * A), np.exp(0.2 * B), np.exp(0.5 * C)
    spread = 0.3 * np.sqrt(time)
    d = (np.log(price / strike) + 0.065 * time) / spread
    half = math.sqrt(0.5)
    return 0.5 * price * (1 + erf(half * d)) - 0.5 * strike * (1 + erf(half * (d - spread))) * np.exp(-0.02 * time)


FUNCTIONS = {
    "matmul": np.matmul,
    "matmul transposed": lambda A, B: A @ B.T,
    "matvec": np.matmul,
    "batched first": np.matmul,
    "three matrices": lambda A, B, C: A @ B @ C,
    "layer": lambda X, W, b: np.maximum(X @ W.T + b, 0),
    "softmax": _softmax,
    "log sum exp": _log_sum_exp,
    "row sums": lambda X: X.sum(axis=1),
    "column sums": lambda X: X.sum(axis=0),
    "row maxima": lambda X: X.argmax(axis=1),
    "cumulative sum": lambda X: X.cumsum(axis=1),
    "quick gelu": lambda X: X / (1 + np.exp(-1.702 * X)),
    "five points": _five_points,
    "black scholes": _black_scholes,
    "added transposed": lambda A: A + A.T,
    "heads first": lambda X: np.ascontiguousarray(X.transpose(0, 2, 1, 3)),
    "embedding": lambda W, ids: W[ids],
}


def adjoints(computation: str, wrt: tuple[int, ...]) -> None:
    """NumPy has none."""
