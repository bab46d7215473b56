"""Quotients and remainders by sizes on the target of a plain ``=``: that cells do not meet is looked at in the call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.language.running_programs import check, program

X = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
ROUNDS = "y: real[N]\nfor t in range(3):\n    "
INDICES = ("(i + 2) % N", "(N - 1 - i) % N", "3 * i % N", "(i + n) % N", "(i + p[1]) % N", "i // N", "i * i % (N + 3)")


def places(index: str, extent: int, n: int, p: np.ndarray) -> list[int]:
    """The positions that the points write, by Python's arithmetic."""
    return [eval(index, {"i": i, "N": extent, "n": n, "p": p}) for i in range(extent)]  # noqa: S307


@pytest.mark.parametrize("index", INDICES)
def test_cells_that_do_not_meet_are_written(index: str) -> None:
    f = program(
        f"(N,) = x.shape\ny = output(N + 3)\ny[i] = 7.0\ny[{index}] = 2 * x[i]\nreturn y", "x, n, p", decorator="op"
    )
    p = np.array([1, 3])
    for extent in range(1, 7):
        x = X[:extent]
        found = places(index, extent, 4, p)
        if len(set(found)) < extent:
            with pytest.raises(tc.ShapeError, match="`=` writes each cell once, but a cell of `y` is written twice"):
                f(x, 4, p)
            with pytest.raises(tc.ShapeError, match=r"`=` writes each cell once, but y\[\d+\] is written twice"):
                f.interpret(x, 4, p)
            continue
        wanted = np.full(extent + 3, 7.0)
        wanted[found] = 2 * x
        check(f, (x, 4, p), wanted)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("y[(i + 2) % N] = x[i]", np.roll(X, 2)),
        ("y[(i + n[()]) % N] = x[i]", np.roll(X, -8)),
        ("y[(n[()] - i) % N] += x[i]", X[[4, 3, 2, 1, 0, 5]]),
        ("y[(5 * i + 1) % N] = x[i]", X[[1, 0, 5, 4, 3, 2]]),
        ("y[(N - i) % N] += x[i]", X[[0, 5, 4, 3, 2, 1]]),
        ("y[(i + 1) % N, j] = x[i] * x[j]", np.outer(np.roll(X, 1), X)),
        ("y[i % (N - 2)] += x[i]", X[:4] + np.append(X[4:], [0, 0])),
        ("y = output(4, N - 4)\ny[i // (N - 4), i % (N - 4)] = x[i]", np.append(X, [0, 0]).reshape(4, 2)),
        ("y = output(N, N)\ny[(i + j) % N, j] = x[i]", np.stack([np.roll(X, j) for j in range(6)], 1)),
        ("y = output(N)\nfor t in range(N):\n    y[(i + t) % N] = x[i]", np.roll(X, 5)),
        (f"{ROUNDS}y[(i + t) % N] = x[i] + y[i]", np.roll(np.roll(2 * X, 1) + X, 2)),
        ("y = x * 1\ny[(i + 2) % N] = y[i] + x[i]", 2 * np.roll(X, 2)),
        ("y = output(N)\ny[(i + 2) % N] = x[i], x[i] > 2", np.roll(X * (X > 2), 2)),
        ("y = output(N)\nk = i + 2\ny[k % N] = x[i]", np.roll(X, 2)),
    ],
)
def test_new_targets_parts_and_rounds(body: str, wanted: Any) -> None:
    f = program(f"(N,) = x.shape\n{body}\nreturn y", "x, n", decorator="op")
    check(f, (X, np.array(-8)), wanted)
    tc.check_grads(lambda x: f(x, np.array(-8)), (X / 7,), order=2)


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("y[(i + 2) % N] = x[i]", np.zeros(0)),
        ("y[(i + 1) % N, j % N] = x[i] * x[j]", np.zeros((0, 0))),
        ("y = output(N)\ny[i] = x[(i + 1) % N] * (7 // N)", np.zeros(0)),
        ("y[j] = j + sum(x[i] * (i % N) for i in range(N)), j < 3", np.arange(3)),
        ("y[j] = j + x[j // N], j < 3, N > 0", np.zeros(3)),
    ],
)
def test_without_points_nothing_is_divided_by_an_extent_of_0(body: str, wanted: Any) -> None:
    f = program(f"(N,) = x.shape\n{body}\nreturn y", "x", decorator="op")
    check(f, (np.zeros(0),), wanted)
    assert tc.grad(lambda x: f(x).sum())(np.zeros(0)).shape == (0,)


@pytest.mark.parametrize(
    ("body", "text"), [("y = output(2)\ny[i % N] += w[i]", "i % N"), ("y[i] = w[i] * (i // N)", "i // N")]
)
def test_with_points_it_is_an_error(body: str, text: str) -> None:
    f = program(f"(N,) = x.shape\n{body}\nreturn y", "x, w", decorator="op")
    with pytest.raises(tc.ShapeError, match=f"`{text}` divides by 0"):
        f(np.zeros(0), np.ones(2))


def test_rounds_that_read_what_is_declared_before_them() -> None:
    weights = [1.0, 2.0, 3.0]

    @tc.op
    def sums(x: Any) -> Any:
        y: real[6]
        for t in range(1, 6):
            y[t] = y[t - 1] + x[t]
        return y

    @tc.op
    def weighted(x: Any) -> Any:
        y: real[6]
        for t in range(3):
            y[i] = y[i] + weights[t] * x[i]
        return y

    check(sums, (X,), np.cumsum(X) - 1)
    with pytest.raises(tc.DslSyntaxError, match="`y` is read before anything is written to it"):
        weighted(X)


def test_memory_that_code_is_given() -> None:
    f = program("(N,) = y.shape\ny[(i + 1) % N] = x[i]", "y, x", decorator="cd")
    check(f, (np.zeros(6), X), (np.roll(X, 1),))


def test_extents_that_do_not_follow_are_to_be_declared() -> None:
    for index in ("2 * i % N", "(i + j) % N", "i % (N + 1)", "i * j % N"):
        f = program(f"(N,) = x.shape\ny[{index}] += x[i] * x[j]\nreturn y", "x", decorator="op")
        with pytest.raises(tc.ShapeError, match=r"the extent of axis 0 of y cannot be inferred from `.* %") as caught:
            f(X)
        assert "declare the extents of the target" in str(caught.value)
