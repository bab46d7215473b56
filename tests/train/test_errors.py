"""What is refused, with which words, and that nothing has changed then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd
from tests.train.regression import Regression


def refusal(kind: type[Exception], call: Callable[[], Any]) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


def test_a_loss_of_several_cells() -> None:
    w = tc.param("w", o=2, i=3)
    loss = w @ tc.tensor(np.ones((5, 3)), batch=1)
    message = refusal(tc.DifferentiationError, lambda: tc.train.grad_update(loss))
    assert "the loss `@` has 10 cells, not one" in message
    assert "`@` is 5 | 2" in message
    assert "sum it up or take the mean: `loss.sum()`, `loss.mean()`" in message
    assert "tc.train.grad_update(loss)" in message
    assert "^^^" in message


def test_a_loss_without_parameters() -> None:
    loss = tc.tensor(np.ones(3), label="x").sum()
    for call in (
        lambda: tc.train.grad_update(loss),
        lambda: tc.train.sgd_update(loss, learning_rate=0.1),
        lambda: tc.train.adam_update(loss, learning_rate=0.1),
    ):
        message = refusal(tc.DifferentiationError, call)
        assert f"`{loss.label}` depends on no parameter" in message
        assert 'strings in an @op, such as `"w" @ x`' in message
    assert "there are no parameters here" in refusal(
        tc.DifferentiationError, lambda: tc.train.sgd_update([], learning_rate=0.1)
    )


def test_integers_have_no_gradient() -> None:
    w = tc.param("w", o=3)
    loss = w.astype("int64").sum()
    assert "depends on no parameter" in refusal(tc.DifferentiationError, lambda: tc.train.grad_update(loss))


def test_what_is_no_loss() -> None:
    for loss in (np.ones(()), 1.0, None, "loss"):
        message = refusal(tc.ConfigurationError, lambda loss=loss: tc.train.grad_update(loss))
        assert f"a {type(loss).__name__} as a loss" in message
    message = refusal(tc.ConfigurationError, lambda: tc.train.sgd_update(np.ones(3), learning_rate=0.1))
    assert "a ndarray has no parameters" in message


def test_gradients_by_what_the_loss_does_not_depend_on() -> None:
    problem, other = Regression("float64"), tc.param("other", o=2)
    message = refusal(tc.DifferentiationError, lambda: tc.train.grad_update(problem.loss, wrt=[other]))
    assert "the loss `mean" in message
    assert "does not depend on `other`" in message
    x = tc.tensor(np.ones(2), label="x")
    loss = (problem.w @ np.ones(3) * x).sum()
    message = refusal(tc.DifferentiationError, lambda: tc.train.grad_update(loss, wrt=[x]))
    assert "`x` has no gradient: nothing that it is computed from is differentiable" in message
    assert "tc.tensor(x, grad=True) makes a leaf with one" in message


@pytest.mark.parametrize(
    ("update", "name"),
    [
        ("sgd_update", "learning_rate"),
        ("sgd_update", "momentum"),
        ("adam_update", "beta1"),
        ("adamw_update", "weight_decay"),
        ("rmsprop_update", "decay"),
        ("lion_update", "beta2"),
    ],
)
@pytest.mark.parametrize("given", ["fast", None, True, np.ones(2), lambda step: 0.1])
def test_numbers_that_are_none(update: str, name: str, given: Any) -> None:
    problem = Regression("float64")
    message = refusal(
        tc.ConfigurationError,
        lambda: getattr(tc.train, update)(problem.loss, **{"learning_rate": 0.1, name: given}),
    )
    assert f"`{name}` is a number, not {given!r}" in message
    if name == "momentum":
        assert "give a float: what code is made depends on it" in message
    else:
        assert f"give a float, or a tensor of one cell; a schedule is called: `{name}=schedule(step)`" in message


def test_a_rate_of_several_cells() -> None:
    problem = Regression("float64")
    rates = tc.tensor(np.ones(3), label="rates")
    message = refusal(tc.ConfigurationError, lambda: tc.train.sgd_update(problem.loss, learning_rate=rates))
    assert "`learning_rate` has 3 cells: `rates` is 3" in message
    momentum = tc.tensor(0.9, label="momentum")
    message = refusal(
        tc.ConfigurationError, lambda: tc.train.sgd_update(problem.loss, learning_rate=0.1, momentum=momentum)
    )
    assert "`momentum` is a number, not <tensor momentum" in message


def test_numbers_of_a_run() -> None:
    problem = Regression("float64")
    step = tc.compile(
        tc.train.grad_update(problem.loss), tc.train.sgd_update(problem.loss, learning_rate=0.1, momentum=0.9)
    )
    step.run()
    before = problem.w.value.copy()
    message = refusal(tc.ConfigurationError, lambda: step.run(learning_rate=0.5, lr=0.1))
    assert "this routine has no number `lr`" in message
    assert "numbers that a run sets: learning_rate, weight_decay" in message
    message = refusal(tc.ConfigurationError, lambda: step.run(learning_rate="fast"))
    assert "`learning_rate` is a number, not a str" in message
    # Python has branched on the momentum, so it is part of the program.
    assert "this routine has no number `momentum`" in refusal(tc.ConfigurationError, lambda: step.run(momentum=0.5))
    np.testing.assert_array_equal(problem.w.value, before)


def test_a_gradient_that_nothing_has_computed() -> None:
    problem = Regression("float64")
    message = refusal(tc.ConfigurationError, lambda: problem.w.grad)
    assert "no gradient of `w` has been computed" in message
    assert "run `tc.compile(tc.train.grad_update(loss))` first" in message
    step = tc.compile(tc.train.sgd_update(problem.loss, learning_rate=0.1))
    message = refusal(tc.ConfigurationError, step.run)
    assert "no gradient of `w` has been computed" in message or "no gradient of `b` has been computed" in message
    np.testing.assert_array_equal(problem.w.value, problem.w0)


def test_an_optimizer_on_what_has_no_gradient() -> None:
    x = tc.tensor(np.ones(3), label="x")
    for call in (
        lambda: tc.train.sgd(x, learning_rate=0.1),
        lambda: tc.train.adam(x, learning_rate=0.1),
        lambda: tc.train.clip_norm(x, limit=1.0),
    ):
        assert "`x` has no gradient" in refusal(tc.DifferentiationError, call)


def test_an_optimizer_on_arrays_without_a_gradient() -> None:
    message = refusal(tc.DslSyntaxError, lambda: tc.train.sgd(np.ones(3), learning_rate=0.1))
    assert "an array has no `grad` while the function is staged" in message


def test_a_rule_that_is_no_code() -> None:
    problem = Regression("float64")

    def rule(p: Any, *, learning_rate: float) -> None:
        p.value = p.value - learning_rate

    problem.w.value = problem.w0
    message = refusal(
        tc.ConfigurationError, lambda: tc.train.update([problem.w], lambda p, learning_rate: None, learning_rate=0.1)
    )
    assert "gives no code" in message
    assert "decorate it with @cd" in message


def test_clipping_without_a_limit() -> None:
    problem = Regression("float64")
    message = refusal(tc.ConfigurationError, lambda: tc.train.clip_gradients(problem.loss))
    assert "clip_gradients() without a limit" in message
    message = refusal(tc.ConfigurationError, lambda: tc.train.clip_gradients(problem.loss, norm="1"))
    assert "`norm` is a number, not '1'" in message
    x = tc.tensor(np.ones(3), label="x")
    message = refusal(tc.DifferentiationError, lambda: tc.train.clip_gradients(x, norm=1.0))
    assert "`x` depends on no parameter" in message


def test_what_is_no_code_is_not_compiled() -> None:
    problem = Regression("float64")
    message = refusal(tc.ConfigurationError, lambda: tc.compile(tc.train.grad_update(problem.loss), tc.train.sgd))
    assert "a TensorFunction is no code" in message


def test_a_value_that_is_missing_changes_nothing() -> None:
    # All memory is read before anything runs.
    @cd
    def merged(p):
        p += p.merge

    p = tc.param("p", o=2, init=1.0, dtype="float64")
    step = tc.compile(merged(p))
    message = refusal(tc.ConfigurationError, step.run)
    assert "nothing has arrived for `p.value.merge`" in message
    np.testing.assert_array_equal(p.value, [1.0, 1.0])
    p.merge = [2.0, 3.0]
    step.run()
    np.testing.assert_array_equal(p.value, [3.0, 4.0])
