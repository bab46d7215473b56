"""A target to which only whole numbers of Python have been written takes the type of the first floating value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import changed, refusal

x = np.array([1.0, 2.0, 4.0, 8.0])
PROGRAMS: dict[str, tuple[Callable[[], Any], list[float]]] = {}


def giving(*wanted: float) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    def kept(function: Callable[[], Any]) -> Callable[[], Any]:
        PROGRAMS[function.__name__] = function, list(wanted)
        return function

    return kept


@giving(0, 2, 4, 8)
def one_cell_of_a_declared_target() -> Any:
    @op
    def f(x):
        s = output(x.shape[0])
        s[0] = 0
        s[i] = x[i], i > 0
        return s

    return f


@giving(0, 2, 4, 8)
def a_filled_declared_target() -> Any:
    @op
    def f(x):
        s = output(x.shape[0])
        s[...] = 0
        s[i] = x[i], i > 0
        return s

    return f


@giving(3, 4, 6, 10)
def several_statements_on_a_fresh_target() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s[i] = 1, i < N
        s[i] += 1
        s[i] += x[i]
        return s

    return f


@giving(2, 2, 4, 8)
def parts() -> Any:
    @op
    def f(x):
        s = output(x.shape[0])
        s[:1] = 2
        s[1:] += x[1:]
        return s

    return f


@giving(0, 4, 6, 10)
def what_was_read_before() -> Any:
    @op
    def f(x):
        s = output(x.shape[0])
        s[i] = 1, i > 0
        before = s * 2
        s[i] = s[i] * x[i] + before[i]
        return s

    return f


@giving(3, 3, 4, 8)
def neutral_elements() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s = output(N + 1)
        s[i] >>= 3, i < N
        s[i] >>= x[i], i < N
        assert str(s.dtype) == str(x.dtype)
        s[i] = s[i], i < N
        y[i] = s[i], i < N
        return y

    return f


@giving(0.5, 1, 2, 4)
def quotients() -> Any:
    @op
    def f(x):
        (N,) = x.shape
        s[i] = 1, i < N
        s[i] /= 2
        s[i] *= x[i]
        return s

    return f


@giving(0, 2, 4, 8)
def logics() -> Any:
    @op
    def f(x):
        s = output(x.shape[0])
        s[...] = 0
        s["i=>i"] += x
        s[0] = 0
        return s

    return f


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_first_floating_value_gives_the_type(name: str, dtype: Any) -> None:
    function, wanted = PROGRAMS[name]
    found = function().interpret(x.astype(dtype))
    np.testing.assert_array_equal(found, wanted)
    if name not in ("quotients", "what_was_read_before"):
        assert found.dtype == dtype


def test_compiled_code_and_gradients() -> None:
    @op
    def f(x):
        t[()] = 0
        t[()] += x[i] * x[i]
        s = output(x.shape[0])
        s[0] = 0
        s[i] = x[i] * t, i > 0
        return s

    wanted = x * (x @ x)
    wanted[0] = 0
    np.testing.assert_allclose(f(x), wanted)
    _, pullback = tc.vjp(f, x)
    seed = np.array([1.0, 10, 100, 1000])
    tail = seed * (np.arange(4) > 0)
    np.testing.assert_allclose(pullback(seed)[0], tail * (x @ x) + 2 * x * (tail @ x))


def test_memory_and_its_views() -> None:
    def half(part):
        part[:] = 0.5

    @cd
    def f(y, x):
        s = output(x.shape[0])
        s[...] = 1
        w = s[1:]
        w[i] += 1
        w[i] += x[i + 1]
        u = output(2)
        u[0] = 1
        half(u[1:])
        y[i] = s[i] + u[1]

    np.testing.assert_array_equal(changed(f, np.zeros(4), x)[0], [1.5, 4.5, 6.5, 10.5])


def test_whole_numbers_alone_and_typed_integers_stay_integers() -> None:
    @op
    def f(n):
        s = output(4)
        s[0] = 0
        s[i] = n[i], i > 0
        t[i] = i, i < 3
        t[i] += 2
        return s, t

    s, t = f.interpret(np.array([5, 6, 7, 8], np.int8))
    assert (s.dtype, t.dtype) == (np.int64, np.int64)
    np.testing.assert_array_equal(s, [0, 6, 7, 8])
    np.testing.assert_array_equal(t, [2, 3, 4])


def test_what_was_left_unwritten_stays_so() -> None:
    @op
    def f(x):
        s = output(x.shape[0])
        s[0] = 0
        s[1:] = s[:-1] + x[1:]
        return s

    assert "nothing has written before" in refusal(tc.ShapeError, f, x)


def test_the_advice_of_the_error_for_other_types_works() -> None:
    @op
    def f(x, n):
        s[i] = n[i]
        s[i] += x[i]
        return s

    message = refusal(tc.DtypeError, f, x, np.arange(4))
    assert "a tensor of int64 cannot hold float64 values" in message
    assert 'or declare the target with a type, as in `s = output(N, dtype="float64")`' in message

    @op
    def advised(x, n):
        (N,) = x.shape
        s = output(N, dtype="float64")
        s[i] = n[i]
        s[i] += x[i]
        return s

    np.testing.assert_array_equal(advised.interpret(x, np.arange(4)), x + np.arange(4))

    @op
    def of_a_part(x, n):
        s = output(x.shape[0])
        s[:2] = n[:2]
        s[2:] = x[2:]
        return s

    assert 'as in `s = output(N, dtype="float64")`' in refusal(tc.DtypeError, of_a_part, x, np.arange(4))

    @op
    def given(n, x):
        n[i] += x[i]
        return n

    assert "declare" not in refusal(tc.DtypeError, given, np.arange(4), x)
