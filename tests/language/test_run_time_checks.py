"""`assert` and `raise` that only the call decides: outside of loops, in rounds and in arms, and in derivatives."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.errors import RaisedError, TcdslError
from tests.language.running_programs import check

X = np.random.default_rng(17).random(6)


class DivergedError(ArithmeticError):
    """A class of the user's."""


@op
def roots(x: real[N]):
    s = 0.0
    for t in range(N):
        assert x[t] >= 0, f"negative: {x[t]:.3f} in round {t} of {N}"
        s = s + sqrt(x[t])
    return s


@op
def newton(a):
    x = a
    n = 0
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
        n = n + 1
        if n > 60:
            raise DivergedError("no root")
    return x


@op
def chosen(x, c, *, mode="a"):
    if c > 0.7:
        y = x
    elif c > 0.3:
        y = 2 * x
    else:
        raise ValueError(f"c is {c}")
    if mode == "a":
        z = y
    elif mode == "b":
        z = 2 * y
    else:
        raise KeyError(mode)
    return z


@op
def of_sizes(x: real[N], n):
    if N > 4:
        if n < 2:
            raise ValueError("small n")
        assert N % 2 == 0, "odd"
    for t in range(N):
        if t > 4 and n > 5:
            raise IndexError("far")
    return x


@op
def total(x):
    assert sum(x[i]) < 5
    return x.sum()


@op
def calls_it(x):
    total(x)
    return total(x) if x[0] > 0 else 0.0


@cd
def grow(w, n):
    for t in range(n):  # noqa: B007  # the name is shown
        w *= 2
        if w[0] > 10:
            raise OverflowError("too large")


def refused(function: Any, *arguments: Any, **options: Any) -> TcdslError:
    with pytest.raises(TcdslError) as compiled:
        function(*arguments, **options)
    return compiled.value


def test_what_holds_changes_nothing() -> None:
    check(roots, (X,), np.sqrt(X).sum())
    check(newton, (np.array(2.0),), 2**0.5)
    check(chosen, (X, np.array(0.9)), X)
    check(chosen, (X, np.array(0.4)), 2 * X)
    check(of_sizes, (X, 3), X)
    check(total, (X,), X.sum())
    check(calls_it, (X,), X.sum())
    check(grow, (X, 2), (4 * X,))


FAULTS = [
    (roots, (-X,), AssertionError, "negative: {x[t]} in round {t} of {N}", "at t = 0"),
    (roots, (np.array([1.0, -1]),), AssertionError, "negative", "at t = 1"),
    (newton, (np.array(-2.0),), ArithmeticError, "DivergedError: no root", "at round = 60"),
    (chosen, (X, np.array(0.1)), ValueError, "c is {c}", 'raise ValueError(f"c is {c}")'),
    (chosen, (X, 0.1), ValueError, "c is {c}", ""),
    (of_sizes, (X, 1), ValueError, "small n", ""),
    (of_sizes, (X[:5], 3), AssertionError, "odd", "assert N % 2 == 0"),
    (of_sizes, (X, 9), IndexError, "far", "at t = 5"),
    (total, (10 * X,), AssertionError, "an assertion does not hold", "assert sum(x[i]) < 5"),
    (calls_it, (10 * X,), AssertionError, "an assertion does not hold", ""),
    (grow, (X, 9), OverflowError, "too large", "at t = "),
]


@pytest.mark.parametrize(("function", "arguments", "kind", "fact", "note"), FAULTS)
def test_what_does_not_hold_is_raised(
    function: Any, arguments: tuple[Any, ...], kind: type[Exception], fact: str, note: str
) -> None:
    for run in (function, function.interpret):
        given = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        error = refused(run, *given)
        assert isinstance(error, kind)
        assert isinstance(error, RaisedError)
        assert fact in str(error)
        assert note in str(error)
        assert "branch_round" not in str(error)
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), str(copied)) == (type(error), str(error))
        for one, other in zip(given, arguments, strict=True):
            np.testing.assert_array_equal(one, other)  # a call that fails changes no argument


def test_what_python_decides_is_raised_by_python() -> None:
    with pytest.raises(KeyError, match="'q'"):
        chosen(X, np.array(0.9), mode="q")
    with pytest.raises(AssertionError, match=r"^configuration$"):
        _configured(X, flag=False)


@op
def _configured(x, *, flag=True):
    assert flag, "configuration"
    return x


def test_derivatives_of_all_orders_check_too() -> None:
    tc.check_grads(roots, (X + 0.1,), order=2)
    derivatives = [
        tc.grad(roots),
        tc.value_and_grad(roots),
        lambda x: tc.jvp(roots, (x,), (x,)),
        lambda x: tc.hvp(roots, (x,), (x,)),
        op(_slope),
    ]
    for derivative in derivatives:
        derivative(X)
        assert "negative" in str(refused(derivative, -X))


def _slope(x):
    return tc.grad(roots)(x)


def test_code_on_tensors_checks_too() -> None:
    @cd
    def halve(w):
        assert sum(w[i]) < 5, "too much"
        w *= 0.5

    for factor, holds in ((1, True), (10, False)):
        w = tc.tensor(factor * X)
        step = tc.compile(halve(w))
        if holds:
            step.run()
            np.testing.assert_allclose(w.value, 0.5 * X)
        else:
            with pytest.raises(AssertionError, match=re.escape("too much")):
                step.run()
