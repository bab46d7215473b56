"""The problem that every contender solves: 100 points, a network 2-16-16-1, hinge loss, weight decay, SGD."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["BYTES", "OPERATIONS", "WEIGHT_DECAY", "Contender", "Problem", "expected", "largest_difference", "problem"]

BATCH, INPUTS, HIDDEN = 100, 2, 16
WEIGHT_DECAY = 2e-4

Array = np.ndarray[Any, np.dtype[Any]]

_LAYERS = INPUTS * HIDDEN + HIDDEN * HIDDEN + HIDDEN
# Multiplications and additions of the matrix products forward, into the weights, and into the values but the inputs.
OPERATIONS = 2 * BATCH * (_LAYERS + _LAYERS + HIDDEN * HIDDEN + HIDDEN)
# The data once, and the parameters read and written.
BYTES = 4 * (BATCH * (INPUTS + 1) + 2 * (_LAYERS + 2 * HIDDEN + 1))


@dataclass(frozen=True, slots=True)
class Problem:
    """The six parameters (weights and biases by turns), the points ``x: float32[100, 2]`` and the labels ``y`` (±1)."""

    parameters: tuple[Array, ...]
    x: Array
    y: Array


@dataclass(frozen=True, slots=True)
class Contender:
    """``run(steps, learning_rate)`` takes so many steps and waits for the last; ``parameters()`` is where they led."""

    run: Callable[[int, float], None]
    parameters: Callable[[], list[Array]]


def problem() -> Problem:
    """The same numbers in every process."""
    generator = np.random.default_rng(0)

    def uniform(*shape: int) -> Array:
        return np.asarray(generator.uniform(-1, 1, shape) / np.sqrt(shape[0] if shape else 1), np.float32)

    shapes: tuple[tuple[int, ...], ...] = ((INPUTS, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN,), (HIDDEN,), ())
    x = generator.standard_normal((BATCH, INPUTS)).astype(np.float32)
    return Problem(tuple(uniform(*shape) for shape in shapes), x, np.where(x[:, 0] * x[:, 1] > 0, 1, -1).astype("f4"))


def expected(start: Problem, steps: int, learning_rate: float) -> list[Array]:
    """The parameters after ``steps`` steps, by the formulas, in float64."""
    parameters = [p.astype(np.float64) for p in start.parameters]
    x, y = start.x.astype(np.float64), start.y.astype(np.float64)
    for _ in range(steps):
        w1, b1, w2, b2, w3, b3 = parameters
        h1 = np.maximum(x @ w1 + b1, 0)
        h2 = np.maximum(h1 @ w2 + b2, 0)
        score = h2 @ w3 + b3
        d_score = np.where(y * score < 1, -y, 0) / len(y)
        d_h2 = np.where(h2 > 0, np.outer(d_score, w3), 0)
        d_h1 = np.where(h1 > 0, d_h2 @ w2.T, 0)
        gradients = (x.T @ d_h1, d_h1.sum(0), h1.T @ d_h2, d_h2.sum(0), h2.T @ d_score, d_score.sum())
        parameters = [p - learning_rate * (g + WEIGHT_DECAY * p) for p, g in zip(parameters, gradients, strict=True)]
    return parameters


def largest_difference(found: list[Array], wanted: list[Array]) -> float:
    """Relative to the largest number of each parameter; infinite where shapes differ."""
    if [np.shape(p) for p in found] != [np.shape(p) for p in wanted]:
        return float("inf")
    return max(float(np.max(np.abs(p - w)) / np.max(np.abs(w))) for p, w in zip(found, wanted, strict=True))
