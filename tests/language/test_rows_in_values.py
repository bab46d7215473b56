"""Whole arrays in the values of statements that give single cells: rows that a choice guards, and bare reductions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.language.outcomes import outcome
from tests.language.running_programs import check, program

X, H, P = np.random.default_rng(3).random((4, 6)) + 0.1, np.linspace(0.5, 1.5, 4), np.array([0, -1, 2, -3])

# The statement of round t; `p` holds negative positions, which no arm that is taken reads.
ROWS = [
    "y[t] = x[t - 1] @ x[t] if t > 0 else 0.0",
    "y[t] = x[t - 1].sum() if t > 0 else x[t].max()",
    "y[t] += 2 * (np.max(x[t - 1]) if t > 0 else np.min(x)) + 1",
    "y[t] = np.max(x[t - 1]) if t > 0 and x[t - 1].sum() > 2 else np.min(x)",
    "y[t] = np.max(x[p[t]]) if p[t] >= 0 else np.min(x)",
    "y[t] = np.sqrt(np.sum((x[t] - x[t - 1]) ** 2)) if x[t, 0] > 0.3 and t > 0 else np.sum(x / 2.0)",
]


@pytest.mark.parametrize("statement", ROWS)
def test_rows_are_read_in_the_arm_that_is_taken(statement: str) -> None:
    body = f"y = np.zeros(n)\nfor t in range(n):\n    {statement}\nreturn y"
    names: dict[str, Any] = {"np": np, "x": X, "p": P, "n": 4, "y": np.zeros(4)}
    exec(f"for t in range(n):\n    {statement}", names)
    f = program(body, "x, p, n")
    check(f, (X, P, 4), names["y"])
    tc.check_grads(lambda x: f(x, P, 4), (X,))


BARE = [
    ("n = sum(h[i] * h[i])\ny[i] = np.sum(x / n) * h[i]", np.sum(X / (H @ H)) * H),
    ("n = sqrt(sum(h[i] * h[i]))\ny = h * 0\nfor t in range(len(h)):\n    y[t] += np.sum(x / n) * h[t]", None),
    ("s = max(x[i, k])\nr = 1 / s\ny[i] = np.mean((x - s) * r) + h[i]", np.mean(X / X.max() - 1) + H),
    ("s = sum(h[i])\ny[i] = np.where(x > s, x, s).sum() + 0 * h[i]", np.where(H.sum() < X, X, H.sum()).sum() + 0 * H),
]


@pytest.mark.parametrize(("body", "wanted"), BARE)
def test_a_bare_reduction_beside_whole_arrays_is_one_number(body: str, wanted: Any) -> None:
    found = outcome(program(f"{body}\nreturn y", "x, h"), X, H)
    np.testing.assert_allclose(found, np.sum(X / np.sqrt(H @ H)) * H if wanted is None else wanted)


def test_a_bare_reduction_chooses_rows_and_masks() -> None:
    body = """k = argmax(h[i])
m = max(x[i, j])
x[k, :] = h[0]
x[:, k] += h
x[x > m / 2] *= 0.5 * m
h[h == h[k]] = -1.0
for t in range(len(h)):
    h[t] = x[t - 1].sum() * m if t > 0 else m
return x, h"""
    x, h = X[:, :4].copy(), H.copy()
    k, m = np.argmax(h), x.max()
    x[k, :] = h[0]
    x[:, k] += h
    x[x > m / 2] *= 0.5 * m
    h[1:], h[0] = x[:-1].sum(axis=1) * m, m
    for found, wanted in zip(outcome(program(body, "x, h"), X[:, :4], H), (x, h), strict=True):
        np.testing.assert_allclose(found, wanted)
