"""Functions that tensor statements call mean their text: subscripts, choices, truth values, early returns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.differential.loading import loaded
from tests.language.outcomes import refusal

FUNCTIONS = """
import numpy as np
TABLE = np.arange(5.0) * 10
def cell(a, j): return a[j]
def later(a, j, by=1):
    moved = j + by
    return a[moved]
def before(a, j): return a[j - 1] if j > 0 else -1.0
def size(a): return a if a > 0 else -a
def both(a, b): return (a > 0 and not b > 2) * a
def either(a, b): return 1.0 if not a > 0 or b > 1 else 2.0
def inside(a): return (0 < a <= 2) * a
def largest(a, b): return max(size(a), b, 0.5) + exp(-size(a))
def border(a, j): return a[clamp(j - 1)] + get(a[j + 1], 7.0)
def looked_up(j): return TABLE[j]
def chosen(a, ids, j): return a[ids[j]]
def window(a, j): return sum(a[j + m] for m in range(2))
def total(a, r): return sum(a[r, l])
def staged(a, mode=1, flag=None):
    if flag is None:
        return a * 2 if mode == 1 else size(a)
    b = a
    for n in range(mode):
        b += b if b > 1 else 0.0
        if n == 1:
            return b
    return -b
def pair(a, j): return a[j], (a[j] if j > 1 else 0.0)
class Scaled:
    def __init__(self, by): self.by = by
    def of(self, a, j): return a[j] * self.by if a[j] > 0 else 0.0
    def __call__(self, a): return a if a > self.by else self.by
    @staticmethod
    def twice(a, j): return a[j] * 2
scaled = Scaled(3.0)
def listed(a, j): return sum([a[j + n] for n in range(2)] + [0.0])
def kept(a, j):
    cells = {"here": a[j] if j > 0 else 0.0, "name": f"{j!r}"}
    both = (*[cells["here"]], a[j])
    return both[0] + both[1]
def many(a, j, *rest): return max(a[j], *rest)
"""
# What calls them, and what it means.
CALLS = (
    ("cell(x, i)", "x[i]"),
    ("cell(x, i) * cell(y, 4 - i)", "x[i] * y[4 - i]"),
    ("later(x, i)", "x[i + 1]"),
    ("later(x, i, by=2)", "x[i + 2]"),
    ("before(x, i)", "(x[i - 1] if i > 0 else -1.0)"),
    ("size(y[i])", "(y[i] if y[i] > 0 else -y[i])"),
    ("both(y[i], x[i])", "(y[i] > 0 and not x[i] > 2) * y[i]"),
    ("either(y[i], x[i])", "(1.0 if not y[i] > 0 or x[i] > 1 else 2.0)"),
    ("inside(y[i])", "(0 < y[i] <= 2) * y[i]"),
    ("border(x, i)", "x[clamp(i - 1)] + get(x[i + 1], 7.0)"),
    ("looked_up(i) * x[i]", "TABLE[i] * x[i]"),
    ("chosen(x, ids, i)", "x[ids[i]]"),
    ("2 * window(x, i)", "2 * sum(x[i + m] for m in range(2))"),
    ("total(A, i) / A[i, 0]", "sum(A[i, l]) / A[i, 0]"),
    ("staged(y[i])", "y[i] * 2"),
    ("staged(y[i], 2)", "(y[i] if y[i] > 0 else -y[i])"),
    ("scaled.of(y, i)", "(y[i] * 3.0 if y[i] > 0 else 0.0)"),
    ("Scaled.twice(x, i)", "x[i] * 2"),
    ("kept(x, i)", "(x[i] if i > 0 else 0.0) + x[i]"),
    ("many(x, i, 2.5)", "max(x[i], 2.5)"),
    ("scaled(y[i])", "(y[i] if y[i] > 3.0 else 3.0)"),
)
X, Y, A = np.arange(1.0, 6.0), np.arange(5.0) - 2, np.arange(1.0, 16.0).reshape(5, 3)
IDS = np.array([4, 0, 1, 1, 2])


def shown(value: str) -> Any:
    f = loaded(f"def f(x, y, A, ids):\n    O: real[x.shape[0]]\n    O[i] = {value}\n    return O\n", FUNCTIONS)
    return f.explain("ir", X, Y, A, IDS), f.interpret(X, Y, A, IDS).tolist()


@pytest.mark.parametrize(("call", "text"), CALLS)
def test_functions_mean_their_text(call: str, text: str) -> None:
    assert shown(call) == shown(text)


def test_functions_of_functions_and_loops_in_them() -> None:
    assert shown("listed(x, i)")[1] == [3, 5, 7, 9, 0]
    size = np.abs(Y)
    np.testing.assert_allclose(shown("largest(y[i], 1.0)")[1], np.maximum(size, 1) + np.exp(-size))
    doubled = np.where(Y > 1, 2 * Y, Y)
    np.testing.assert_allclose(shown("staged(y[i], 1, flag=True)")[1], -doubled)
    np.testing.assert_allclose(shown("staged(y[i], 3, flag=True)")[1], np.where(doubled > 1, 2 * doubled, doubled))


def cell(a, j):
    return a[j]


def test_letters_that_functions_index_with_are_index_variables() -> None:
    @op
    def f(x):
        inner = lambda a, b: a if a > b else 2 * b  # noqa: E731

        def next_to(a, n):
            return cell(a, n) * cell(a, n + 1)

        q = cell(x, k)
        s[()] += cell(x, k)
        t[i] = sum(next_to(x, k) * x[i])
        u[k] = inner(q, 3.0)
        return s, t, u

    for one, wanted in zip(f.interpret(X), (15.0, 40 * X, [6.0, 6.0, 6.0, 4.0, 5.0]), strict=True):
        np.testing.assert_array_equal(one, wanted)

    @op
    def g(x):
        s[()] += cell(x, k) * cell(x, k + 1) * (5 - k)
        return s

    np.testing.assert_array_equal(tc.grad(g)(X), [10, 17, 20, 19, 8])


def positive(a):
    if a > 0:
        return a
    return -a


def test_a_branch_on_data_says_what_to_write() -> None:
    @op
    def f(x):
        y[i] = positive(x[i])
        return y

    text = refusal(tc.DslSyntaxError, f, X)
    assert "Python branches on a value that is different at every point" in text
    assert "    if a > 0:\n       ^^^^^" in text
    assert "write `a if condition else b`" in text

    @cd
    def g(x, mode):
        x[i] = positive(x[i]) if mode > 1 else x[i]

    assert "if a > 0" in refusal(tc.DslSyntaxError, g, X, 2)
