"""Primitives of one's own: forward and gradient code in slots, on arrays, on tensors, inside ops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import cd, op

RNG = np.random.default_rng(11)


@cd
def power(v, v1, v2, *, projections):
    v = v1**v2


@cd
def power_gradient(g, t1, t2, g1, *, projections):
    g1 += t2 * t1 ** (t2 - 1) * g


pointpow = tc.primitive("pointpow", power, power_gradient)


@cd
def product(v, v1, v2, *, projections):
    assign(v, "=:+", v1 * v2)


@cd
def product_gradient(g, t1, t2, g1, g2, *, projections):
    g1 += g * t2
    g2 += t1 * g


compose = tc.primitive("compose", product, product_gradient, logic="@")
tensordot = tc.primitive("tensordot", product, product_gradient, logic="...i; i... => ...i")
convolve = tc.primitive("convolve", product, product_gradient, logic="2*o + k; k => o")


def test_pointpow_on_arrays() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert_allclose(pointpow(x, 3.0), x**3)
    assert_allclose(tc.grad(lambda x: pointpow(x, 3.0).sum())(x), 3 * x**2)


def test_a_primitive_shows_what_it_does_as_ops_do() -> None:
    x = np.array([1.0, 2.0, 3.0])
    assert_allclose(pointpow.interpret(x, 2.0), x**2)
    assert "pointpow" in pointpow.explain("ir", x, 2.0)
    assert "v1**v2" in pointpow.explain("source")
    assert pointpow.cost(x, 2.0).outputs == 3
    assert [each.name for each in pointpow.program(x, 2.0).inputs] == ["x1", "x2"]


def test_the_gradient_code_is_used() -> None:
    @cd
    def wrong_gradient(g, g1, *, projections):
        g1 += 100 * g

    marked = tc.primitive("marked", power, wrong_gradient)
    assert_allclose(tc.grad(lambda x: marked(x, 3.0).sum())(np.ones(2)), [100, 100])


def test_pointpow_inside_ops() -> None:
    @op
    def cubes(x):
        y = pointpow(x, 3.0)
        return 2 * y

    x = np.array([1.0, 2.0])
    assert_allclose(cubes(x), 2 * x**3)
    tc.check_grads(cubes, (x,))


@pytest.mark.parametrize(
    ("primitive", "shapes", "expected"),
    [
        (compose, ((2, 3), (3, 4)), lambda a, b: a @ b),
        (compose, ((5, 2, 3), (3,)), lambda a, b: a @ b),
        (compose, ((5, 2, 3), (3, 4)), lambda a, b: a @ b),
        (convolve, ((9,), (3,)), lambda a, b: np.array([a[2 * o : 2 * o + 3] @ b for o in range(4)])),
    ],
)
def test_logics(primitive: Any, shapes: Any, expected: Any) -> None:
    a, b = (RNG.normal(size=shape) for shape in shapes)
    assert_allclose(primitive(a, b), expected(a, b))
    d_a, d_b = tc.grad(lambda a, b: (primitive(a, b) ** 2).sum(), argnums=(0, 1))(a, b)
    e_a, e_b = tc.grad(lambda a, b: (reference(primitive, a, b) ** 2).sum(), argnums=(0, 1))(a, b)
    assert_allclose(d_a, e_a)
    assert_allclose(d_b, e_b)


def reference(primitive: Any, a: Any, b: Any) -> Any:
    return a @ b if primitive is compose else tc.einsum(primitive.logic, a, b)


def test_without_gradient_code_it_is_derived() -> None:
    plain = tc.primitive("plain", product, logic="@")
    a, b = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 4))
    d_a = tc.grad(lambda a: plain(a, b).sum())(a)
    assert_allclose(d_a, np.ones((2, 4)) @ b.T)


def test_on_tensors() -> None:
    w, x = tc.param("w", o=2), tc.tensor(RNG.normal(size=(5, 3)), batch=1, label="x")
    made = compose(w, x)
    assert str(made.rows) == "5 | 2"
    loss = pointpow(made, 2.0).sum()
    tc.compile(tc.train.grad_update(loss)).run()
    assert_allclose(loss.value, ((x.value @ w.value.T) ** 2).sum())
    assert_allclose(w.grad, 2 * (x.value @ w.value.T).T @ x.value)


def test_three_operands() -> None:
    @cd
    def choose(v, v1, v2, v3, *, projections):
        v = where(v1, v2, v3)

    @cd
    def choose_gradient(g, t1, g2, g3, *, projections):
        g2 += where(t1, g, 0.0)
        g3 += where(t1, 0.0, g)

    chosen = tc.primitive("chosen", choose, choose_gradient)
    c, a, b = np.array([1.0, 0.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0])
    assert_allclose(chosen(c, a, b), [3, 6])
    d_a, d_b = tc.grad(lambda a, b: chosen(c, a, b).sum(), argnums=(0, 1))(a, b)
    assert_allclose(d_a, [1, 0])
    assert_allclose(d_b, [0, 1])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tc.primitive("p", lambda v, v1: None), "the forward code of the primitive `p` is no @cd function"),
        (lambda: tc.primitive("p", power, op(_copy)), "the gradient code of the primitive `p` is no @cd function"),
        (lambda: tc.primitive("p", cd(_no_projections)), "has no parameter `projections`"),
        (lambda: tc.primitive("p", cd(_no_operands)), "has no operands"),
        (lambda: pointpow(np.ones(2)), "takes 2 operands, not 1"),
        (lambda: tc.primitive("p p", power), "the name of a primitive is an identifier, not 'p p'"),
        (lambda: tc.primitive(3, power), "the name of a primitive is an identifier, not 3"),  # type: ignore[arg-type]
        (lambda: tc.primitive("p", cd(_stores_into_an_operand))(np.ones(2)), "stores nothing into `v`, its result"),
        (lambda: tc.primitive("p", cd(_stores_nothing))(tc.tensor([1.0])).value, "stores nothing into `v`, its result"),
    ],
)
def test_faults(make: Any, message: str) -> None:
    with pytest.raises(tc.DslSyntaxError, match=message):
        make()


def _copy(x):
    return x


def _no_projections(v, v1):
    v = v1


def _no_operands(v, *, projections):
    v = 1.0


def _stores_into_an_operand(v, v1, *, projections):
    v1 = v * 2


def _stores_nothing(v, v1, *, projections):
    pass
