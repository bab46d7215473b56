"""Arrays of sizes that NumPy's functions fill: what they are in NumPy they are in decorated functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, refusal


def constants(x: Any, n: Any) -> Any:
    return (
        np.zeros(n),
        np.zeros((n + 1, len(x)), dtype=int),
        np.ones(x.shape, x.dtype),
        np.full(len(x), 3),
        np.full((n, len(x)), x),
        np.full(n, x[0] > 1, dtype=np.float32),
    )


def likes(x: Any, n: Any) -> Any:
    return (
        np.zeros_like(x),
        np.ones_like(x, dtype=bool),
        np.full_like(x[: len(x) - 1], 2.5),
        np.zeros_like(x, shape=(n, 2)),
        np.ones_like(x > n),
    )


def counted(x: Any, n: Any) -> Any:
    return (
        np.arange(n),
        np.arange(n - 2) * 2,
        np.arange(2, len(x), 3),
        np.arange(len(x), -n, -2, dtype="int32"),
        np.linspace(x[0], 2, n),
        np.linspace(-1, len(x), len(x), dtype=np.float32),
        np.eye(n),
        np.eye(len(x), n, k=1),
        np.identity(n, dtype=bool),
    )


@pytest.mark.parametrize("function", [constants, likes, counted])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_they_are_those_of_numpy(function: Any, dtype: str) -> None:
    f = op(function)
    for extent, n in ((1, 0), (2, 1), (5, 2), (3, 7)):
        x = np.linspace(0.5, 2.0, 2 * extent, dtype=dtype)[::2]
        wanted = function(x, n)
        assert_gives(f, x, n, wanted=wanted)
        for found, each in zip(f(x, n), wanted, strict=True):
            assert found.dtype == each.dtype


def products(x: Any) -> Any:
    y = np.empty(len(x))
    y[0] = x[0]
    for t in range(1, len(x)):
        y[t] = y[t - 1] * x[t]
    return y


def test_rounds_write_them() -> None:
    x = np.array([0.5, -2.0, 3.0, 0.25])
    assert_gives(op(products), x, wanted=np.cumprod(x))
    tc.check_grads(op(products), (x,))
    np.testing.assert_array_equal(np.asarray(op(products)(tc.tensor(x))), np.cumprod(x))


@cd
def doubled(x):
    t, u = np.zeros_like(x), np.ones(len(x))
    for k in range(len(x)):
        t[k] = 2 * x[k]
    u += t
    x[i] = u[i]


def test_code_writes_them() -> None:
    np.testing.assert_array_equal(changed(doubled, np.arange(4.0))[0], [1, 3, 5, 7])


@op
def in_another_order(x):
    return np.zeros_like(x, order="F")


@op
def of_another_type(x):
    return np.zeros_like(x, dtype="complex128")


@op
def filled_with_more(x):
    return np.full_like(x, np.ones((2, 2)))


def test_what_they_do_not_take_is_refused() -> None:
    assert "unexpected keyword argument 'order'" in refusal(tc.DslSyntaxError, in_another_order, np.ones(3))
    assert "complex128 is no element type of the language" in refusal(tc.DtypeError, of_another_type, np.ones(3))
    fact = refusal(tc.ShapeError, filled_with_more, np.ones(3))
    assert "what fills an array of shape (x_0) has shape (2, 2)" in fact


@op
def of_halves(x):
    return np.zeros(0.5 * len(x))


@op
def by_halves(x):
    return np.arange(0.5, len(x))


@op
def nowhere(x):
    return np.arange(0, len(x), 0)


def test_extents_and_steps_are_integers() -> None:
    assert "an extent that is a float" in refusal(tc.DtypeError, of_halves, np.ones(3))
    assert "`np.arange` of sizes takes integers" in refusal(tc.DslSyntaxError, by_halves, np.ones(3))
    assert "give an integer other than 0" in refusal(tc.DslSyntaxError, nowhere, np.ones(3))


@op
def sorted_copy(x):
    y = x.copy()
    for a in range(len(x)):
        for b in range(len(x) - a - 1):
            if y[b] > y[b + 1]:
                y[b], y[b + 1] = y[b + 1], y[b]
    return y


def test_rounds_write_copies() -> None:
    x = np.array([3.0, -1.0, 2.0, 0.5])
    assert_gives(sorted_copy, x, wanted=np.sort(x))
    np.testing.assert_array_equal(np.asarray(sorted_copy(tc.tensor(x))), np.sort(x))
    tc.check_grads(sorted_copy, (x,))


def test_arrays_of_a_number_of_cells_have_constant_extents() -> None:
    @op
    def counted(x):
        counts = np.zeros(256, np.int64)
        for t in range(x.shape[0]):
            counts[x[t]] += 1
        return counts

    x = np.random.default_rng(0).integers(0, 256, 50).astype(np.uint8)
    assert "counts: int64[256]" in counted.explain("loops", x)
    for given in (x, x[:0]):
        expected = np.bincount(given, minlength=256)
        np.testing.assert_array_equal(counted(given), expected)
        np.testing.assert_array_equal(counted.interpret(given), expected)
