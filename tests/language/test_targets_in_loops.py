"""Targets that are declared before loops that run, and what rounds write to them and read of them."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tests.language.running_programs import check, program

GENERATOR = np.random.default_rng(7)
X, A = GENERATOR.random(6), GENERATOR.random((5, 5))


@op
def rnn(x: real[T, B, D], h: real[B, H], W, U):
    states: real[T + 1, B, H]
    states[0, b, k] = h[b, k]
    for t in range(T):
        states[t + 1, b, k] = tanh(sum(states[t, b, j] * W[j, k]) + sum(x[t, b, d] * U[d, k]))
    return states


@pytest.mark.parametrize("length", [0, 1, 6])
def test_a_history_is_written_round_by_round(length: int) -> None:
    x, h = GENERATOR.random((length, 2, 3)), GENERATOR.random((2, 4))
    w, u = GENERATOR.random((4, 4)), GENERATOR.random((3, 4))
    states = [h]
    for t in range(length):
        states.append(np.tanh(states[-1] @ w + x[t] @ u))
    check(rnn, (x, h, w, u), np.array(states))


@op
def forward_substitution(A: real[N, N], b: real[N]):
    y: real[N]
    for i in range(N):
        y[i] = (b[i] - sum(A[i, k] * y[k] for k in range(i))) / A[i, i]
    return y


def test_a_declared_target_is_read_before_the_round_that_writes_it() -> None:
    lower, b = np.tril(A) + np.eye(5), X[:5]
    check(forward_substitution, (lower, b), np.linalg.solve(lower, b))
    check(forward_substitution, (lower.astype("f"), b.astype("f")), np.linalg.solve(lower, b).astype("f"))


@op
def gauss_seidel(A: real[N, N], b: real[N], x: real[N]):
    for r in range(N):
        x[r] = (b[r] - sum(A[r, j] * x[j] for j in range(N) if j != r)) / A[r, r]
    return x


def test_a_reduction_leaves_out_the_number_of_the_round() -> None:
    matrix, b = A + 5 * np.eye(5), X[:5]
    expected = np.zeros(5)
    for r in range(5):
        expected[r] = (b[r] - matrix[r] @ expected + matrix[r, r] * expected[r]) / matrix[r, r]
    check(gauss_seidel, (matrix, b, np.zeros(5)), expected)


@op
def pendulum(x: real[N], n):
    before: real[N]
    now: real[N]
    for t in range(n):
        after[i] = 2 * now[i] - before[i] - 0.1 * now[i] + x[i]
        before, now = now, after
    return now


def test_declared_targets_are_handed_on() -> None:
    before = now = 0 * X
    for _ in range(4):
        before, now = now, 1.9 * now - before + X
    check(pendulum, (X, 4), now)
    check(pendulum, (X.astype("f"), 4), now.astype("f"))
    assert pendulum(X.astype("f"), 4).dtype == np.float32


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_declared_target_takes_the_type_of_the_parts_that_rounds_store(dtype: str) -> None:
    @op
    def rows(x: real[N, M]):
        declared: real[N, M]
        made = output(N, M)
        for t in range(N):
            declared[t, ...] = x[t]
            made[t] = 2 * x[t]
        return declared, made

    x = np.linspace(0, 1, 6).reshape(2, 3).astype(dtype)
    for found, wanted in zip(rows.interpret(x), (x, 2 * x), strict=True):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, wanted)


OPEN = [
    "q[0] = 1\nfor t in range(N):\n    q[t + 1] = q[t] + x[t]",
    "for t in range(N):\n    q[t] = x[t]\n    q[t + 1] = 2 * x[t]",
    "q[i + 1] = x[i]\nfor t in range(N):\n    if t > 1:\n        q[t + 3] = x[t]",
    "q[0] = 1\nfor t in range(N):\n    for u in range(t):\n        q[t + u] += x[u]",
]


@pytest.mark.parametrize("body", OPEN)
def test_open_extents_are_what_all_statements_and_rounds_need(body: str) -> None:
    f = program(f"q: real[X]\n{body}\nreturn q", "x: 'real[N]'")
    cells = body.replace("q[i + 1] = x[i]", "q[1], q[2], q[3], q[4] = x")
    x = np.arange(1.0, 5.0)
    names = {"N": 4, "x": x, "q": np.zeros(12)}
    exec(cells, names)
    found = f(x)
    np.testing.assert_array_equal(found, names["q"][: len(found)])
    assert not names["q"][len(found) :].any()
    assert tc.grad(lambda x: f(x).sum())(x).shape == (4,)


# What makes `q` hold x, and what stands behind it.
WRITTEN = [
    "q[i] = x[i]",
    "for t in range(N):\n    q[t] = x[t]",
    "for t in range(n):\n    q[i] = x[i]",
    "while n > 0:\n    q[i] = x[i]\n    n = n - 1",
    "if n > 0:\n    q[i] = x[i]",
    "if x[0] > 0:\n    q[i] = x[i]\nelse:\n    q[i] = 2 * x[i]",
    "for s in range(n):\n    for t in range(N):\n        q[t] = x[t]",
]
BEHIND = {
    "q[i + 1] += x[i]": [1, 3, 5, 7, 4],
    "q[i + 1] = x[i]": [1, 1, 2, 3, 4],
    "q[N] = 7.0": [1, 2, 3, 4, 7],
    "for t in range(N):\n    q[t + 2] += x[t]": [1, 2, 4, 6, 3, 4],
    "if x[0] > 0:\n    q[i + 1] = x[i]": [1, 1, 2, 3, 4],
    "q[i] += 1.0": [2, 3, 4, 5],
    "q[i] *= 2.0, i > 0": [1, 4, 6, 8],
    "q[-1] += 7.0": [1, 2, 3, 11],
    "for t in range(3):\n    q[i] += 1.0": [4, 5, 6, 7],
    "q[i] += 1.0\nq[i + 1] += x[i]": [2, 4, 6, 8, 5],
}


@pytest.mark.parametrize("written", WRITTEN)
def test_statements_behind_loops_and_branches_make_open_extents_larger(written: str) -> None:
    x = np.arange(1.0, 5.0)
    for behind, wanted in BEHIND.items():
        f = program(f"q: real[X]\n{written}\n{behind}\nreturn q", "x: 'real[N]', n")
        np.testing.assert_array_equal(f(x, 2), wanted, behind)
        np.testing.assert_array_equal(f.interpret(x, 2), wanted, behind)


@pytest.mark.parametrize("written", WRITTEN)
def test_statements_behind_loops_and_branches_lose_no_points(written: str) -> None:
    x = np.arange(1.0, 5.0)
    for behind in ("q[i + 1] += x[i]", "q[i + 1] = x[i]", "if x[0] > 0:\n    q[i + 1] = x[i]"):
        for before in ("q = output()\n", "" if written == WRITTEN[0] else "q = output()\n"):
            f = program(
                f"{before}{written}\nfor t in range(n):\n    q[i] *= 1.0\n{behind}\nreturn q", "x: 'real[N]', n"
            )
            with pytest.raises(
                tc.ShapeError, match=r"`i \+ 1` on axis 0 of q reaches position \w+, but its first stat"
            ):
                f(x, 2)


def test_open_axes_of_which_only_some_are_told_by_a_statement() -> None:
    f = program(
        "q: real[X, Y]\nq[i, j] = x[i] * x[j]\nq[i, j + 1] += x[j]\n"
        "for t in range(n):\n    q[i, j] *= 2\n    q[i, t + 5] = x[i]\nreturn q",
        "x: 'real[N]', n",
    )
    x = np.arange(1.0, 5.0)
    wanted = np.zeros((4, 7))
    wanted[:, :4] = np.outer(x, x)
    wanted[:, 1:5] += x
    for t in range(2):
        wanted *= 2
        wanted[:, t + 5] = x
    np.testing.assert_array_equal(f(x, 2), wanted)
    np.testing.assert_array_equal(f.interpret(x, 2), wanted)
