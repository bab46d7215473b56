# tcdsl: literal
"""Parameters with open axes, in statements whose logic says how large they are."""

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


@cd
def store(y, x, k):
    y[CONVOLUTION] = sum(x * k)


def expected(kernel: np.ndarray) -> np.ndarray:
    return sum(IMAGES[:, p : p + 3, q : q + 4] @ kernel[:, p, q].T for p, q in PLACES)


@pytest.mark.parametrize("function", [added, summed, literally, in_rounds])
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
