# tcdsl: literal
"""Parameters with open axes, in statements whose logic or index variables say how large they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.tensors.interpreting import value

GENERATOR = np.random.default_rng(26)
IMAGES = GENERATOR.random((2, 5, 6, 3))
CONVOLUTION = "...|h+p,w+q,c; p,q,c->o => ...|h,w,o"
PLACES = [(p, q) for p in range(3) for q in range(3)]


@op
def added(x, *, count):
    k = param("k", i=(3, 3, None), o=count)
    y[CONVOLUTION] += x * k
    return y


@op
def summed(x, *, count):
    y[CONVOLUTION] = sum(x * param("k", i=(3, 3, None), o=count))
    return y


@op
def literally(x, *, count):
    y =:+ x * { k; i=(3, 3, ?); o=[count] } ~logic:"...|h+p,w+q,c; p,q,c->o => ...|h,w,o"
    return y


@op
def in_rounds(x, *, count):
    k = param("k", i=(3, 3, None), o=count)
    for _ in range(x.shape[0]):
        y[CONVOLUTION] = sum(x * (k * 1.0))
    return y


@op
def indexed(x, *, count):
    k = param("k", i=(3, 3, None), o=count)
    y[n, h, w, o] += x[n, h + p, w + q, c] * k[o, p, q, c]
    return y


@cd
def store(y, x, k):
    y[CONVOLUTION] = sum(x * k)


def expected(kernel: np.ndarray) -> np.ndarray:
    return sum(IMAGES[:, p : p + 3, q : q + 4] @ kernel[:, p, q].T for p, q in PLACES)


@pytest.mark.parametrize("function", [added, summed, literally, in_rounds, indexed])
def test_ops_find_the_open_axis_of_a_kernel(function: Any) -> None:
    layer = function(count=4)
    y = layer(tc.tensor(IMAGES, batch=1))
    assert str(y.rows) == "2 | 3, 4, 4"
    kernel = layer["k"]
    np.testing.assert_allclose(value(y), expected(kernel.value))
    tc.compile(tc.train.grad_update((y**2).sum())).run()
    slopes = 2 * value(y)
    for p, q in PLACES:
        slope = np.einsum("bhwo,bhwc->oc", slopes, IMAGES[:, p : p + 3, q : q + 4])
        np.testing.assert_allclose(kernel.grad[:, p, q], slope)


def test_code_finds_it_by_its_target_too() -> None:
    kernel = tc.param("k", i=(3, 3, None))
    y = tc.tensor(np.zeros((2, 3, 4, 7)), batch=1)
    tc.compile(store(y, tc.tensor(IMAGES, batch=1), kernel)).run()
    assert str(kernel.rows) == "3, 3, 3 -> 7"
    np.testing.assert_allclose(y.value, expected(kernel.value))


def test_declared_targets_say_it_and_what_nothing_says_is_an_error() -> None:
    @op
    def declared(x):
        y: real[5]
        y["i; i->o => o"] += x * param("k", i=None)
        return y

    assert declared(tc.tensor(np.ones(3))).shape == (5,)
    assert str(declared.parameters["k"].rows) == "3 -> 5"

    @op
    def open_end(x):
        y["i; i->o => o"] += x * param("k", i=None)
        return y

    with pytest.raises(tc.ShapeError, match=r'(?s)nothing determines the size of output axis 1 .*`k`.*write "k"\[n\]'):
        open_end(tc.tensor(np.ones(3)))
    kernel = tc.param("k", i=(3, 3, None), o=2)
    with pytest.raises(tc.ShapeError, match="axis 3 of k, which has the extent 8"):
        kernel @ tc.tensor(np.ones((3, 3, 8)))
        store(tc.tensor(np.zeros((2, 3, 4, 2)), batch=1), tc.tensor(IMAGES, batch=1), kernel)


@op
def dense(x):
    w, b = param("w", o=4), param("b")
    y[n, o] = sum(w[o, c] * x[n, c]) + b[o] * sum(x[n, c]) / sum(x[n, j])
    return y


def product(x, w, n, o):
    return sum(x[n, c] * w[o, c] for c in range(x.shape[1]))


@op
def by_definitions(x):
    w, b = param("w", o=4, i=None), param("b", o=4, i=None)
    shifted = sum(b[o, c] * x[n, c])
    y[n, o] = product(x, w, n, o) + shifted
    return y


@op
def recurrent(x):
    w = param("w", o=None, i=None)
    h = x[0] * 1.0
    for t in range(x.shape[0]):
        h[i] = tanh(sum(w[i, j] * h[j])) + x[t, i]
    return h


@op
def side_by_side(x, z):
    w = param("w", o=None)
    y[()] = sum(x[i]) * sum(w[i] * z[i])
    return y


@cd
def store_rows(y, x, k):
    y[n, o] = sum(x[n, c] * k[o, c])


def test_index_variables_say_it() -> None:
    x = tc.tensor(IMAGES[0, 0], batch=1)
    y = dense(x)
    w, b = (dense.parameters[name] for name in "wb")
    assert [str(each.rows) for each in (y, w, b)] == ["6 | 4", "3 -> 4", "4"]
    np.testing.assert_allclose(value(y), x.value @ w.value.T + b.value)

    y = by_definitions(x)
    w, b = (by_definitions.parameters[name].value for name in "wb")
    np.testing.assert_allclose(value(y), x.value @ (w + b).T)

    h, w = recurrent(x), recurrent.parameters["w"]
    expected = x.value[0]
    for row in x.value:
        expected = np.tanh(w.value @ expected) + row
    np.testing.assert_allclose(value(h), expected)

    # Reductions side by side have variables of their own.
    y = side_by_side(tc.tensor(np.ones(3)), tc.tensor(np.ones(5)))
    w = side_by_side.parameters["w"]
    assert w.shape == (5,)
    np.testing.assert_allclose(value(y), 3 * w.value.sum())


def test_index_variables_say_it_in_code() -> None:
    x, kernel = tc.tensor(IMAGES[0, 0], batch=1), tc.param("k")
    y = tc.tensor(np.zeros((6, 7)), batch=1)
    tc.compile(store_rows(y, x, kernel)).run()
    np.testing.assert_allclose(y.value, x.value @ kernel.value.T)


def test_what_index_variables_leave_open_or_contradict_is_an_error() -> None:
    @op
    def window(x):
        w = param("w", o=4, i=None)
        y[n, o] = sum(x[n, j + k] * w[o, k])
        return y

    with pytest.raises(tc.ShapeError, match="(?s)nothing determines the size of input axis 1 .*w: . -> 4"):
        window(tc.tensor(IMAGES[0, 0], batch=1))

    @op
    def contradicted(x, z):
        w = param("w", o=None)
        s[()] += x[i] * w[i] * z[i]
        return s

    with pytest.raises(tc.ShapeError, match=r"has the extent 3, and over axis 0 .* has the extent 5"):
        contradicted(tc.tensor(np.ones(3)), tc.tensor(np.ones(5)))
