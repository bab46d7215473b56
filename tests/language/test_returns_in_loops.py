"""`return` in loops that run and in their branches: Python says what comes out."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tests.language.running_programs import check, program

GENERATOR = np.random.default_rng(11)
X, A = GENERATOR.random(6), GENERATOR.random((3, 4))


@op
def first_above(x: real[N], limit):
    for t in range(N):
        if x[t] > limit:
            return t
    return -1


@pytest.mark.parametrize("limit", [0.0, 0.5, 0.8, 2.0])
def test_a_search_returns_where_it_finds(limit: float) -> None:
    found = np.flatnonzero(limit < X)
    check(first_above, (X, np.array(limit)), found[0] if len(found) else -1)
    check(first_above, (X, limit), found[0] if len(found) else -1)


@op
def newton(a):
    x = a
    for k in tc.loop(50):
        new = 0.5 * (x + a / x)
        if abs(new - x) < 1e-12:
            return new, k
        x = new
    return x, 50


@op
def cell_above(A: real[N, M], limit):
    for i in range(N):
        for j in range(M):
            if A[i, j] > limit:
                return i * M + j
    return -1


@op
def bits(n):
    k = 0
    while True:
        if n == 1:
            return k
        n = n // 2
        k = k + 1


@op
def two_loops(x: real[N], limit):
    for t in range(N):
        if x[t] > 2 * limit:
            return x * t
    for t in range(N):
        x = x * 2
        if x[t] > limit:
            if t > 2:
                return x * t
            x = x - 1
        x = x * 1.5
    return x


def two_loops_of_numpy(x: Any, limit: float) -> Any:
    for t in range(len(x)):
        if x[t] > 2 * limit:
            return x * t
    for t in range(len(x)):
        x = x * 2
        if x[t] > limit:
            if t > 2:
                return x * t
            x = x - 1
        x = x * 1.5
    return x


@op
def in_the_first_round(x: real[N]):
    for t in range(N):
        return x * (t + 1)
    return 0 * x


@cd
def grow(w, n):
    for _ in range(n):
        w *= 2
        if w[0] > 10:
            return
        w += 1


def grown(w: Any, n: int) -> Any:
    w = w.copy()
    for _ in range(n):
        w *= 2
        if w[0] > 10:
            break
        w += 1
    return w


def test_returns_leave_all_loops_around_them() -> None:
    check(newton, (np.array(2.0),), (2**0.5, 5))
    for limit in (0.0, 0.7, 0.95, 2.0):
        found = np.flatnonzero(limit < A)
        check(cell_above, (A, np.array(limit)), found[0] if len(found) else -1)
    check(bits, (np.array(37),), 5)
    for limit in (0.1, 1.8, 1000.0):
        check(two_loops, (X, np.array(limit)), two_loops_of_numpy(X, limit))
    check(in_the_first_round, (X,), X)
    check(in_the_first_round, (X[:0],), X[:0])
    for n in (0, 2, 9):
        check(grow, (X, n), (grown(X, n),))


def squares(limit: Any, x: Any) -> Any:
    return (two_loops(x, limit) ** 2).sum()


def test_what_returns_in_a_loop_has_derivatives() -> None:
    for limit in (0.1, 1.8, 1000.0):
        tc.check_grads(partial(squares, np.array(limit)), (X,))
    assert np.isclose(tc.grad(lambda a: newton(a)[0])(np.array(2.0)), 0.5 / 2**0.5)


@op
def of_python(x, *, factors=(1, 2, 3), last=2):
    for factor in factors:
        x = x * factor
        if factor == last:
            return x, {"last": factor}
    return x, None


def test_returns_in_loops_of_python_are_pythons() -> None:
    np.testing.assert_allclose(of_python(X)[0], 2 * X)
    assert of_python(X)[1] == {"last": 2}
    assert of_python(X, last=7)[1] is None


@op
def arms_that_go_on(x: real[N], limit):
    s = 0.0
    if sum(x) > limit:
        if x[0] > limit:
            return s
        s = s + 1
    for t in range(N):
        if x[t] > limit:
            if t % 2 == 0:
                continue
            s = s + 10
            if s > 25:
                break
            s = s + 0.5
        s = s + x[t]
    return s


def arms_of_numpy(x: Any, limit: float) -> float:
    s = 0.0
    if x.sum() > limit:
        if x[0] > limit:
            return s
        s = s + 1
    for t in range(len(x)):
        if x[t] > limit:
            if t % 2 == 0:
                continue
            s = s + 10
            if s > 25:
                break
            s = s + 0.5
        s = s + x[t]
    return s


@pytest.mark.parametrize("limit", [0.0, 0.02, 0.3, 0.6, 9.0])
def test_arms_that_may_jump_may_go_on(limit: float) -> None:
    for x in (X, X[::-1].copy(), X[1:]):
        check(arms_that_go_on, (x, np.array(limit)), arms_of_numpy(x, limit))


# -- what rounds carry


@op
def stepped(x: real[T, D], h: real[D]):
    state = (h, {"rounds": 0})
    for t in range(T):
        if x[t, 0] > 0.9:
            return state[0], state[1]["rounds"]
        state = (tanh(state[0] + x[t]), {"rounds": state[1]["rounds"] + 1})
    return state[0], state[1]["rounds"]


@op
def either(x, c):
    if c > 0.5:  # noqa: SIM108  # a branch of its own
        pair = x, 2 * x
    else:
        pair = 2 * x, x
    return pair[0] - pair[1]


def test_tuples_and_dicts_are_carried_part_by_part() -> None:
    for x in (A, A / 2, A.T / 2):
        h, rounds = x[0], 0
        for row in x:
            if row[0] > 0.9:
                break
            h, rounds = np.tanh(h + row), rounds + 1
        check(stepped, (x, x[0].copy()), (h, rounds))
    check(either, (X, np.array(0.7)), -X)
    check(either, (X, np.array(0.2)), X)


@op
def of_parts(x: real[N], c):
    state = {"sum": x, "rounds": 0}
    pair = [x[0], 1.0]
    for t in range(N):
        kept = []
        for k in range(2):
            kept.append(x[t] + k)  # noqa: PERF401  # a list of this round
        state["sum"] = state["sum"] + kept[0] * kept[1]
        pair[1] += kept.pop()
        if x[t] > c:
            state["rounds"] += 1
    return state, pair


@op
def of_deleted_names(x: real[N], pairs):
    first, last = pairs
    total, held = first, x
    for t, (a, b) in enumerate(pairs):
        weights = [2.0, a]
        del weights[0]
        if b[0] > 0.5:
            scaled = weights[0] * b
            total = total + scaled
            del scaled
        del weights, t
    del held
    return total * last


def test_names_of_a_round_are_deleted_and_parts_of_tensors_unpacked() -> None:
    x = GENERATOR.random(3)
    pairs = GENERATOR.random((2, 2, 3))
    total = pairs[0]
    for a, b in pairs:
        total = total + (a * b if b[0] > 0.5 else 0)
    check(of_deleted_names, (x, pairs), total * pairs[1])


@op
def of_inner_functions(x: real[N]):
    total = x

    def add(t):
        nonlocal total
        total = total + t

    for t in range(N):
        add(x[t])
    return total


@op
def of_numbers(x: real[N], c):
    last, step = 0.5, 1
    for t in range(N):
        last = t
    if c > 0.5:
        scale = 1
    else:
        scale = 2.5
        step = 0.5
    return last * x, scale * x, step * x


def test_what_python_changes_in_place_is_carried() -> None:
    added = X + (X * (X + 1)).sum()
    for c in (0.2, 0.6):
        expected = {"sum": added, "rounds": (c < X).sum()}, [X[0], 1 + (X + 1).sum()]
        for run in (of_parts, of_parts.interpret):
            (state, pair), (wanted, numbers) = run(X, np.array(c)), expected
            np.testing.assert_allclose(state["sum"], wanted["sum"])
            assert state["rounds"] == wanted["rounds"]
            np.testing.assert_allclose(pair, numbers)
        check(of_numbers, (X, np.array(c)), (5 * X, X if c > 0.5 else 2.5 * X, X if c > 0.5 else 0.5 * X))
    check(of_inner_functions, (X,), X + X.sum())


# -- errors

SEARCH = "for t in range(N):\n    if x[t] > 0.5:\n        return {}\n"
FAULTS: list[tuple[str, type[Exception], str, str]] = [
    (SEARCH.format("t"), DslSyntaxError, "a number (int) at one `return`, and None at another", "after the loop"),
    (
        SEARCH.format("x") + "return x[0]",
        ShapeError,
        "float64[N] at one `return`, and float64[] at another",
        "same kind",
    ),
    (SEARCH.format("x[0] > 1") + "return x[0]", DtypeError, "returns bool[] at one `return`, and float64[]", "same"),
    (SEARCH.format("x, t") + "return x", DslSyntaxError, "a tuple at one `return`, and float64[N] at", "same kind"),
    (SEARCH.format("x[:t]") + "return x", DslSyntaxError, "in which `t` is a size, is used outside", "ys[t, ...] = h"),
    (
        "best = None\nfor t in range(N):\n    best = x[t]\nreturn best",
        DslSyntaxError,
        "`best` holds None, then",
        "bind",
    ),
    ("y = x\nif x[0] > 9:\n    y = None\nreturn y", DslSyntaxError, "in an arm of a branch that runs", ""),
    ("y = x\nif x[0] > 9:\n    y = x[0]\nreturn y", ShapeError, "before a branch that runs", "all arms"),
    ("ys = [x]\nfor t in range(N):\n    ys = ys + [x]\nreturn ys[0]", DslSyntaxError, "`ys` holds a list, which", ""),
    ("s = x, 0\nfor t in range(N):\n    s = x, t, t\nreturn s[0]", DslSyntaxError, "`s` holds a tuple, which", ""),
]


@pytest.mark.parametrize(("body", "kind", "fact", "hint"), FAULTS, ids=[each[2][:40] for each in FAULTS])
def test_faults(body: str, kind: type[Exception], fact: str, hint: str) -> None:
    with pytest.raises(kind, match=re.escape(fact)) as caught:
        program(body).interpret(X, 3)
    assert hint in str(caught.value)


@op
def of_named_conditions(x: real[N], limit, n):
    s = 0 * limit
    while (x := x / 2).sum() > limit and n < 9:
        if (m := max(x[i])) > 1:
            s = s + m
        elif not sqrt(m := m * 2) > 1.2:
            continue
        s = s + 1
    while (n := n - 1) > 3:
        s = s + n
    k = 0
    while k < N and n < 4 and (v := x[k]) > -9 and (w := v * v) < 9:
        if s > 0 and (m := w + v) > 0:
            s = s + m
        k += 1
    return x, s


def named_conditions_of_numpy(x: Any, limit: float, n: int) -> Any:
    s = 0.0
    while (x := x / 2).sum() > limit and n < 9:
        if (m := np.max(x)) > 1:
            s = s + m
        elif not np.sqrt(m := m * 2) > 1.2:
            continue
        s = s + 1
    while (n := n - 1) > 3:
        s = s + n
    k = 0
    while k < len(x) and n < 4 and (v := x[k]) > -9 and (w := v * v) < 9:
        if s > 0 and (m := w + v) > 0:
            s = s + m
        k += 1
    return x, s


def test_conditions_that_name_a_value() -> None:
    x = 9 * X
    check(of_named_conditions, (x, np.array(1.0), 6), named_conditions_of_numpy(x, 1.0, 6))
    assert of_named_conditions(x, np.array(1.0), 6)[1] == named_conditions_of_numpy(x, 1.0, 6)[1]


# The compiler of Python makes one object of a tuple of constants: each pass over an arm binds the same one.


@op
def of_constants(x):
    if x < 3:
        return 1.0, 2.0
    if x < 4:
        return x, 4.0
    return 5.0, 6.0


@op
def bound_to_constants(x):
    if x < 3:
        pair, above = (1.0, 2.0), 0
    else:
        pair, above = (x, 4.0), 1
    return pair[0] - pair[1] + above


@op
def carried_constants(x: real[N]):
    pair = (1.0, 2.0)
    for t in range(N):
        pair = (pair[1], x[t]) if x[t] > 0.5 else (1.0, 2.0)
    return pair


def test_tuples_of_constants_are_what_an_arm_gives() -> None:
    for x in (0.0, 3.5, 5.0):
        wanted = (1.0, 2.0) if x < 3 else (x, 4.0) if x < 4 else (5.0, 6.0)
        check(of_constants, (np.float64(x),), wanted)
        check(bound_to_constants, (np.float64(x),), -1.0 if x < 3 else x - 3)
    check(carried_constants, (np.array([0.7, 0.1, 0.8]),), (2.0, 0.8))
    check(carried_constants, (np.array([0.7, 0.8, 0.1]),), (1.0, 2.0))
