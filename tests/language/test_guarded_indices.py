"""Indices in rounds that are in range only where a condition on sizes holds, beside data: what plain Python gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.language.running_programs import check, program

X = np.array([0.7, 0.2, 0.9, 0.4, 0.6])
MARKS = np.array([1, 0, 2, 3, 0]), np.array([0, 1, 1, 0, 2])


def by_hand(body: str, x: Any, marks: Any) -> Any:
    """What Python computes."""
    names = {"np": np, "x": x, "l": marks, "N": len(x)}
    lines = "".join(f"    {line}\n" for line in body.replace("y: real[N]", "y = np.zeros(N)").splitlines())
    exec(f"def f():\n{lines}", names)
    return names["f"]()


def as_python_does(body: str) -> Any:
    """The program of a body on ``x`` and ``l``, which has been compared with Python."""
    f = program(body, "x: 'real[N]', l")
    for marks in MARKS:
        check(f, (X, marks), np.asarray(by_hand(body, X, marks)))
    return f


@pytest.mark.parametrize(
    ("condition", "taken", "other"),
    [
        ("t > 0 and l[t] > 0", "x[t - 1]", "1.0"),
        ("t == 0 or l[t]", "1.0", "x[t - 1]"),
        ("t > 0 and l[t] > 0 and x[t - 1] > 0.5 and t + 1 < N", "x[t - 1] * x[t + 1]", "1.0"),
        ("(t > 0 and l[t] > 0) or (t > 1 and x[t] > 0.5)", "x[t - 1]", "1.0"),
        ("t * t > 3 and t > 1 and l[t] > 0", "x[t - 2]", "1.0"),
        ("t % 2 == 1 and l[t]", "x[t - 1]", "1.0"),
        ("t + 1 < N and l[t + 1]", "x[t + 1]", "sum(x[q] for q in range(t)) if not (t < 2 or l[t]) else x[t]"),
    ],
)
def test_arms_ask_of_indices_what_their_conditions_leave_open(condition: str, taken: str, other: str) -> None:
    body = (
        f"s = 0.0\nfor t in range(N):\n    if {condition}:\n        s = s + {taken}\n    else:\n        s = s - {other}"
    )
    as_python_does(f"{body}\nreturn s")


def test_elif_and_names_of_conditions() -> None:
    as_python_does("""s = 0.0
for t in range(N):
    b = t > 0 and l[t] > 0
    c = b and x[t] > 0.3
    if c:
        s = s + x[t - 1]
    if t == 0:
        s = s + 2.0
    elif l[t] > 1:
        s = s + x[t - 1]
    elif t > 1 and l[t - 1] > 0:
        s = s * x[t - 2]
    else:
        s = s - (x[t - 1] if t == N - 1 or not l[t + 1] else x[t + 1])
return s""")


def test_loops_inside_by_the_number_of_the_round() -> None:
    as_python_does("""s = 0.0
for t in range(N):
    if t > 1 and l[t] > 0:
        for q in range(t - 1):
            s = s + x[t - 2 - q]
            if q + t < N and l[q] > 0:
                s = s * x[t + q]
    p = t
    while p > 0 and l[p] > 1:
        s = s + x[p - 1]
        p = p - 1
return s""")


def test_writes_and_gradients() -> None:
    body = """y: real[N]
for t in range(N):
    if t + 1 < N and l[t] > 0:
        y[t + 1] = x[t] * x[t] + y[t]
    if t > 0 and l[t] > 0:
        y[t - 1] = y[t] * x[t]
return y"""
    f = as_python_does(body)
    h = 1e-6
    for marks in MARKS:
        ends = [[by_hand(body, X + sign * h * step, marks).sum() for sign in (1, -1)] for step in np.eye(5)]
        slopes = [(one - other) / (2 * h) for one, other in ends]
        np.testing.assert_allclose(tc.grad(lambda x, marks=marks: f(x, marks).sum())(X), slopes, atol=1e-8)
