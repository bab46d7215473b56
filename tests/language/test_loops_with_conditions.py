"""Loops that conditions end: `while`, `break`, and what a round reads where they say so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import DslSyntaxError
from tests.language.running_programs import check, program

GENERATOR = np.random.default_rng(7)
X, A = GENERATOR.random(6), GENERATOR.random((5, 5))


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
        program("s = 0.0\nwhile s < 3:\n    h[i] = 2 * x[i]\n    s = s + sum(h[i])\nreturn h").interpret(X, 3)


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


@pytest.mark.parametrize("places", [np.array([1, 4]), np.array([[0, 7], [2, 2]]), np.zeros(0, np.int64)])
def test_a_number_is_looked_for_among_the_cells_of_an_array(places: np.ndarray) -> None:
    body = "s = 0\nfor t in range(n):\n    if t in p:\n        s = 2 * s + 1\nreturn s, 1 if n not in p else 2"
    s = 0
    for t in range(6):
        s = 2 * s + 1 if t in places else s
    for n in (6, np.array(6)):
        check(program(body, "p, n"), (places, n), (s, 1 if 6 not in places else 2))
