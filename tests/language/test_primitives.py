"""Every primitive against its definition in NumPy or the standard library, interpreted and compiled."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tcdsl import op
from tcdsl.ir.primitives import PRIMITIVES

X = np.array([-1.75, -0.5, 0.0, 0.25, 0.5, 1.0, 1.5])
INSIDE = np.array([-0.9, -0.5, 0.0, 0.25, 0.5, 0.7, 0.9])
POSITIVE = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 9.0])
Y = np.array([0.5, -0.5, 1.0, 0.25, -2.0, 0.75, 1.5])
TRUTH = np.array([True, False, True, True, False, False, True])

Function = Callable[..., np.ndarray]


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def error_function(x: np.ndarray) -> np.ndarray:
    return np.array([math.erf(each) for each in x])


@op
def smooth(x, y):
    return (
        id(x), relu(x), sat01(x), exp(x), exp2(x), sin(x), cos(x), tan(x), atan(x), sinh(x), cosh(x), tanh(x),
        asinh(x), neg(x), abs(x), sign(x), floor(x), ceil(x), round(x), sigmoid(x), softplus(x), erf(x), gelu(x),
        silu(x), square(x), expm1(x), recip(y), -x, +x,
    )  # fmt: skip


SMOOTH: list[Function] = [
    lambda x, y: x, lambda x, y: np.maximum(x, 0), lambda x, y: np.clip(x, 0, 1), lambda x, y: np.exp(x),
    lambda x, y: 2.0**x, lambda x, y: np.sin(x), lambda x, y: np.cos(x), lambda x, y: np.tan(x),
    lambda x, y: np.arctan(x), lambda x, y: np.sinh(x), lambda x, y: np.cosh(x), lambda x, y: np.tanh(x),
    lambda x, y: np.arcsinh(x), lambda x, y: -x, lambda x, y: np.abs(x), lambda x, y: np.sign(x),
    lambda x, y: np.floor(x), lambda x, y: np.ceil(x), lambda x, y: np.rint(x), lambda x, y: logistic(x),
    lambda x, y: np.log(1 + np.exp(x)), lambda x, y: error_function(x),
    lambda x, y: x * (1 + error_function(x / math.sqrt(2))) / 2,
    lambda x, y: x * logistic(x), lambda x, y: x * x, lambda x, y: np.exp(x) - 1, lambda x, y: 1 / y, lambda x, y: -x,
    lambda x, y: x,
]  # fmt: skip


@op
def positive(x):
    return log(x), log2(x), sqrt(x), recip_sqrt(x), log1p(x), acosh(x + 1)


@op
def bounded(x):
    return asin(x), acos(x), atanh(x)


@op
def binary(x, y):
    return (
        fst(x, y), snd(x, y), add(x, y), sub(x, y), mul(x, y), div(x, y), relu_gate(x, y), sat01_gate(x, y), lt(x, y),
        le(x, y), gt(x, y), ge(x, y), eq(x, y), ne(x, y), mod(x, y), max(x, y), min(x, y), atan2(x, y),
    )  # fmt: skip


BINARY: list[Function] = [
    lambda x, y: x, lambda x, y: y, np.add, np.subtract, np.multiply, np.divide,
    lambda x, y: np.where(x > 0, y, 0.0), lambda x, y: np.where((x > 0) & (x < 1), y, 0.0), np.less, np.less_equal,
    np.greater, np.greater_equal, np.equal, np.not_equal, np.mod, np.maximum, np.minimum, np.arctan2,
]  # fmt: skip


@op
def ternary(c, x, y):
    return where(c, x, y), fma(x, y, 2.0), not_(c), or_(c, x > 0), and_(c, x > 0), pow(abs(x) + 1, y)


def matches(function: Any, arguments: tuple[Any, ...], wanted: list[Any]) -> None:
    for found in (function(*arguments), function.interpret(*arguments)):
        assert len(found) == len(wanted)
        for k, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert one.dtype == other.dtype, k
            np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15, err_msg=str(k))


def test_the_reference_names_every_primitive() -> None:
    page = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
    values = page.partition("\n## Values\n")[2].partition("\n## ")[0]
    named = {word for text in re.findall(r"`([^`]+)`", values) for word in text.split()}
    written = {row.name for row in PRIMITIVES.values() if row.kind in ("bits", "integer")}  # as operators
    assert set(PRIMITIVES) - written - {"floor_div", "stop_gradient"} <= named


def test_unary_primitives() -> None:
    matches(smooth, (X, Y), [reference(X, Y) for reference in SMOOTH])


def test_unary_primitives_of_positive_numbers() -> None:
    x = POSITIVE
    wanted = [np.log(x), np.log2(x), np.sqrt(x), 1 / np.sqrt(x), np.log(1 + x), np.arccosh(x + 1)]
    matches(positive, (x,), wanted)


def test_unary_primitives_of_numbers_between_minus_one_and_one() -> None:
    matches(bounded, (INSIDE,), [np.arcsin(INSIDE), np.arccos(INSIDE), np.arctanh(INSIDE)])


def test_binary_primitives() -> None:
    matches(binary, (X, Y), [reference(X, Y) for reference in BINARY])


def test_ternary_and_logical_primitives() -> None:
    wanted = [np.where(TRUTH, X, Y), X * Y + 2, ~TRUTH, TRUTH | (X > 0), TRUTH & (X > 0), (abs(X) + 1) ** Y]
    matches(ternary, (TRUTH, X, Y), wanted)


def test_every_primitive_in_index_notation() -> None:
    @op
    def f(c, x, y):
        a[i] = gelu(x[i]) + silu(x[i]) * softplus(y[i])
        b[i] = relu_gate(x[i], y[i]) + sat01_gate(x[i], y[i])
        d[i] = where(c[i], fma(x[i], y[i], 1), atan2(x[i], y[i]))
        return a, b, d

    smooth_relu = X * (1 + error_function(X / math.sqrt(2))) / 2
    wanted = [
        smooth_relu + X * logistic(X) * np.log1p(np.exp(Y)),
        np.where(X > 0, Y, 0) + np.where((X > 0) & (X < 1), Y, 0),
        np.where(TRUTH, X * Y + 1, np.arctan2(X, Y)),
    ]
    matches(f, (TRUTH, X, Y), wanted)


def test_relu_gate_is_zero_where_its_first_argument_is_not_positive() -> None:
    @op
    def f(a, b):
        y[i] = relu_gate(a[i], b[i])
        z[i] = sat01_gate(a[i], b[i])
        return y, z

    a, b = np.array([-1.0, 0.0, 0.5, 1.0, 2.0]), np.full(5, 7.0)
    first, second = f(a, b)
    assert first.tolist() == [0, 0, 7, 7, 7]
    assert second.tolist() == [0, 0, 7, 0, 0]
    # Where the gate is shut, what is behind it does not matter.
    assert f(a, np.full(5, np.nan))[0][:2].tolist() == [0, 0]


def test_gelu_is_the_exact_one() -> None:
    @op
    def f(x):
        return gelu(x)

    # 0.8413447460685429 is the normal distribution up to 1; the approximation by tanh gives 0.84119.
    assert f.interpret(np.array([1.0]))[0] == pytest.approx(0.8413447460685429, abs=1e-15)


def test_softplus_and_sigmoid_do_not_overflow() -> None:
    @op
    def f(x):
        return softplus(x), sigmoid(x), silu(x)

    x = np.array([-1000.0, 1000.0])
    plus, between, weighted = f(x)
    assert plus.tolist() == [0, 1000]
    assert between.tolist() == [0, 1]
    assert weighted.tolist() == [0, 1000]


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 5, -1, -3, 2.0, -2.0])
def test_pow_with_a_constant_integral_exponent_multiplies_repeatedly(exponent: float) -> None:
    @op
    def f(x, *, exponent):
        y[i] = x[i] ** exponent
        return y, x**exponent, pow(x, exponent)

    @op
    def constant(x):
        y[i] = x[i] ** 3
        return y

    x = np.array([-1.5, 2.0, 0.25])
    for found in f.interpret(x, exponent=exponent):
        np.testing.assert_allclose(found, x**exponent, rtol=1e-14)
    assert "power(" not in constant.explain("python", x)
    np.testing.assert_array_equal(constant(x), x * x * x)


def test_casts_convert_as_astype_does() -> None:
    @op
    def f(x):
        return float32(x), int64(x), int8(x), bool(x), float64(float32(x)), np.float16(x)

    x = np.array([-1.75, 0.0, 3.3])
    wanted = (
        x.astype("float32"), x.astype("int64"), x.astype("int8"), x.astype(bool),
        x.astype("float32").astype("float64"), x.astype("float16"),
    )  # fmt: skip
    for one, other in zip(f(x), wanted, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_pi_and_inf_are_numbers() -> None:
    @op
    def f(x):
        y[i] = x[i] * pi
        z[i] = min(x[i], inf) - max(x[i], -inf)
        return y, z

    x = np.array([1.0, 2.0], np.float32)
    first, second = f(x)
    np.testing.assert_array_equal(first, x * np.float32(math.pi))
    assert second.tolist() == [0, 0]
    assert first.dtype == np.float32


def test_comparisons_and_logic_give_bool() -> None:
    @op
    def f(x, c):
        a[i] = x[i] > 0
        b[i] = 0 < x[i] <= 0.5
        d[i] = not (x[i] > 0 and c[i]) or x[i] == -0.5
        return a, b, d

    wanted = (X > 0, (X > 0) & (X <= 0.5), ~((X > 0) & TRUTH) | (X == -0.5))
    for one, other in zip(f(X, TRUTH), wanted, strict=True):
        assert one.dtype == bool
        np.testing.assert_array_equal(one, other)


def test_conditional_expressions_choose_per_point() -> None:
    @op
    def f(x, y, c):
        a[i] = x[i] if c[i] else y[i]
        b[i] = where(x[i] > y[i], x[i], 2 * y[i])
        return a, b

    first, second = f(X, Y, TRUTH)
    np.testing.assert_array_equal(first, np.where(TRUTH, X, Y))
    np.testing.assert_array_equal(second, np.where(X > Y, X, 2 * Y))


def test_conditions_of_configuration_stay_lazy() -> None:
    def forbidden() -> Any:
        raise AssertionError("evaluated")

    @op
    def f(x, *, on: bool, table=None):
        y[i] = x[i] if on else forbidden()
        z[i] = x[i] if (on or forbidden()) and not (not on and forbidden()) else forbidden()
        w = x if on else forbidden()
        v[i] = x[i] if table is None or table[0] > 1 else forbidden()
        return y, z, w, v

    for found in f.interpret(X, on=True):
        np.testing.assert_array_equal(found, X)


def test_index_variables_and_sizes_are_numbers_in_values() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y[i, j] = x[i] * j + N, j < 3
        return y

    np.testing.assert_array_equal(f(X), X[:, None] * np.arange(3) + 7)


def test_division_and_remainder_round_down() -> None:
    @op
    def f(a, b):
        return a // b, a % b

    a, b = np.array([7, -7, 7, -7, 0]), np.array([2, 2, -2, -2, 3])
    for arguments in ((a, b), (a * 0.5, b * 1.0)):
        quotient, remainder = f(*arguments)
        np.testing.assert_array_equal(quotient, arguments[0] // arguments[1])
        np.testing.assert_array_equal(remainder, arguments[0] % arguments[1])
