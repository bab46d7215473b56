"""Branches that run: `if`, `elif`, `else` and choices of whole values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl import cd, op
from tests.language.running_programs import check

GENERATOR = np.random.default_rng(7)
X, A = GENERATOR.random(6), GENERATOR.random((5, 5))


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


def test_a_branch_on_the_number_of_the_round_may_compute_with_floats() -> None:
    @op
    def early(x):
        count = 0
        for t in range(x.shape[0]):
            if not 0.1 * t > 0.9:
                count = count + 1
        return count

    assert [early(np.ones(n)) for n in (0, 5, 20)] == [0, 5, 10]


@op
def between(x: real[N], most):
    rounds = 0
    while 0 <= sum(x[i]) < 10 and -1 < rounds < abs(most) + 1 < 7.5:
        if 0 < sin(x[0]) <= 0.6 < cos(x[1]) <= exp(x[2] - x[2]):
            x = x + 0.5
        else:
            x = x + 0.25
        rounds = rounds + 1
    return x, rounds


def test_chained_comparisons_evaluate_what_stands_between_once() -> None:
    def by_python(x: np.ndarray, most: float) -> tuple[np.ndarray, int]:
        rounds = 0
        while 0 <= x.sum() < 10 and -1 < rounds < abs(most) + 1 < 7.5:
            x = x + (0.5 if 0 < np.sin(x[0]) <= 0.6 < np.cos(x[1]) <= 1 else 0.25)
            rounds = rounds + 1
        return x, rounds

    for most in (-3.0, 6.25, 7.0, 0.0):
        for start in (X[:3] / 4, X[:3] - 4):
            check(between, (start, most), by_python(start, most))


@op
def first_above_others(x: real[N]):
    found = -1
    for t in range(N):
        if 0 < t < sum(x[k] for k in range(t)) < x[t - 1] * 10:
            found = t
    return found


@op
def sums_of_a_round(x: real[N], most):
    total = 0.0
    for t in range(N):
        if 0 < min(x[t], most) < max(x[t], 1.0) <= sum(x[k] for k in range(t + 1)):
            total = total + x[t]
    return total


def test_parts_of_a_chain_may_reduce() -> None:
    for x in (X[:0], X[:1], X * 2, np.array([np.nan, 1, np.inf, -1, 2])):
        ends = [(min(each, 0.5), max(each, 1.0), sum(x[: t + 1])) for t, each in enumerate(x)]
        holds = [0 < low < high <= reached for low, high, reached in ends]
        check(sums_of_a_round, (x, 0.5), sum(x[holds]) if len(x) else 0.0)


def test_a_chain_ends_where_it_does_not_hold() -> None:
    # In round 0 there is no x[-1].
    x = np.array([2.0, 1.0, -3.0, 6.0])
    holds = [0 < t < x[:t].sum() < x[t - 1] * 10 for t in range(4)]
    check(first_above_others, (x,), max(np.flatnonzero(holds), default=-1))


@op
def among(x: real[N], *, wanted):
    s = 0.0
    for t in range(N):
        if t in (1, 3):
            s = s + x[t]
        elif t not in {0, 2, 4} and x[t] in (5.0, 7.0):
            s = s - x[t]
        if t in wanted:
            s = s + 100
    return s


@pytest.mark.parametrize("wanted", [(), (2, 4), range(1, 8, 3), range(8, 0, -3), range(3, 3), frozenset([0, 8])])
def test_membership_of_data_in_what_python_knows(wanted: Any) -> None:
    x = np.arange(9.0)
    expected = x[1] + x[3] - x[5] - x[7] + 100 * sum(t in wanted for t in range(9))
    assert among(x, wanted=wanted) == among.interpret(x, wanted=wanted) == expected


@op
def digits(n, x):
    s = 0
    for t in range(n):
        quotient, remainder = divmod(t, 2)
        first, second = divmod(7, t + 1)
        third, fourth = divmod(x - t, 3)
        s = s + 1000 * quotient + 100 * remainder + first * second + 10 * third + fourth
    return s


def test_divmod_of_data_and_numbers() -> None:
    for x in (np.array(5), np.array(-4)):
        parts = (1000 * (t // 2) + 100 * (t % 2) + (7 // (t + 1)) * (7 % (t + 1)) for t in range(6))
        expected = sum(parts) + sum(10 * ((x - t) // 3) + (x - t) % 3 for t in range(6))
        check(digits, (np.array(6), x), expected)
