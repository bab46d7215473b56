"""`a if c else b`, `and`, `or` and `not` as values, steps of ranges and bare reductions that only the call knows."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DslSyntaxError, ShapeError
from tests.language.running_programs import check, program

X = np.random.default_rng(13).random(6)


@op
def added(x: real[N], limit):
    s = 0.0
    for t in range(N):
        s += x[t] if x[t] > limit else 0.0
        s = s - (x[t] if t % 2 == 0 else 0.5 * x[t])
    return s


@op
def returned(x, c):
    return x * 2 if c > 0.5 else x + 1


@op
def beside(x, c):
    return (x * 2 if c > 0.5 else x + 1), tanh(x if c > 0.2 else -x), x[0 if c > 0.5 else 1]


@op
def in_statements(x: real[N], c):
    y[i] = x[i] if c > 0.5 else -x[i]
    y[i] += 1.0 if c > 0.5 else x[i]
    for t in range(N):
        y[t] = x[t] if x[t] > 0.5 else y[t]
    return y


@op
def one_side_only(x: real[N], k):
    return x[k] if k < N else 0.0


@cd
def scaled(w, c):
    w *= 2 if c > 0.5 else 3


def test_choices_stand_wherever_values_do() -> None:
    for limit in (0.0, 0.5, 2.0):
        kept = X[limit < X].sum()
        check(added, (X, np.array(limit)), kept - X[::2].sum() - 0.5 * X[1::2].sum())
    for c in (0.1, 0.3, 0.9):
        for given in (c, np.array(c)):
            large = 2 * X if c > 0.5 else X + 1
            check(returned, (X, given), large)
            check(beside, (X, given), (large, np.tanh(X if c > 0.2 else -X), X[0 if c > 0.5 else 1]))
            y = (X + 1) if c > 0.5 else 0 * X
            check(in_statements, (X, given), np.where(X > 0.5, X, y))
            check(scaled, (X, given), (X * (2 if c > 0.5 else 3),))
    assert one_side_only(X, np.array(2)) == X[2]
    assert one_side_only(X, np.array(99)) == 0


def test_choices_have_derivatives() -> None:
    tc.check_grads(lambda x: added(x, np.array(0.5)), (X,))
    for c in (0.1, 0.9):
        tc.check_grads(lambda x, c: (returned(x, c) ** 2).sum(), (X, np.array(c)))


@op
def any_above(x: real[N], limit):
    found = False
    for t in range(N):
        found = found or x[t] > limit
    return found


@op
def until(x: real[N], limit):
    below = True
    s = 0.0
    for t in range(N):
        below = below and x[t] <= limit
        done = not below
        if done:
            break
        s = s + x[t]
    return s


@op
def or_three(x, n):
    return x * (n or 3), n and n + 1


@op
def index_of(x: real[N], v):
    k = 0
    while k < N and x[k] < v:
        k = k + 1
    return k


def test_and_or_and_not_are_values() -> None:
    for limit in (0.1, 0.9, 2.0):
        check(any_above, (X, np.array(limit)), (limit < X).any())
        s = 0.0
        for value in X:
            if value > limit:
                break
            s += value
        check(until, (X, np.array(limit)), s)
        check(index_of, (np.sort(X), np.array(limit)), np.searchsorted(np.sort(X), limit))
    for n in (0, 2):
        for given in (n, np.array(n)):
            check(or_three, (X, given), (X * (n or 3), n and n + 1))


@op
def of_python(x, *, flag=False, names=("a",)):
    scale = (names and len(names)) or 7
    return x * scale if not flag else (x, None)[0]


def test_values_of_python_are_pythons() -> None:
    np.testing.assert_allclose(of_python(X), X)
    np.testing.assert_allclose(of_python(X, names=()), 7 * X)
    np.testing.assert_allclose(of_python(X, flag=True, names=()), X)


@op
def stepping(x: real[N], begin, end, step):
    s = 0.0
    for t in range(begin, end, step):
        s = 2 * s + (t + 1) * x[t]
    return s


@pytest.mark.parametrize("bounds", [(0, 6, 2), (0, 6, 4), (5, -1, -2), (1, 6, 9), (3, 1, 1), (1, 3, -1), (5, 1, -3)])
def test_the_call_says_the_step(bounds: tuple[int, int, int]) -> None:
    s = 0.0
    for t in range(*bounds):
        s = 2 * s + (t + 1) * X[t]
    check(stepping, (X, *bounds), s)
    check(stepping, (X, *map(np.array, bounds)), s)
    tc.check_grads(lambda x: stepping(x, *bounds), (X,))


def test_a_step_of_0_is_an_error_as_in_python() -> None:
    for step in (0, np.array(0)):
        with pytest.raises(ValueError, match="must not be zero"):
            stepping(X, 0, 6, step)


@op
def norms(x: real[N]):
    if sum(x[i]) > 1:
        return sum(x[i] * x[i]), sqrt(sum(x[i] * x[i]))
    return sum(x[i]), sqrt(max(x[i]))


def test_returned_reductions_are_tensors() -> None:
    check(norms, (X,), ((X**2).sum(), np.linalg.norm(X)))
    check(norms, (X / 10,), (X.sum() / 10, np.sqrt(X.max() / 10)))


@op
def guarded(x: real[N], c):
    s = 0.0
    for t in range(N):
        if t > 0 and c > 0.5:
            s = s + x[t - 1]
        if not (c < 0.1 or t + 2 >= N):
            s = s + 10 * x[t + 2]
        if t == 0 or c > 0.7:
            s = s + x[t]
        elif t > 1:
            s = s - x[t - 2]
    return s


@pytest.mark.parametrize("c", [0.05, 0.3, 0.6, 0.9])
def test_guards_of_sizes_hold_beside_data(c: float) -> None:
    s = 0.0
    for t in range(6):
        s += X[t - 1] if t > 0 and c > 0.5 else 0
        s += 10 * X[t + 2] if t + 2 < 6 and c >= 0.1 else 0
        s += X[t] if t == 0 or c > 0.7 else -X[t - 2] if t > 1 else 0
    check(guarded, (X, np.array(c)), s)


FAULTS: list[tuple[str, type[Exception], str, str]] = [
    ("return x if n > 2 else x[1:]", ShapeError, "changes its shape in an arm of a branch", "another name"),
    (
        "return x if x[0] > 2 else x[0]",
        ShapeError,
        "a choice of float64[N] or float64[]: only the call knows",
        "one kind",
    ),
    ("return x if x[0] > 2 else None", DslSyntaxError, "a choice of float64[N] or None: only the call", "one kind"),
    ("return x or n", ShapeError, "a condition of rank 1", "all(...)"),
    (
        "for t in range(0, N, 0):\n    x = x + 1\nreturn x",
        DslSyntaxError,
        "the step of a loop that runs is 0",
        "than 0",
    ),
]


@pytest.mark.parametrize(("body", "kind", "fact", "hint"), FAULTS, ids=[each[2][:40] for each in FAULTS])
def test_faults(body: str, kind: type[Exception], fact: str, hint: str) -> None:
    function: Any = program(body)
    with pytest.raises(kind, match=re.escape(fact)) as caught:
        function.interpret(X, np.array(3))
    assert hint in str(caught.value)


def test_choices_on_data_guard_what_stands_behind_them() -> None:
    @op
    def behind_or(x: int64[N], s, r):
        x[0] = 5 if (2 if s > r else x[1]) > 2 or x[3] > 3 else r
        return x

    @op
    def at_points(x: int64[N], s, r):
        y[i] = x[i] if (2 if s > r else 3) + i > 2 or x[i + 1] > 2 else r
        return y

    x = np.arange(1, 6)
    for s, r in ((0, 1), (1, 0)):
        found = behind_or, (x, np.array(s), np.array(r))
        check(*found, np.append(5, x[1:]))
        chosen = [(2 if s > r else 3) + k > 2 or x[k + 1] > 2 for k in range(4)]
        check(at_points, (x, np.array(s), np.array(r)), np.where(chosen, x[:4], r))
