"""``check="nan"`` names the statement that made a NaN, and leaves arguments as they were."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.runtime.calling import nan_origins


@pytest.fixture(autouse=True)
def check() -> Iterator[None]:
    with tc.config(check="nan"):
        yield


HINT = "no operand holds NaN: look for 0 / 0, inf - inf or a function out of its domain"


@tc.op
def weighted(x, w):
    logarithms[i] = log(x[i])
    products[i] = logarithms[i] * w[i]
    total[()] += products[i] + 1
    return total


@tc.cd
def divide(p, q):
    r[i] = p[i] / q[i]
    p[i] = r[i] + 1


def fault(function: object, *arguments: object) -> str:
    with pytest.raises(tc.NanError) as caught:
        function(*arguments)  # type: ignore[operator]
    assert isinstance(caught.value, FloatingPointError)
    assert not isinstance(caught.value, tc.ShapeError)
    return str(caught.value)


def test_an_intermediate_tensor() -> None:
    x = np.array([1.0, -1.0, 2.0])
    assert fault(weighted, x, np.ones(3)).split(":", 2)[2].splitlines() == [
        " `logarithms` holds NaN at (1,)",
        "    logarithms[i] = log(x[i])",
        "    ^^^^^^^^^^^^^^^^^^^^^^^^^",
        "    where `x[i]` is -1",
        "    `total` holds NaN at (), which is computed from it",
        f"{HINT}; or leave `nan` out of tc.config(check=...) to accept it",
    ]
    assert weighted(np.ones(3), np.ones(3)) == 3


def test_an_argument() -> None:
    message = fault(weighted, np.ones(3), np.array([1.0, 2.0, np.nan]))
    assert "`products` holds NaN at (2,)\n    products[i] = logarithms[i] * w[i]\n" in message
    assert "    `w` holds NaN at (2,) already, where the statement reads it\n" in message


def test_arguments_that_change_are_as_they_were() -> None:
    p = np.array([1.0, 0.0])
    message = fault(divide, p, np.array([1.0, 0.0]))
    assert "`r` holds NaN at (1,)\n    r[i] = p[i] / q[i]\n" in message
    np.testing.assert_array_equal(p, [1.0, 0.0])


def test_derivatives_and_graphs() -> None:
    pull = tc.vjp(lambda x: 2 * np.sqrt(x), np.zeros(2))[1]
    assert "np.sqrt(x)" in fault(pull, np.zeros(2))
    v = tc.param("v", init=[1.0, -1.0])
    message = fault(lambda: (np.log(v) * 2).sum().value)
    assert "`log` holds NaN at (1,)" in message
    assert "made by log[i] = log(v[i])" in message


@tc.cd
def descend(p, *, rate):
    p -= rate * p.grad


def test_a_step_that_is_run_again_and_again() -> None:
    v = tc.param("v", init=[1.0, 0.25])
    step = tc.compile(tc.train.grad_update((np.sqrt(v) * 2).sum()), descend(v, rate=0.5))
    before = np.array(v.value)
    assert "`sqrt` holds NaN" in fault(lambda: [step.run() for _ in range(3)])
    assert not np.isnan(v.value).any()
    assert not np.array_equal(v.value, before)


def test_what_is_never_stored_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nan_origins, "_ALWAYS_STORED", 0)

    @tc.op
    def quotients(x):
        (N,) = x.shape
        d: real[N, N]
        d[i, j] = x[i] * (i == j)
        y[i] += d[i, j] / x[j]
        return y

    assert "`y` holds NaN at (0,)\n    y[i] += d[i, j] / x[j]\n" in fault(quotients, np.zeros(3))


def test_the_interpreter_says_the_same() -> None:
    p, q = np.array([1.0, -2.0]), np.array([1.0, 1.0])
    message = fault(weighted.interpret, p, q)
    assert message == fault(weighted, p, q)
    assert "`logarithms` holds NaN at (1,)" in message
    assert "`total` holds NaN at (), which is computed from it" in message

    @tc.cd
    def logarithm(x):
        x[i] = log(x[i])

    assert "`x` holds NaN at (1,)\n    x[i] = log(x[i])\n" in fault(logarithm.interpret, p)
    np.testing.assert_array_equal(logarithm.interpret(q)[0], [0.0, 0.0])
    roots = tc.grad(lambda x: (np.sqrt(x) * x).sum())
    assert "holds NaN at (1,)" in fault(roots.interpret, p)
    np.testing.assert_allclose(roots.interpret(q), [1.5, 1.5])


@tc.op
def sums_of_roots(x, y, n):
    s = 0.0
    for t in range(n):
        for k in range(t):
            if y[k] > 0:
                h = sqrt(x[k] - t)
                s = s + h
    return 2 * s


@tc.op
def delayed(x, n):
    a = x
    b = x
    for t in range(n):
        c = b
        b = a - 2 * sqrt(2 - t)
        a = c
    return a


@tc.op
def norms(x, n):
    for t in range(n):
        x[i] = log(sum(x[j] * x[i] for j in range(2)) - 2 * t)
    return x


def lines(message: str) -> list[str]:
    return [line.strip() for line in message.split(":", 2)[2].splitlines()][:-1]


@pytest.mark.parametrize("method", [lambda f: f, lambda f: f.interpret], ids=["compiled", "interpreted"])
def test_a_statement_in_rounds_of_loops_and_in_arms(method: Callable[[object], object]) -> None:
    x, y = np.array([7.0, 2.5, 9.0, 9.0]), np.array([1.0, 1.0, 0.0, 1.0])
    assert lines(fault(method(sums_of_roots), x, y, 5)) == [
        "`h` holds NaN at ()",
        "h = sqrt(x[k] - t)",
        "^^^^^^^^^^^^^^^^^^",
        "at t = 3, k = 1",
        "where `x[k]` is 2.5",
        "`sums_of_roots` holds NaN at (), which is computed from it",
    ]
    # What a round has from the round before is traced back to where it begins.
    assert lines(fault(method(delayed), np.ones(2), 9)) == [
        "`b` holds NaN at (0,)",
        "b = a - 2 * sqrt(2 - t)",
        "^^^^^^^^^^^^^^^^^^^^^^^",
        "at t = 3",
        "where `a[i]` is -1",
        "`a` holds NaN at (0,), which is computed from it",
    ]
    message = fault(method(norms), np.array([1.0, 2.0]), 4)
    assert "x[i] = log(sum(x[j] * x[i] for j in range(2)) - 2 * t)" in message
    assert "at t = 2\n" in message


def test_what_a_loop_is_given_and_what_comes_after_it() -> None:
    @tc.op
    def before(x, n):
        y = log(x)
        s = 0.0
        for t in range(n):
            s = s + y[t]
        return s

    @tc.op
    def after(x, n):
        s = 0.0
        for t in range(n):
            s = s + x[t]
        r = sqrt(s)
        return 2 * r

    x = np.array([1.0, -3.0, 1.0])
    assert lines(fault(before, x, 3))[:4] == ["`y` holds NaN at (1,)", "y = log(x)", "^^^^^^^^^^", "where `x[i]` is -3"]
    assert lines(fault(after, x, 3))[1:4] == ["r = sqrt(s)", "^^^^^^^^^^^", "where `s` is -1"]
    nan = np.array([1.0, np.nan, 1.0])
    assert lines(fault(after, nan, 3)) == [
        "`s` holds NaN at ()",
        "s = s + x[t]",
        "^^^^^^^^^^^^",
        "at t = 1",
        "`x` holds NaN at (1,) already, where the statement reads it",
        "`after` holds NaN at (), which is computed from it",
    ]


def test_the_term_of_a_sum() -> None:
    @tc.op
    def total(A):
        y[i] += sqrt(A[i, j])
        return y

    A = np.ones((2, 3))
    A[1, 2] = -1
    assert lines(fault(total, A))[3:] == ["at j = 2", "where `A[i, j]` is -1"]


def test_the_statement_of_code_and_of_derivatives_in_loops() -> None:
    @tc.cd
    def shrink(u, n):
        for t in range(n):
            u[i] = sqrt(u[i]) - 0.6 * t

    u = np.array([0.5, 4.0])
    assert lines(fault(shrink, u, 9))[3:5] == ["at t = 3", "where `u[i]` is -0.709188"]
    np.testing.assert_array_equal(u, [0.5, 4.0])

    @tc.op
    def product(x, n):
        s = 1.0
        for t in range(n):
            s = s * sqrt(x[t])
        return s

    found = fault(tc.grad(product), np.array([1.0, 0.0, 0.0, 4.0]), 4)
    assert "s = s * sqrt(x[t])" in found
    assert "at t = " in found


@tc.op
def root_of_a_difference(x):
    d = x - 3.0
    return np.sqrt(d), d


@tc.op
def root_of_what_a_loop_sums(x):
    s = 0.0
    for t in range(len(x)):
        s = s + x[t] - 3
    return -np.sqrt(s)


@pytest.mark.parametrize(
    ("function", "line"), [(root_of_a_difference, "np.sqrt(d)"), (root_of_what_a_loop_sums, "np.sqrt(s)")]
)
def test_what_is_returned_without_a_name_is_shown_where_it_is_computed(function: object, line: str) -> None:
    text = fault(function, np.array([4.0, 1.0]))
    assert "holds NaN at" in text
    shown, marked = text.splitlines()[1:3]
    assert shown[marked.index("^") : marked.rindex("^") + 1].endswith(line)
