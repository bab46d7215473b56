"""Gradient updates: which tensors get gradients, and what they are."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, einsum, op
from tcdsl.primitives import relu, tanh
from tests.train.regression import Regression

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(6, 3))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_step_of_each_type(dtype: str) -> None:
    problem = Regression(dtype)
    step = tc.compile(tc.train.grad_update(problem.loss), tc.train.sgd_update(problem.loss, learning_rate=0.5))
    step.run()
    w, b = problem.gradients(problem.w0, problem.b0)
    tolerance = {"float16": 2e-2, "float32": 1e-6, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(problem.w.grad, w, atol=tolerance)
    np.testing.assert_allclose(problem.w.value, problem.w0 - 0.5 * w, atol=tolerance)
    np.testing.assert_allclose(problem.b.value, problem.b0 - 0.5 * b, atol=tolerance)
    assert problem.w.value.dtype == problem.w.grad.dtype == problem.loss.value.dtype == dtype


def test_gradients_are_those_of_this_run_alone() -> None:
    problem = Regression("float64")
    step = tc.compile(tc.train.grad_update(problem.loss))
    for _ in range(3):
        step.run()
    np.testing.assert_allclose(problem.w.grad, problem.gradients(problem.w0, problem.b0)[0], atol=1e-12)


def test_the_gradient_of_a_leaf_by_itself_is_one() -> None:
    p = tc.param("p", o=1, init=np.array([3.0]), dtype="float64")
    tc.compile(tc.train.grad_update(p)).run()
    assert p.grad.tolist() == [1.0]
    assert p.value.tolist() == [3.0]


def test_computed_tensors_and_leaves_with_gradients() -> None:
    x = tc.tensor(X, batch=1, label="x", grad=True)
    fixed = tc.tensor(X + 1, batch=1, label="fixed")
    w = tc.param("w", o=2, i=3, init=GENERATOR.normal(size=(2, 3)), dtype="float64")
    hidden = w @ (x * fixed)
    active = tanh(hidden)
    loss = (active**2).sum()
    step = tc.compile(tc.train.grad_update(loss, wrt=[hidden, active]))
    step.run()
    by_active = 2 * np.tanh((X * (X + 1)) @ w.value.T)
    by_hidden = by_active * (1 - (by_active / 2) ** 2)
    np.testing.assert_allclose(active.grad, by_active, atol=1e-12)
    np.testing.assert_allclose(hidden.grad, by_hidden, atol=1e-12)
    np.testing.assert_allclose(w.grad, by_hidden.T @ (X * (X + 1)), atol=1e-12)
    np.testing.assert_allclose(x.grad, by_hidden @ w.value * (X + 1), atol=1e-12)
    # One tensor alone, and the loss itself.
    tc.compile(tc.train.grad_update(loss, wrt=loss)).run()
    np.testing.assert_array_equal(loss.grad, 1.0)


def test_leaves_with_gradients_are_no_parameters() -> None:
    x = tc.tensor(X, batch=1, label="x", grad=True)
    w = tc.param("w", o=2, i=3, init=1.0, dtype="float64")
    loss = (w @ x).sum()
    assert tc.train.parameters(loss) == [w]
    tc.compile(tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=1.0)).run()
    np.testing.assert_array_equal(x.value, X)
    np.testing.assert_array_equal(x.grad, np.full((6, 3), 2.0))


@op
def dense(x, *, label, size):
    return relu("w" @ x + "b"[size])


def test_parameters_are_found_once_and_in_order() -> None:
    first, second = dense(label="1", size=4), dense(label="2", size=3)
    x = tc.tensor(X, batch=1)
    # The second layer is used twice: 3 -> 3.
    y = second(second(x))
    loss = (y * y).sum() + (first(x) ** 2).sum()
    labels = [parameter.label for parameter in tc.train.parameters(loss)]
    assert sorted(labels) == ["b.1", "b.2", "w.1", "w.2"]
    assert [each.label for each in tc.train.parameters(first, [second, loss], first)] == ["w.1", "b.1", "w.2", "b.2"]
    assert tc.train.parameters(x) == []


def test_shared_parameters_get_the_sum() -> None:
    torch = pytest.importorskip("torch")
    layer = dense(label="L", size=3)
    x = tc.tensor(X, batch=1)
    loss = (layer(layer(x)) ** 2).mean()
    tc.compile(tc.train.grad_update(loss)).run()
    w, b = (torch.tensor(np.array(layer[name].value), requires_grad=True) for name in ("w", "b"))
    h = torch.tensor(X)
    for _ in range(2):
        h = torch.relu(h @ w.T + b)
    (h**2).mean().backward()
    np.testing.assert_allclose(layer["w"].grad, w.grad.numpy(), atol=1e-12)
    np.testing.assert_allclose(layer["b"].grad, b.grad.numpy(), atol=1e-12)


def test_a_loss_with_axes_of_size_one() -> None:
    w = tc.param("w", o=2, i=3, init=1.0, dtype="float64")
    loss = einsum("...|... => 0", (w @ tc.tensor(X, batch=1)) ** 2)
    step = tc.compile(tc.train.grad_update(loss), tc.train.sgd_update(loss, learning_rate=0.01))
    step.run()
    total = X.sum(axis=1)
    assert loss.value.size == 1
    np.testing.assert_allclose(loss.value.item(), 2 * (total**2).sum())
    np.testing.assert_allclose(w.grad, np.tile(2 * total @ X, (2, 1)), atol=1e-12)


def test_two_losses_in_one_routine() -> None:
    # The second gradient is taken after the first update, as in adversarial training.
    a, b = tc.param("a", o=(), init=2.0, dtype="float64"), tc.param("b", o=(), init=3.0, dtype="float64")
    first, second = a * a * b, -a * b * b
    step = tc.compile(
        tc.train.grad_update(first),
        tc.train.sgd_update(a, learning_rate=0.25),
        tc.train.grad_update(second),
        tc.train.sgd_update(b, learning_rate=0.5),
    )
    step.run()
    assert a.value == 2.0 - 0.25 * 12.0
    assert b.value == 3.0 - 0.5 * (-2 * a.value * 3.0)
    assert first.value == 12.0
    assert second.value == -a.value * 9.0


def test_gradients_accumulate_over_runs_in_code() -> None:
    @cd
    def accumulate(p, *, size):
        total = total + p.grad / size
        p.grad = total

    problem = Regression("float64")
    step = tc.compile(tc.train.grad_update(problem.loss), tc.train.update(problem.loss, accumulate, size=4.0))
    for _ in range(4):
        step.run()
    np.testing.assert_allclose(problem.w.grad, problem.gradients(problem.w0, problem.b0)[0], atol=1e-12)


def test_the_code_shows_its_program() -> None:
    w = tc.param("w", o=2, init=1.0, dtype="float64")
    code = tc.train.grad_update((w * w).sum()) + tc.train.sgd_update(w, learning_rate=0.1)
    text = str(code)
    assert "d_w[i] = 2.0 * w[i]" in text
    assert "update w = " in text
    assert repr(code) == "<code grad_update_sum_sgd: 2 parts>"
