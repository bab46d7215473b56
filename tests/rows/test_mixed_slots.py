"""Operands of several slots in the gradients of primitives: where whole-array alignment and the slots agree."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd
from tests.tensors.interpreting import run, value

rng = np.random.default_rng(0)


@cd
def power(v, v1, v2, *, projections):
    v = v1**v2


@cd
def power_gradient(g, t1, t2, *, projections):
    g1 += t2 * t1 ** (t2 - 1) * g
    g2 += log(t1) * t1**t2 * g


pointpow = tc.primitive("pointpow", power, power_gradient)


def summed(array: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    array = array.sum(tuple(range(array.ndim - len(shape))))
    return array.sum(tuple(k for k, size in enumerate(shape) if size == 1), keepdims=True)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3,), (3,)), ((2, 3), (3,)), ((3,), (2, 3)), ((2, 3), (1, 3)), ((2, 1), (1, 3)), ((2, 1), (3,)), ((), (2,)),
        ((2, 3), ()), ((1,), (1,)), ((0, 3), (3,)), ((1, 3), (4, 2, 1)), ((1, 1), (1, 3)),
    ],
)  # fmt: skip
def test_operands_that_broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = rng.uniform(0.5, 2, first), rng.uniform(0.5, 2, second)
    x, y = tc.tensor(a, grad=True), tc.tensor(b, grad=True)
    weights = rng.uniform(size=(a**b).shape)
    made = pointpow(x, y)
    np.testing.assert_allclose(value(made), a**b)
    run(tc.train.grad_update((made * tc.tensor(weights)).sum()))
    np.testing.assert_allclose(x.grad, summed(b * a ** (b - 1) * weights, first))
    np.testing.assert_allclose(y.grad, summed(np.log(a) * a**b * weights, second))


def test_rows() -> None:
    a, b = rng.uniform(0.5, 2, (4, 3)), rng.uniform(0.5, 2, (3, 2))
    x, y = tc.tensor(a, batch=1, grad=True), tc.tensor(b, input=1, grad=True)
    made = pointpow(x, y)
    assert str(made.rows) == "4 | 2 -> 3"
    run(tc.train.grad_update(made.sum()))
    wide = a[:, :, None]
    np.testing.assert_allclose(x.grad, (b * wide ** (b - 1)).sum(2))
    np.testing.assert_allclose(y.grad, (np.log(wide) * wide**b).sum(0))


def test_arrays_and_higher_derivatives() -> None:
    a, b = rng.uniform(0.5, 2, (2, 3)), np.array([2.0, 3.0, 1.0])
    np.testing.assert_allclose(pointpow(a, b), a**b)

    def total(x: np.ndarray) -> np.ndarray:
        return pointpow(x, b).sum()

    np.testing.assert_allclose(tc.grad(total)(a), b * a ** (b - 1))
    np.testing.assert_allclose(tc.grad(lambda x: tc.grad(total)(x).sum())(a), b * (b - 1) * a ** (b - 2))


@cd
def outer(v, v1, v2, *, projections):
    v = v1 * v2


@cd
def wrong(g, t1, t2, *, projections):
    g1 += t1 * t2 * t2 * g


@pytest.mark.parametrize("same", [False, True])
def test_slots_that_are_not_aligned(same: bool) -> None:
    """Neither two tensors nor one in both slots: at the right, `i` and `j` would be one axis."""
    x, y = tc.tensor(np.ones(3), grad=True), tc.tensor(np.ones(3), grad=True)
    made = tc.primitive("outer", outer, wrong, logic="i;j=>ij")(x, x if same else y)
    with pytest.raises(tc.ShapeError, match="the tensors in operand 1 of `mul` are in different slots"):
        run(tc.train.grad_update(made.sum()))
