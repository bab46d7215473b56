"""``check="nan"`` names the statement that made a NaN, and leaves arguments as they were."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.runtime.calling import nan_search


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
    monkeypatch.setattr(nan_search, "_ALWAYS_STORED", 0)

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
