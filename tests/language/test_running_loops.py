"""Loops and branches that run: `for` over sizes, numbers, data and tensors, `while`, `if`; expectations by NumPy."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tests.language.running_programs import check, program

GENERATOR = np.random.default_rng(7)
X, A = GENERATOR.random(6), GENERATOR.random((5, 5))
ROWS = GENERATOR.random((4, 3))


# -- for


@op
def heat(u, steps):
    for t in range(steps):
        u[i] += 0.1 * (u[i - 1] - 2 * u[i] + u[i + 1])
    return u


@pytest.mark.parametrize("steps", [0, 1, 5, 20, 30])
def test_a_loop_runs_as_often_as_a_number_says(steps: int) -> None:
    u = X.copy()
    for _ in range(steps):
        u[1:-1] += 0.1 * (u[:-2] - 2 * u[1:-1] + u[2:])
    check(heat, (X, steps), u)


def test_a_negative_number_of_rounds_is_none() -> None:
    check(heat, (X, -3), X)


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


@cd
def cholesky(A: real[N, N]):
    for k in range(N):
        A[k, k] = sqrt(A[k, k])
        A[i, k] /= A[k, k], i > k
        A[i, j] -= A[i, k] * A[j, k], i > k, k < j, j <= i


def test_code_changes_its_argument_round_by_round() -> None:
    matrix = A @ A.T + np.eye(5)
    [found] = cholesky.interpret(matrix)
    np.testing.assert_allclose(np.tril(found), np.linalg.cholesky(matrix), rtol=1e-12)


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


@op
def fibonacci(n):
    a, b = 0, 1
    for t in range(n):
        a, b = b, a + b
    return a


@op
def total(x):
    s = 0
    for t in range(x.shape[0]):
        s = s + x[t]
    return s


@op
def doubled(x):
    n = 0
    for t in tc.loop(7):
        n = n + 2
    return n * x


def test_numbers_are_carried_in_the_type_of_their_updates() -> None:
    check(fibonacci, (10,), 55)
    check(total, (X.astype("f"),), X.astype("f").sum())
    assert total.interpret(X.astype("f")).dtype == np.float32
    assert total.interpret(np.arange(5)).dtype == np.int64
    check(doubled, (X.astype("f"),), 14 * X.astype("f"))
    assert doubled.interpret(X.astype("f")).dtype == np.float32


@op
def nested(A: real[N, M]):
    s = 0.0
    for i in range(N):
        for j in range(i, M):
            s = s + A[i, j] * (i + 2 * j)
    return s


@op
def weighted(x):
    s = 0.0
    for t in range(2, x.shape[0], 2):
        s = s + t * x[t]
    return s


@op
def backwards(x: real[N]):
    s = 0.0
    for t in range(N - 1, -1, -1):
        s = 0.5 * s + x[t]
    return s


@op
def decayed(x: real[N]):
    s = 0.0
    for t in reversed(range(1, N, 2)):
        s = 0.5 * s + t * x[t]
    return s


@op
def polynomial(x, n):
    s = 0 * x
    for k in reversed(tc.loop(n)):
        s = s * x + k
    return s


@op
def unrolled_backwards(x, *, parts=(2, 3)):
    for k in reversed(range(len(parts))):
        x = parts[k] * x + k
    return x


@op
def times_first(x, n):
    s = x
    for t in range(n):
        s = s * x[t]
    return s


def test_ranges() -> None:
    check(nested, (A,), sum(A[i, j] * (i + 2 * j) for i in range(5) for j in range(i, 5)))
    check(weighted, (X,), sum(t * X[t] for t in range(2, 6, 2)))
    s = 0.0
    for value in X[::-1]:
        s = 0.5 * s + value
    check(backwards, (X,), s)
    for size in (0, 1, 2, 5, 6):
        s = 0.0
        for t in reversed(range(1, size, 2)):
            s = 0.5 * s + t * X[t]
        check(decayed, (X[:size],), s)
    check(polynomial, (X, 4), ((3 * X + 2) * X + 1) * X)
    check(polynomial, (X, np.array(4)), ((3 * X + 2) * X + 1) * X)
    check(unrolled_backwards, (X,), 2 * (3 * X + 1))
    check(times_first, (X, np.array(3)), X * X[0] * X[1] * X[2])  # data says how often
    check(times_first, (X, 2), X * X[0] * X[1])


@op
def over_rows(x):
    s = 0 * x[0]
    for a in x:
        s = 0.5 * s + a
    return s


@op
def numbered(x):
    s = 0 * x[0]
    for t, a in enumerate(x):
        s = s + t * a
    return s


@op
def together(x, y):
    s = 0 * x[0]
    for a, b in zip(x, y, strict=True):
        s = s + a * b
    return s


@op
def from_the_end(x):
    s = 0 * x[0]
    for a in reversed(x):
        s = 0.5 * s + a
    return s


@op
def beside_a_list(x):
    s = 0 * x[0]
    for weight, a in zip([1, 2, 3, 4], x, strict=True):
        s = s + weight * a
    return s


@op
def composed(x: real[N], y):
    s = 0.0
    for t, (p, q) in enumerate(zip(x, y, strict=True)):
        s = s + t * p * q
    for p, q in zip(x, reversed(y), strict=True):
        s = 0.5 * s + p * q
    for t, p in zip(range(N), x, strict=True):
        s = s + t * p
    for k, t in enumerate(range(1, N), 2):
        s = s + x[t] * k
    return s


@op
def weights(x, *, c=(1, 2, 3, 4, 5, 6)):
    s = 0.0
    for k, (w, a) in enumerate(zip(c, x, strict=True)):
        s = s + k * w * a
    for k, w in enumerate(c):
        s = s + k * w
    return s


@op
def large_cells(x: real[N]):
    s = 0.0
    for t in range(N):
        s = s + x[t] if x[t] > 0.5 else s
    z = x[i] if x[i] > 0.5 else 0.0
    w[i] = 2 * z
    return s, w


def test_what_loops_go_over_composes() -> None:
    x, y = X, X[::-1] ** 2
    s = float((np.arange(6) * x * y).sum())
    for p, q in zip(x, y[::-1], strict=True):
        s = 0.5 * s + p * q
    s += (np.arange(6) * x).sum() + sum(k * x[t] for k, t in enumerate(range(1, 6), 2))
    check(composed, (x, y), s)
    c = np.arange(1, 7)
    check(weights, (x,), (np.arange(6) * c * x).sum() + (np.arange(6) * c).sum())


def test_choices_of_whole_values_are_branches() -> None:
    check(large_cells, (X,), (X[X > 0.5].sum(), 2 * np.where(X > 0.5, X, 0)))


def halved(rows: Any) -> Any:
    s = 0.0
    for a in rows:
        s = 0.5 * s + a
    return s


def test_loops_over_tensors() -> None:
    check(over_rows, (ROWS,), halved(ROWS))
    check(numbered, (ROWS,), sum(t * a for t, a in enumerate(ROWS)))
    check(together, (ROWS, 2 * ROWS), 2 * (ROWS**2).sum(0))
    check(from_the_end, (ROWS,), halved(ROWS[::-1]))
    check(beside_a_list, (ROWS,), np.arange(1, 5) @ ROWS)
    with pytest.raises(ShapeError, match="a loop goes over a list of 4 and a tensor of another length"):
        beside_a_list.interpret(ROWS[:3])


@cd
def descend(w, g, n):
    for t in range(n):
        w -= 0.1 * g


@cd
def tail(w, n):
    z = w[1:]
    for t in range(n):
        z *= 2


def test_memory_is_carried_under_every_name() -> None:
    check(descend, (X, X, 5), (0.5 * X,))
    check(tail, (X, 3), (np.r_[X[0], 8 * X[1:]],))


@op
def place_of(A: real[H, W], value):
    for r in range(H):
        for c in range(W):
            if A[r, c] == value:
                return {"place": (r, c)}
            if A[r, c] < 0:
                break
    return {"place": (-1, -1)}


def test_loops_in_loops_return_several_values() -> None:
    matrix = np.arange(12.0).reshape(3, 4)
    assert place_of.interpret(matrix, 6.0) == {"place": (1, 2)}
    matrix[1, 1] = -1
    assert place_of.interpret(matrix, 6.0) == {"place": (-1, -1)}


TABLE = np.array([2.0, 3.0, 5.0])


@op
def weighted_by_a_table(x: real[N]):
    s = 0.0
    for t in range(N):
        s = s + x[t] * TABLE[t % 3]
    return s


@op
def to_a_power_of_a_table(x, n):
    k = 0 * n
    while k < n:
        x = x * TABLE[k]
        k = k + 1
    return x


def test_arrays_around_the_function_are_indexed_by_the_number_of_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    for table in (TABLE, TABLE + 1):
        monkeypatch.setitem(globals(), "TABLE", table)
        check(weighted_by_a_table, (X,), (X * table[np.arange(6) % 3]).sum())
        check(to_a_power_of_a_table, (X, 2), X * table[0] * table[1])


# -- while


@op
def marks_from_the_end(a: int64[N]):
    found: int64[N]
    n = N
    while n > 0:
        if a[n - 1] > 0:
            found[n - 1] = n
            n = n - 2
        else:
            n = n - 1
    return found


def test_an_index_goes_back_by_steps_that_data_choose() -> None:
    check(marks_from_the_end, (np.array([1, 2, 0, 1, 0, 3]),), np.array([0, 2, 0, 4, 0, 6]))


@op
def square_root(a):
    x = a
    while x * x - a > 1e-10:
        x = 0.5 * (x + a / x)
    return x


@op
def conjugate_gradient(A, b, tolerance):
    x = 0 * b
    r = b
    p = b
    while sum(r[i] * r[i]) > tolerance:
        q[i] = sum(A[i, j] * p[j])
        alpha = sum(r[i] * r[i]) / sum(p[i] * q[i])
        x = x + alpha * p
        new[i] = r[i] - alpha * q[i]
        beta = sum(new[i] * new[i]) / sum(r[i] * r[i])
        p = new + beta * p
        r = new
    return x


@op
def collatz(n):
    steps = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps = steps + 1
    return steps


@op
def escape(cx: real[H, W], cy: real[H, W]):
    rounds: real[H, W]
    for i in range(H):
        for j in range(W):
            x = 0.0
            y = 0.0
            n = 0.0
            while x * x + y * y < 4 and not n >= 20:
                x, y = x * x - y * y + cx[i, j], 2 * x * y + cy[i, j]
                n = n + 1
            rounds[i, j] = n
    return rounds


def escaping(cx: float, cy: float) -> float:
    x = y = n = 0.0
    while x * x + y * y < 4 and n < 20:
        x, y = x * x - y * y + cx, 2 * x * y + cy
        n += 1
    return n


def test_conditions_end_loops() -> None:
    check(square_root, (np.array(2.0),), 2**0.5)
    matrix, b = A @ A.T + 5 * np.eye(5), X[:5]
    check(conjugate_gradient, (matrix, b, 1e-20), np.linalg.solve(matrix, b))
    check(collatz, (np.array(27),), 111)
    check(collatz, (27,), 111)
    cx, cy = np.meshgrid(np.linspace(-2, 1, 4), np.linspace(-1, 1, 3))
    check(escape, (cx, cy), np.vectorize(escaping)(cx, cy))


@op
def bisection(a: real[N], v):
    low = 0
    high = a.shape[0]
    for k in tc.loop(100):
        if low >= high:
            break
        middle = (low + high) // 2
        if a[middle] < v:
            low = middle + 1
        else:
            high = middle
    return low


@op
def until_two(x: real[N], c):
    n = 0.0
    for a in x:
        if a < c:
            continue
        n = n + a
        if n > 2:
            break
        n = n + 0.001
    return n


@op
def bits(n):
    k = 0
    while True:
        k = k + 1
        n = n // 2
        if n == 0:
            break
    return k


@op
def unrolled_with_jumps(x):
    for k in range(10):
        x = x + 1
        if k == 3:
            break
        if k == 1:
            continue
        x = 2 * x
    return x


@op
def gathered(A: real[N, M], n):
    k = 0
    s: real[M]
    s[j] = 0.0
    for t in range(n):
        s[j] += A[k, j]
        k = (k + 2) % 3
    return s


def summed_until_two(x: Any, c: float) -> float:
    n = 0.0
    for a in x:
        if a < c:
            continue
        n = n + a
        if n > 2:
            break
        n = n + 0.001
    return n


def test_arms_end_rounds_and_loops() -> None:
    ordered = np.sort(GENERATOR.random(37))
    for v in (-1.0, 0.3, 0.5, 2.0):
        check(bisection, (ordered, np.array(v)), np.searchsorted(ordered, v))
    check(until_two, (ordered, np.array(0.3)), summed_until_two(ordered, 0.3))
    check(until_two, (ordered[:3], np.array(0.3)), summed_until_two(ordered[:3], 0.3))
    check(bits, (np.array(37),), 6)
    check(unrolled_with_jumps, (X,), (((X + 1) * 2 + 1 + 1) * 2) + 1)


def test_numbers_that_rounds_change_are_data_as_indices() -> None:
    check(gathered, (A, 4), A[0] + A[2] + A[1] + A[0])


@op
def added_up(x, limit):
    total = 0.0
    while total < limit:  # known in the first round, data after it
        part: real[x.shape[0]]
        part[i] += x[i]
        total = total + sum(part[i])
    return total


def test_what_a_round_binds_first_is_new_in_each_round_also_where_the_first_one_is_pythons() -> None:
    check(added_up, (np.ones(3), np.array(8.0)), 9.0)
    with pytest.raises(DslSyntaxError, match="`h` is first bound in a round"):
        program("s = 0.0\nwhile s < 3:\n    h = 2 * x\n    s = s + sum(h[i])\nreturn h").interpret(X, 3)


def test_nan_ends_a_loop() -> None:
    assert np.isnan(square_root.interpret(np.array(np.nan)))


@op
def left_early(x, n):
    for t in range(n):
        x = x + 1
        if t == 3:
            break
    return x


@pytest.mark.parametrize("rounds", [2**64 - 1, 2**63, 2**63 - 1, 2, 0])
def test_unsigned_numbers_of_rounds_above_all_signed_ones(rounds: int) -> None:
    np.testing.assert_array_equal(left_early(X, np.array(rounds, np.uint64)), X + min(rounds, 4))


@op
def counted(x: real[N], limit):
    s = 0.0
    for t in range(N):
        s = s + 1 if x[t] > limit else s - 1
    return s


def test_nan_takes_the_other_arm() -> None:
    assert counted(X, np.array(np.nan)) == -len(X)


# -- if


@op
def chosen(x, c):
    if c > 0.5:
        y = 2 * x
    elif c > 0.25:
        y = 3 * x
    else:
        y = x + 1
    return y


@op
def returned(x, c):
    if c > 0.5:
        return 2 * x, x
    if c > 0.25:
        return 3 * x, x
    x = x + 1
    return x, x


@op
def one_arm(x, c):
    if c > 0.25:
        h = x * 2
        x = h + 1
    return x


@op
def by_size(x: real[N]):
    if N > 3:
        x = 2 * x
    return x


@cd
def clip(w, limit):
    n = sqrt(sum(w[i] * w[i]))
    if n > limit:
        w *= limit / n


@op
def safe(x, k):
    if k < x.shape[0]:
        y = x[k]
    else:
        y = 0 * x[0]
    return y


def test_branches() -> None:
    for c, expected in ((0.7, 2 * X), (0.3, 3 * X), (0.1, X + 1)):
        check(chosen, (X, np.array(c)), expected)
        check(chosen, (X, c), expected)
    for c, results in ((0.7, (2 * X, X)), (0.3, (3 * X, X)), (0.1, (X + 1, X + 1))):
        check(returned, (X, np.array(c)), results)
    check(one_arm, (X, np.array(0.3)), 2 * X + 1)
    check(one_arm, (X, np.array(0.2)), X)
    check(by_size, (X,), 2 * X)
    check(by_size, (X[:2],), X[:2])
    check(clip, (X, 0.5), (X * 0.5 / np.linalg.norm(X),))
    check(clip, (X, 50.0), (X,))


def test_only_the_arm_that_is_taken_is_evaluated() -> None:
    check(safe, (X, np.array(2)), X[2])
    check(safe, (X, np.array(99)), 0.0)


@op
def of_python(x, *, flag=True, count=3):
    if flag:
        y = x + 1
    else:
        y = x
    while count > 0:
        y = y * 2
        count -= 1
    parts = []
    for k in range(2):
        parts.append(y + k)
    if len(parts) == 2 and flag:
        y = parts[0] + parts[1]
    return y


def test_python_decides_what_it_knows() -> None:
    check(of_python, (X,), 2 * (X + 1) * 8 + 1)


@op
def until_above(x: real[N], limit, n):
    for t in range(3):
        if x[0] > limit:
            break
        x = x + 1
    for t in range(n):
        if x[1] > limit:
            break
        x = 2 * x + x[n % 2]
    return x


def test_ranges_of_python_that_data_end_run() -> None:
    for limit in (0.0, 1.5, 9.0):
        x = X.copy()
        for _ in range(3):
            if x[0] > limit:
                break
            x = x + 1
        for _ in range(4):
            if x[1] > limit:
                break
            x = 2 * x + x[0]
        check(until_above, (X, np.array(limit), 4), x)


# -- errors


FAULTS: list[tuple[str, Any, type[Exception], str, str]] = [
    (
        "for t in range(N):\n    h = x[t]\nreturn h",
        3,
        DslSyntaxError,
        "`h` is first bound in a round",
        "bind `h` before",
    ),
    (
        "for t in range(N):\n    x = x + t\nreturn x + t",
        3,
        DslSyntaxError,
        "`t` counts the rounds",
        "take another letter",
    ),
    (
        "ys = []\nfor t in range(N):\n    ys.append(x[t])\nreturn ys[0]",
        3,
        DslSyntaxError,
        "`ys` holds a list, which changes in a loop that runs",
        "collect results by `ys[t, ...] = h`",
    ),
    ("s = 0.0\nfor t in range(N):\n    s = s + x[t + 1]\nreturn s", 0, ShapeError, "out of range", "t + 1"),
    ("s = 0.0\nfor t in range(n):\n    s = s + x[t]\nreturn s", 8, ShapeError, "out of range", "extent N = 6"),
    ("for t in range(N):\n    x = x[1:]\nreturn x", 2, ShapeError, "`x` changes its shape in a loop that runs", "name"),
    (
        "for t in range(N):\n    x = float32(x)\nreturn x",
        2,
        DtypeError,
        "`x` is float64[N] before a loop",
        "float32[N]",
    ),
    ("s = 0\nfor t in range(N):\n    s = s + x\nreturn s", 2, ShapeError, "`s` is a number (int) before a loop", ""),
    (
        "for t in range(N):\n    with tc.config():\n        break\n    x = x + 1\nreturn x",
        2,
        DslSyntaxError,
        "`break` in a loop that runs",
        "it may stand in the loop, and in its branches, but in no other block",
    ),
    (
        "for k in [1, 2]:\n    if x[0] > 0:\n        break\n    x = x + k\nreturn x",
        2,
        DslSyntaxError,
        "data says whether this loop, which is unrolled, is left",
        "pass what it goes over as an array",
    ),
    (
        "for t in range(N):\n    if x[t] > 0:\n        for j in range(N):\n            x[j] = 1.0\n    x[j] += 1\nreturn x",
        2,
        DslSyntaxError,
        "`j` is bound in one arm of a branch that runs",
        "an index variable takes another letter",
    ),
    *(
        (
            f"for t in range({count}):\n    q[j] += x[t] * x[j]\nreturn x",
            2,
            DslSyntaxError,
            "`q` is added up in a loop that runs, but is not there before it",
            "`q = output()`",
        )
        for count in ("N", "n")
    ),
    (
        "for t in range(N):\n    with tc.config():\n        return x\nreturn x",
        2,
        DslSyntaxError,
        "`return` in a loop that runs",
        "in no other block",
    ),
    ("for t in range(N):\n    x = x + 1\nelse:\n    x = 0 * x\nreturn x", 2, DslSyntaxError, "`else` of a loop", ""),
    ("for t in range(x):\n    x = x + 1\nreturn x", 2, DtypeError, "where `range` needs an integer", ""),
    ("for t in range(n):\n    x = x + 1\nreturn x", 2.5, DtypeError, "a float where `range` needs an integer", ""),
    ("for t in range(1.5 * n):\n    x = x + 1\nreturn x", 2, (DtypeError, TypeError), "integer", ""),
    ("if x > 0:\n    x = x + 1\nreturn x", 2, ShapeError, "a condition of rank 1", "all(...)"),
    ("if sum(x[i]) > 0:\n    h = x + 1\nreturn h", 2, DslSyntaxError, "in one arm of a branch", "or in both arms"),
    (
        "while N > 2:\n    n = n + 1\nreturn n",
        2,
        DslSyntaxError,
        "a loop whose condition no round changes would never end",
        "change what the condition reads",
    ),
    ("w = {}\nfor t in range(N):\n    w = [x]\nreturn x", 2, DslSyntaxError, "`w` holds a dict, then a list", "once"),
    ("for a in x.sum():\n    x = x + a\nreturn x", 2, ShapeError, "a tensor of rank 0, which has no parts", ""),
]


@pytest.mark.parametrize(("body", "n", "kind", "fact", "hint"), FAULTS, ids=[each[3] + each[0][:20] for each in FAULTS])
def test_faults(body: str, n: Any, kind: type[Exception], fact: str, hint: str) -> None:
    with pytest.raises(kind, match=re.escape(fact)) as caught:
        program(body).interpret(X, n)
    assert hint in str(caught.value)


@op
def shortened(x, n):
    for t in range(n):
        x = x[1:] + x[:-1]
        last = t
    return x * last


@op
def parts(x, n):
    if n > 1:
        y = x[:2]
    else:
        y = x
    for t in range(n):
        if t == 2:
            break
        y = y + t
    return y


def test_loops_and_branches_on_numbers_alone_that_cannot_run_are_pythons() -> None:
    expected = (X[2:] + 2 * X[1:-1] + X[:-2]) * 1
    np.testing.assert_allclose(shortened.interpret(X, 2), expected)
    np.testing.assert_allclose(parts.interpret(X, 4), X[:2] + 1)
    np.testing.assert_allclose(parts.interpret(X, 1), X)


@op
def by_keyword(x, *, layers):
    for t in range(layers):
        h = x + t
        x = h
    return h


def test_keyword_only_numbers_are_pythons() -> None:
    np.testing.assert_allclose(by_keyword.interpret(X, layers=3), X + 3)
    assert "repeat" not in by_keyword.explain("ir", X, layers=3)


@op
def long(x):
    for t in range(101):
        x = x + t
    return x


@op
def endless(x):
    for t in range(100_000):
        x = x + t
    return x


def test_loops_of_python_that_record_many_rounds_are_told_of() -> None:
    with pytest.warns(RuntimeWarning, match="a loop of 101 rounds is unrolled"):
        long.interpret(X)
    with pytest.warns(RuntimeWarning), pytest.raises(DslSyntaxError, match=r"write `tc.loop\(...\)`"):
        endless.interpret(X)


def test_a_loop_without_effect_is_no_loop() -> None:
    f = program("for t in range(n):\n    h = x[t]\nreturn x")
    check(f, (X, 3), X)


def test_outside_of_functions_a_loop_is_a_range() -> None:
    assert list(tc.loop(2, 8, 3)) == [2, 5]


def test_a_loop_runs_where_extents_are_equal_in_the_call() -> None:
    @op
    def alternating(u, v, n):
        for _t in range(n):
            u, v = u[0] + v, u
        return u

    def by_hand(u: Any, v: Any, n: int) -> Any:
        for _ in range(n):
            u, v = u[0] + v, u
        return u

    x = np.arange(4.0)
    for v in (x[::-1], np.ones(3), x):
        for n in (20, 21):
            np.testing.assert_array_equal(alternating(x, v, n), by_hand(x, v, n))
    # One program runs; where the arrays differ in length there is one for each number of rounds.
    assert alternating.cache_info().programs == 3


def test_a_branch_on_the_number_of_the_round_may_compute_with_floats() -> None:
    @op
    def early(x):
        count = 0
        for t in range(x.shape[0]):
            if not 0.1 * t > 0.9:
                count = count + 1
        return count

    assert [early(np.ones(n)) for n in (0, 5, 20)] == [0, 5, 10]


def of_sizes(body: str) -> tuple[Any, Any]:
    """The body of a function of `w`, `x` and `k`, of M, M and K cells: as a program, and as Python runs it."""
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    names: dict[str, Any] = {}
    exec(f"def by_hand(w, x, k):\n    M, K = len(w), len(k)\n{lines}", names)
    return program(body, "w: 'real[M]', x: 'real[M]', k: 'real[K]'"), names["by_hand"]


REMAINDERS = ["t % M", "(M - 1 - t) % M", "(M - t) % M", "(t - 1) % M", "(t - K) % M", "(2 * t - 7) % M"]
QUOTIENTS = ["t // K", "(M - 1 - t) // K", "(M - 1) // K"]


@pytest.mark.parametrize("rounds", ["range(M)", "reversed(range(M))"])
@pytest.mark.parametrize("index", REMAINDERS + QUOTIENTS)
def test_remainders_and_quotients_of_numbers_of_rounds_are_indices(index: str, rounds: str) -> None:
    f, by_hand = of_sizes(
        f"s = 0.0\nfor t in {rounds}:\n    s = s * 0.5 + w[{index}]\n    x[{index}] += w[t] * (t + 1)\nreturn s, x"
    )
    for length, width in ((5, 2), (3, 3), (4, 1), (1, 2), (0, 2)):
        w, k = GENERATOR.random(length), np.zeros(width)
        check(f, (w, np.zeros(length), k), by_hand(w, np.zeros(length), k))


@pytest.mark.parametrize("index", ["(K - M) % M", "(M - 7) % M", "(M - 1) // K"])
def test_remainders_and_quotients_of_sizes_are_indices(index: str) -> None:
    f, by_hand = of_sizes(f"return w[{index}]")
    for length, width in ((5, 2), (3, 3), (1, 2)):
        arguments = (GENERATOR.random(length), np.zeros(length), np.zeros(width))
        check(f, arguments, by_hand(*arguments))


def test_a_remainder_that_is_out_of_range_is_told_as_it_is_written() -> None:
    f = program("s = 0.0\nfor t in range(M):\n    s = s + w[(t - 5) % K]\nreturn s", "w: 'real[M]', k: 'real[K]'")
    assert f(np.ones(3), np.ones(2)) == 3
    with pytest.raises(ShapeError, match=r"the index \(t - 5\) % K is out of range of axis 0") as refused:
        f(np.ones(3), np.ones(4))
    assert "minus" not in str(refused.value)
    f, _ = of_sizes("for t in range(M):\n    x[(t - 1) // K] += w[t]\nreturn x")
    with pytest.raises(ShapeError, match=r"the index \(t - 1\) // K is out of range of axis 0 of x, which"):
        f(np.ones(3), np.ones(3), np.ones(2))


@pytest.mark.parametrize(
    "body",
    [
        "x[t % M] += w[t % M]",
        "k[0] += w[t % M]",
        "k[0] += w[(t - 1) % M] + w[t // M]",
        "k[0] += k[5]",
        "j = 0\nwhile j < k[0]:\n    j = j + 1\nk[t % 2] += w[t % M]",
        "for p in range(0, M, 2):\n    k[0] += w[p % M]",
        "for p in range(M):\n    k[t % 2] += w[p % M] + k[5]",
        "for p in range(M):\n    for q in range(M):\n        k[0] += w[(t - q) % M]",
    ],
)
def test_a_body_asks_nothing_of_sizes_where_no_round_runs(body: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    f, by_hand = of_sizes(f"for t in range(M):\n{lines}\nreturn k, x")
    k = np.array([1.0, 2.0])
    check(f, (np.zeros(0), np.zeros(0), k), (k, np.zeros(0)))
    if "k[5]" in body:
        with pytest.raises(ShapeError, match="the index 5 is out of range"):
            f(np.ones(2), np.ones(2), k)
        k = np.arange(6.0)
    w = GENERATOR.random(3)
    check(f, (w, np.zeros(3), k), by_hand(w, np.zeros(3), k.copy()))


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


def test_conditions_with_sums_read_no_further_than_those_before_them() -> None:
    def positions(x, y):
        p, n, d = len(y) - 1, 0, sum(x)
        while p > 0 and y[p - 1] > d:
            p -= 1
        while n < len(y) and y[n] != 2 * d:
            n += 1
        return p, n, 1 if len(y) > 1 and y[len(y) - 2] > d else 0

    @op
    def found(x: real[N], y: real[M]):
        p, n = M - 1, 0
        d = sum(x[c] for c in range(N))
        while p > 0 and y[p - 1] > d:
            p -= 1
        while n < M and y[n] != 2 * d:
            n += 1
        if M > 1 and y[M - 2] > d:
            return p, n, 1
        return p, n, 0

    for y in ([3.0, 1.0, 2.0], [1.0], [0.0, 0.0, 5.0]):
        for x in (np.zeros(2), np.ones(1)):
            assert tuple(map(int, found(x, np.array(y)))) == positions(x, y)


def test_a_generator_has_a_name_of_its_own_after_a_loop_of_that_letter() -> None:
    f = program(
        "y: real[N]\nfor s in range(N):\n    y[s] = 2 * x[s]\nc = output(1)\nc[0] = sum(y[s] for s in range(N))\nreturn c"
    )
    np.testing.assert_allclose(f(X, 1), [2 * X.sum()])
