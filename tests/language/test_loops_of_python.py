"""Loops and branches that stay Python's, and those of Python that data end."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import DslSyntaxError
from tests.language.running_programs import check, program

GENERATOR = np.random.default_rng(7)
X, A = GENERATOR.random(6), GENERATOR.random((5, 5))


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
def long(x, *, count):
    for t in range(count):
        x = x + t
    return x


@op
def listed(x, *, count):
    steps = []
    for t in reversed(range(count)):
        x = x + t
        steps.append(t)
    return x, steps[0]


def test_more_rounds_than_a_hundred_run() -> None:
    for count in (100, 101, 100_000):
        assert ("repeat" in long.explain("ir", X, count=count)) == (count > 100)
        np.testing.assert_allclose(long(X, count=count), X + count * (count - 1) // 2, rtol=1e-14)


def test_loops_of_python_that_record_many_rounds_are_told_of() -> None:
    with pytest.warns(RuntimeWarning, match="a loop of 101 rounds is unrolled"):
        assert listed.interpret(X, count=101)[1] == 100
    with pytest.warns(RuntimeWarning), pytest.raises(DslSyntaxError, match=r"write `tc.loop\(...\)`"):
        listed.interpret(X, count=100_000)


def test_outside_of_functions_a_loop_is_a_range() -> None:
    assert list(tc.loop(2, 8, 3)) == [2, 5]


@pytest.mark.parametrize("n", [2, 1, 0, -1])
def test_no_rounds_of_a_number_of_the_call_give_an_array_as_others_do(n: int) -> None:
    f = program("s = 0.0\nfor t in range(n):\n    s = s + x[t]\nreturn s", "x, n")
    wanted = np.zeros(6)
    wanted[: max(n, 0)] = 1
    np.testing.assert_array_equal(tc.grad(lambda x: f(x, n))(X), wanted)
    np.testing.assert_allclose(f(tc.tensor(X), n).value, X[: max(n, 0)].sum())


@op
def prefixes(x, *, sizes):
    parts = []
    for A in sizes:
        p[a] = x[a] + 1, a < A
        parts.append(p)
    return tuple(parts)


@op
def prefixes_by_number(x, *, n):
    total = 0.0
    for A in range(1, n + 1):
        p[a] = x[a] * x[a], a < A
        total = total + sum(p[a])
    return total


@op
def prefixes_by_while(x, *, n):
    total, A = 0.0, 0
    while n > A:
        A += 1
        p[a] = x[a] * x[a], a < A
        total = total + sum(p[a])
    return total


@op
def prefixes_inside(x, *, n):
    total = 0.0
    for m in range(n):
        for A in range(m + 1):
            p[a] = x[a] * x[a], a < A + 1
        total = total + sum(p[a])
    return total


@op
def prefixes_by_arms(x, *, n):
    total = 0.0
    for A in range(n + 1):
        if A < 2:
            if A == 0:
                continue
            p[a] = x[a] * x[a], a < 1
        else:
            p[a] = x[a] * x[a], a < A
        total = total + sum(p[a])
    return total


@op
def prefixes_in_one_arm(x, *, n):
    total = 0.0
    for A in range(n + 1):
        if A > 0:
            if x[0] > -9:
                q[a] = x[a], a < A
            else:
                q[a] = 0.0 * x[a], a < A
            match A:
                case 1:
                    p[a] = x[a] * q[a], a < 1
                case _:
                    p[a] = x[a] * q[a], a < A
            total = total + sum(p[a])
    return total


@op
def prefixes_in_blocks(x, *, n):
    total = 0.0
    for A in range(1, n + 1):
        try:
            with contextlib.nullcontext():
                p[a] = x[a], a < A
        finally:
            q[a] = p[a], a < A
        for _ in ():
            pass
        r[a] = q[a] * x[a], a < A
        total = total + sum(r[a])
    return total


def test_a_target_that_each_round_writes_first_is_new_in_each_round():
    for part, size in zip(prefixes(X, sizes=(2, 4, 3)), (2, 4, 3), strict=True):
        np.testing.assert_allclose(part, X[:size] + 1)
    total = sum((X[:size] ** 2).sum() for size in range(1, 5))
    for function in (prefixes_by_arms, prefixes_in_one_arm, prefixes_in_blocks):
        np.testing.assert_allclose(function.interpret(X, n=4), total)
    for function in (prefixes_by_number, prefixes_by_while, prefixes_inside):
        np.testing.assert_allclose(function(X, n=4), total)
        np.testing.assert_allclose(function.interpret(X, n=4), total)
        np.testing.assert_allclose(function(tc.tensor(X), n=4).value, total)
        slope = 2 * X * np.array([4, 3, 2, 1, 0, 0])
        np.testing.assert_allclose(tc.grad(function)(X, n=4), slope)


def test_targets_that_go_on_in_an_unrolled_loop():
    @op
    def declared(x, *, n):
        p: real[6]
        for A in range(n):
            p[a] = x[a] + A, a == A
        return p

    @op
    def written_before(x, *, n):
        p[a] = x[a], a < 2
        for A in range(1, n + 1):
            p[a] = x[a] + A, a < A
        return p

    @op
    def read_first(x, *, n):
        for A in range(n):
            if A == 0:
                p[a] = x[a]
            else:
                p[a] = p[a] + 1
        return p

    @op
    def by_the_number(x, *, n):
        for k in range(n):
            p[k] = x[k]
        return p

    @op
    def not_in_each_round(x, *, n):
        for A in range(n):
            if A % 2 == 0:
                p[a] = x[a] + A
            total = sum(p[a])
        return total

    @tc.cd
    def memory(x, *, n):
        for A in range(1, n + 1):
            x[a] = x[a] + 1, a < A

    np.testing.assert_allclose(declared(X, n=3), [*(X[:3] + np.arange(3)), 0, 0, 0])
    np.testing.assert_allclose(written_before(X, n=4), X[:2] + 4)
    np.testing.assert_allclose(read_first(X, n=3), X + 2)
    np.testing.assert_allclose(not_in_each_round(X, n=4), (X + 2).sum())
    with pytest.raises(tc.ShapeError, match="has given p the extent 1"):
        by_the_number(X, n=2)
    y = X.copy()
    memory(y, n=3)
    np.testing.assert_allclose(y, X + np.array([3, 2, 1, 0, 0, 0]))
