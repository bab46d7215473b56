"""Types of sums and products, and arithmetic of truth values."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tests.language.test_dtypes import DTYPES, agrees, sample


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_and_products_of_bool_and_small_integers_are_64_bit(dtype: str) -> None:
    @op
    def f(x):
        s[i] += x[i, k]
        p[i] *= x[i, k]
        r[i] = sum(x[i, k])
        q[i] = 1 * prod(x[i, k])
        return s, p, r, q, x.sum(axis=1), x.prod(axis=1)

    x = np.array([[1, 2, 3], [3, 1, 1]]).astype(dtype)
    total, product = x.sum(axis=1), x.prod(axis=1)
    for one, other in zip(f.interpret(x), (total, product, total, product, total, product), strict=True):
        agrees(one, other)


def test_a_sum_of_small_integers_does_not_overflow() -> None:
    @op
    def f(x):
        s[()] += x[i]
        return s

    agrees(f(np.full(1000, 127, np.int8)), np.int64(127000))
    agrees(f(np.ones(1000, bool)), np.int64(1000))


def test_arithmetic_of_truth_values_is_that_of_numpy() -> None:
    @op
    def f(a, b):
        y[i] = a[i] + b[i]
        return y, a + b, a * b, a + True, a + 1

    @op
    def counted(a, b):
        s[()] += a[i]
        r[()] += a[i] + b[i]
        return s, r, np.sum(b), a.sum(), sum(a[i] * 1 + b[i])

    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    for run in (f, f.interpret):
        for one, other in zip(run(a, b), (a + b, a + b, a * b, a + True, a + 1), strict=True):
            agrees(one, other)
    for run in (counted, counted.interpret):
        for one, other in zip(run(a, b), map(np.int64, (2, 3, 2, 2, 4)), strict=True):
            agrees(one, other)
    agrees((tc.tensor(a) + tc.tensor(b)).value, a + b)
    x = np.array([1, 2, 3, 4], np.int8)
    agrees(f(a, x)[0], a + x)
    agrees(f(x, b)[1], x + b)


@pytest.mark.parametrize("sign", ["-", "+", "sign"])
def test_truth_values_have_no_sign(sign: str) -> None:
    @op
    def whole(a):
        return -a if sign == "-" else +a if sign == "+" else np.sign(a)

    @op
    def at_points(a):
        if sign == "-":
            y[i] = -(a[i] > 0)
        elif sign == "+":
            y[i] = +a[i]
        else:
            y[i] = np.sign(a[i])
        return y

    a = np.array([True, False])
    for run in (whole, at_points, whole.interpret, lambda a: whole(a > 0), lambda a: whole(tc.tensor(a)).value):
        with pytest.raises(tc.TcdslError, match=f"`[{sign}]+` of a truth value, which NumPy does not have"):
            run(a)


def test_truth_values_are_not_subtracted() -> None:
    @op
    def whole(a, b):
        return a - b

    @op
    def at_points(a, b):
        y[i] = (a[i] > 0) - (b[i] > 0)
        return y

    a = np.array([True, False])
    for run in (whole, at_points, whole.interpret, lambda a, b: (tc.tensor(a) - tc.tensor(b)).value):
        with pytest.raises(tc.DtypeError, match=r"`-` between truth values.*(\n.*)*`int64\(a\) - int64\(b\)`"):
            run(a, a)
    agrees(whole(np.array([2, 3]), a), np.array([1, 3]))


@pytest.mark.parametrize("dtype", DTYPES)
def test_bool_takes_the_other_factors_type_in_a_product(dtype: str) -> None:
    @op
    def f(a, x):
        y[i] = a[i] * x[i]
        z[i] = x[i] * a[i]
        return y, z, a * x

    a = np.array([True, False, True, False])
    for found in f.interpret(a, sample(dtype)):
        agrees(found, np.where(a, sample(dtype), np.zeros(1, dtype)))
