"""The signs of zeros are those of NumPy, in every place where a value may stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

ZEROS = np.array([-0.0, 0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, -0.0, 3.0, -0.0, 0.0])
"""Enough for vectors, and for what they leave over."""


@op
def elementwise(x):
    return (
        (x + 0.0, 0.0 + x, x - 0.0, 0.0 - x, x + 0, 0 - x, -x, 0.0 * x, x * -1.0, -x - 0.0, x / -2.0, -(x - x)),
        (-x + x, x * 0.0 + x * 0.0, 1.0 / (x + 0.0), 1.0 / x, abs(x), np.sign(x), np.floor(x), x**3, x // 3.0),
    )


@op
def at_points(x):
    a[i], b[i], c[i], d[i] = x[i] + 0.0, 0.0 - x[i], -x[i] - 0.0, 1.0 / (x[i] + 0.0)
    e[i], f[i], g[i], h[i] = np.sign(x[i]), -(x[i] - x[i]), fma(x[i], 0.0, 0.0), abs(x[i])
    return a, b, c, d, e, f, g, h


@op
def in_rounds(x):
    y = 1.0 * x
    for k in range(len(x)):
        y[k] = 0.0 - (x[k] + 0.0)
    return y


@op
def largest(x):
    return np.maximum(x, 0.0), np.maximum(0.0, x), np.maximum(x, -0.0), np.minimum(x, 0.0), relu(x), sat01(x)


@op
def accumulated(x):
    y[i] += x[i]
    z[i] -= x[i]
    t[()] += x[i], x[i] == 0
    w[i] = sum(x[i + k] for k in range(1))
    return y, z, t, w, np.sum(x[:1])


def same(found: Any, wanted: Any) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
        signed = ~np.isnan(other)
        np.testing.assert_array_equal(np.signbit(one)[signed], np.signbit(other)[signed])


def flat(nested: Any) -> list[Any]:
    return [part for each in nested for part in flat(each)] if isinstance(nested, tuple) else [np.asarray(nested)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_signs_of_zeros_are_those_of_numpy(dtype: str) -> None:
    x = ZEROS.astype(dtype)
    ones = np.ones_like(x)
    with np.errstate(all="ignore"):
        whole = flat(elementwise.function(x))
        points = [x + 0.0, 0.0 - x, -x - 0.0, 1.0 / (x + 0.0), np.sign(x), -(x - x), x * 0.0 + 0.0, abs(x)]
    for function, wanted in ((elementwise, whole), (at_points, points), (in_rounds, [0.0 - (x + 0.0)])):
        same(flat(function(x)), wanted)
        same(flat(function.interpret(x)), wanted)
        # Values beside derivatives are the same values.
        same(flat(tc.vjp(function, x)[0]), wanted)
        same(flat(tc.jvp(function, (x,), (ones,))[0]), wanted)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_of_two_zeros_the_positive_one_is_larger(dtype: str) -> None:
    x = np.concatenate([ZEROS, ZEROS, ZEROS]).astype(dtype)
    positive = np.where(x == 0, 0.0, np.maximum(x, 0)).astype(dtype)
    wanted = [positive, positive, np.where(x == 0, x, np.maximum(x, -0.0)), np.where(x == 0, x, np.minimum(x, 0))]
    wanted += [positive, np.minimum(positive, 1)]
    for function in (largest, largest.interpret):
        same(function(x), wanted)

    @op
    def ends(x):
        a[()] >>= x[i]
        b[()] <<= x[i]
        return a, b

    for zeros, high, low in (([-0.0] * 40, -0.0, -0.0), ([0.0] + [-0.0] * 40, 0.0, -0.0), ([0.0] * 40, 0.0, 0.0)):
        for function in (ends, ends.interpret):
            same(function(np.array(zeros, dtype)), [np.array(high), np.array(low)])


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_sums_begin_with_zero(dtype: str) -> None:
    x = np.full(40, -0.0, dtype)
    zero = np.zeros_like(x)
    for function in (accumulated, accumulated.interpret):
        same(function(x), [zero, zero, zero[0], zero, zero[0]])
    # What holds -0.0 keeps it, as NumPy's `y += x` does.
    y = x.copy()

    @tc.cd
    def increase(y, x):
        y[i] += x[i]

    increase(y, x)
    same([y], [x])


def test_numbers_of_python_keep_the_signs_of_zeros() -> None:
    @op
    def scaled(x, *, by):
        return x * relu(by), x * np.sign(by), x + sat01(by), x * max(by, 0.0)

    x = np.ones(2)
    same(scaled(x, by=-1.5), [x * 0, -x, x, x * 0])
    assert all(each.dtype == float for each in scaled(np.ones(2, int), by=-1.5))
