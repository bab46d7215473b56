"""Computations that PyTorch and JAX write alike: slices and arithmetic."""

from __future__ import annotations

from typing import Any

__all__ = ["blur", "distances", "five_points", "seven_points"]


def five_points(X: Any) -> Any:
    return 0.25 * (X[:-2, 1:-1] + X[2:, 1:-1] + X[1:-1, :-2] + X[1:-1, 2:]) - X[1:-1, 1:-1]


def seven_points(X: Any) -> Any:
    m = slice(1, -1)
    sides = X[:-2, m, m] + X[2:, m, m] + X[m, :-2, m] + X[m, 2:, m] + X[m, m, :-2] + X[m, m, 2:]
    return sides - 6 * X[m, m, m]


def blur(X: Any) -> Any:
    H = 0.25 * X[:, :-2] + 0.5 * X[:, 1:-1] + 0.25 * X[:, 2:]
    return 0.25 * H[:-2] + 0.5 * H[1:-1] + 0.25 * H[2:]


def distances(X: Any, Y: Any) -> Any:
    return (X * X).sum(1)[:, None] + (Y * Y).sum(1) - 2 * X @ Y.T
