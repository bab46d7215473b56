"""Optimizers against formulas by hand and against PyTorch, on tensors and on arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tests.train.regression import Regression

STEPS = 20
TOLERANCES = {"float64": 1e-12, "float32": 2e-5}
Step = Callable[[np.ndarray, np.ndarray], np.ndarray]


def sgd_by_hand(learning_rate: float, momentum: float = 0.0, weight_decay: float = 0.0, nesterov: bool = False) -> Step:
    velocity: Any = 0.0

    def step(p: np.ndarray, g: np.ndarray) -> np.ndarray:
        nonlocal velocity
        delta = g + weight_decay * p
        if momentum:
            velocity = momentum * velocity + delta
            delta = delta + momentum * velocity if nesterov else velocity
        return p - learning_rate * delta

    return step


def adam_by_hand(
    learning_rate: float,
    beta1: float = 0.9,
    beta2: float = 0.999,
    epsilon: float = 1e-8,
    weight_decay: float = 0.0,
    decoupled: bool = False,
) -> Step:
    m: Any = 0.0
    v: Any = 0.0
    count = 0

    def step(p: np.ndarray, g: np.ndarray) -> np.ndarray:
        nonlocal m, v, count
        count += 1
        if decoupled:
            p = p - learning_rate * weight_decay * p
        else:
            g = g + weight_decay * p
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g**2
        return p - learning_rate * (m / (1 - beta1**count)) / (np.sqrt(v / (1 - beta2**count)) + epsilon)

    return step


def rmsprop_by_hand(
    learning_rate: float, decay: float = 0.99, epsilon: float = 1e-8, momentum: float = 0.0, weight_decay: float = 0.0
) -> Step:
    v: Any = 0.0
    velocity: Any = 0.0

    def step(p: np.ndarray, g: np.ndarray) -> np.ndarray:
        nonlocal v, velocity
        g = g + weight_decay * p
        v = decay * v + (1 - decay) * g**2
        delta = g / (np.sqrt(v) + epsilon)
        velocity = momentum * velocity + delta
        return p - learning_rate * velocity

    return step


def lion_by_hand(learning_rate: float, beta1: float = 0.9, beta2: float = 0.99, weight_decay: float = 0.0) -> Step:
    m: Any = 0.0

    def step(p: np.ndarray, g: np.ndarray) -> np.ndarray:
        nonlocal m
        direction = np.sign(beta1 * m + (1 - beta1) * g) + weight_decay * p
        m = beta2 * m + (1 - beta2) * g
        return p - learning_rate * direction

    return step


@dataclass(frozen=True)
class Case:
    """An optimizer with one configuration, and what it is compared with."""

    rule: str
    by_hand: Callable[..., Step]
    configuration: dict[str, Any]
    torch: str = ""
    torch_configuration: dict[str, Any] = field(default_factory=dict)
    buffers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """A name for the test."""
        return "_".join((self.rule, *(f"{name}={value}" for name, value in self.configuration.items())))


CASES = [
    Case("sgd", sgd_by_hand, {"learning_rate": 0.1}, "SGD", {"lr": 0.1}),
    Case(
        "sgd",
        sgd_by_hand,
        {"learning_rate": 0.1, "momentum": 0.9},
        "SGD",
        {"lr": 0.1, "momentum": 0.9},
        ("velocity",),
    ),
    Case("sgd", sgd_by_hand, {"learning_rate": 0.1, "weight_decay": 0.3}, "SGD", {"lr": 0.1, "weight_decay": 0.3}),
    Case(
        "sgd",
        sgd_by_hand,
        {"learning_rate": 0.1, "momentum": 0.8, "weight_decay": 0.2, "nesterov": True},
        "SGD",
        {"lr": 0.1, "momentum": 0.8, "weight_decay": 0.2, "nesterov": True},
        ("velocity",),
    ),
    Case("adam", adam_by_hand, {"learning_rate": 0.05}, "Adam", {"lr": 0.05}, ("m", "v", "step")),
    Case(
        "adam",
        adam_by_hand,
        {"learning_rate": 0.05, "beta1": 0.7, "beta2": 0.9, "epsilon": 1e-3, "weight_decay": 0.2},
        "Adam",
        {"lr": 0.05, "betas": (0.7, 0.9), "eps": 1e-3, "weight_decay": 0.2},
        ("m", "v", "step"),
    ),
    Case(
        "adamw",
        lambda **given: adam_by_hand(**{"weight_decay": 0.01, **given}, decoupled=True),
        {"learning_rate": 0.05},
        "AdamW",
        {"lr": 0.05},
        ("m", "v", "step"),
    ),
    Case(
        "adamw",
        lambda **given: adam_by_hand(**given, decoupled=True),
        {"learning_rate": 0.05, "beta1": 0.7, "beta2": 0.9, "epsilon": 1e-3, "weight_decay": 0.5},
        "AdamW",
        {"lr": 0.05, "betas": (0.7, 0.9), "eps": 1e-3, "weight_decay": 0.5},
        ("m", "v", "step"),
    ),
    Case("rmsprop", rmsprop_by_hand, {"learning_rate": 0.02}, "RMSprop", {"lr": 0.02}, ("v",)),
    Case(
        "rmsprop",
        rmsprop_by_hand,
        {"learning_rate": 0.02, "decay": 0.8, "epsilon": 1e-3, "momentum": 0.5, "weight_decay": 0.1},
        "RMSprop",
        {"lr": 0.02, "alpha": 0.8, "eps": 1e-3, "momentum": 0.5, "weight_decay": 0.1},
        ("v", "velocity"),
    ),
    Case("lion", lion_by_hand, {"learning_rate": 0.03}, buffers=("m",)),
    Case(
        "lion",
        lion_by_hand,
        {"learning_rate": 0.03, "beta1": 0.6, "beta2": 0.8, "weight_decay": 0.4},
        buffers=("m",),
    ),
]
each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
each_type = pytest.mark.parametrize("dtype", TOLERANCES)


def trained(problem: Regression, case: Case) -> tuple[np.ndarray, np.ndarray]:
    step = tc.compile(
        tc.train.grad_update(problem.loss),
        getattr(tc.train, f"{case.rule}_update")(problem.loss, **case.configuration),
    )
    for _ in range(STEPS):
        step.run()
    return problem.w.value, problem.b.value


@each_case
@each_type
def test_against_formulas_by_hand(case: Case, dtype: str) -> None:
    problem = Regression(dtype)
    w, b = trained(problem, case)
    expected_w, expected_b = problem.trained_by_hand(lambda: case.by_hand(**case.configuration), STEPS)
    assert w.dtype == b.dtype == dtype
    np.testing.assert_allclose(w, expected_w, rtol=0, atol=TOLERANCES[dtype])
    np.testing.assert_allclose(b, expected_b, rtol=0, atol=TOLERANCES[dtype])
    assert np.abs(expected_w - problem.w0).min() > 0.01


@each_type
@pytest.mark.parametrize("case", [case for case in CASES if case.torch], ids=lambda case: case.name)
def test_against_torch(case: Case, dtype: str) -> None:
    torch = pytest.importorskip("torch")
    problem = Regression(dtype)
    w, b = trained(problem, case)
    make = lambda parameters: getattr(torch.optim, case.torch)(parameters, **case.torch_configuration)  # noqa: E731
    expected_w, expected_b = problem.trained_by_torch(torch, make, STEPS)
    np.testing.assert_allclose(w, expected_w, rtol=0, atol=TOLERANCES[dtype])
    np.testing.assert_allclose(b, expected_b, rtol=0, atol=TOLERANCES[dtype])


@each_case
@each_type
def test_on_arrays_with_the_buffers_passed(case: Case, dtype: str) -> None:
    problem = Regression(dtype)
    rule = getattr(tc.train, case.rule)
    w, b = problem.w0.copy(), problem.b0.copy()
    buffers = [
        {name: np.zeros((), int) if name == "step" else np.zeros_like(p) for name in case.buffers} for p in (w, b)
    ]
    for _ in range(STEPS):
        for p, g, kept in zip((w, b), problem.gradients(w, b), buffers, strict=True):
            before = g.copy()
            rule(p, g, *kept.values(), **case.configuration)
            np.testing.assert_array_equal(g, before)
    expected_w, expected_b = problem.trained_by_hand(lambda: case.by_hand(**case.configuration), STEPS)
    np.testing.assert_allclose(w, expected_w, rtol=0, atol=TOLERANCES[dtype])
    np.testing.assert_allclose(b, expected_b, rtol=0, atol=TOLERANCES[dtype])
    if "step" in case.buffers:
        assert buffers[0]["step"] == STEPS


def test_the_rate_of_a_run_is_used_from_then_on() -> None:
    problem = Regression("float64")
    step = tc.compile(tc.train.grad_update(problem.loss), tc.train.sgd_update(problem.loss, learning_rate=0.1))
    step.run(learning_rate=0.0)
    np.testing.assert_array_equal(problem.w.value, problem.w0)
    step.run()
    np.testing.assert_array_equal(problem.w.value, problem.w0)
    step.run(learning_rate=0.5)
    expected = problem.w0 - 0.5 * problem.gradients(problem.w0, problem.b0)[0]
    np.testing.assert_allclose(problem.w.value, expected, atol=1e-12)


def test_groups_of_parameters_keep_their_own_numbers() -> None:
    problem = Regression("float64")
    step = tc.compile(
        tc.train.grad_update(problem.loss),
        tc.train.update([problem.w], tc.train.sgd, learning_rate=0.1, weight_decay=0.5),
        tc.train.update(problem.b, tc.train.sgd, learning_rate=0.2),
    )
    step.run()
    w, b = problem.gradients(problem.w0, problem.b0)
    np.testing.assert_allclose(problem.w.value, problem.w0 - 0.1 * (w + 0.5 * problem.w0), atol=1e-12)
    np.testing.assert_allclose(problem.b.value, problem.b0 - 0.2 * b, atol=1e-12)


def test_what_is_not_named_stays() -> None:
    problem = Regression("float64")
    step = tc.compile(tc.train.grad_update(problem.loss), tc.train.adam_update(problem.b, learning_rate=0.1))
    step.run()
    np.testing.assert_array_equal(problem.w.value, problem.w0)
    assert np.all(problem.b.value != problem.b0)


def test_updates_are_simultaneous() -> None:
    # Both gradients are those of the loss before either parameter moves.
    problem = Regression("float64")
    step = tc.compile(tc.train.grad_update(problem.loss), tc.train.sgd_update(problem.loss, learning_rate=1.0))
    step.run()
    w, b = problem.gradients(problem.w0, problem.b0)
    np.testing.assert_allclose(problem.w.grad, w, atol=1e-12)
    np.testing.assert_allclose(problem.b.grad, b, atol=1e-12)
    np.testing.assert_allclose(problem.b.value, problem.b0 - b, atol=1e-12)


def by_norm(gradients: tuple[np.ndarray, ...], limit: float) -> tuple[np.ndarray, ...]:
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    return tuple(g * min(1.0, limit / (norm + 1e-6)) for g in gradients)


@each_type
@pytest.mark.parametrize("limit", [1e-3, 0.5, 1e3])
def test_clipping_by_the_norm_of_all_gradients(dtype: str, limit: float) -> None:
    problem = Regression(dtype)
    step = tc.compile(
        tc.train.grad_update(problem.loss),
        tc.train.clip_gradients(problem.loss, norm=limit),
        tc.train.sgd_update(problem.loss, learning_rate=0.1),
    )
    for _ in range(STEPS):
        step.run()
    expected = problem.trained_by_hand(lambda: sgd_by_hand(0.1), STEPS, lambda g: by_norm(g, limit))
    np.testing.assert_allclose(problem.w.value, expected[0], rtol=0, atol=TOLERANCES[dtype])
    np.testing.assert_allclose(problem.b.value, expected[1], rtol=0, atol=TOLERANCES[dtype])
    total = np.sqrt((problem.w.grad**2).sum() + (problem.b.grad**2).sum())
    assert total <= limit * (1 + 1e-6)


@pytest.mark.parametrize("limit", [1e-3, 0.5])
def test_clipping_against_torch(limit: float) -> None:
    torch = pytest.importorskip("torch")
    problem = Regression("float64")
    step = tc.compile(
        tc.train.grad_update(problem.loss),
        tc.train.clip_gradients(problem.loss, norm=limit, value=limit / 2),
        tc.train.sgd_update(problem.loss, learning_rate=0.1),
    )
    for _ in range(STEPS):
        step.run()

    def limited(parameters: list[Any]) -> None:
        torch.nn.utils.clip_grad_value_(parameters, limit / 2)
        torch.nn.utils.clip_grad_norm_(parameters, limit)

    expected = problem.trained_by_torch(torch, lambda p: torch.optim.SGD(p, lr=0.1), STEPS, limited)
    np.testing.assert_allclose(problem.w.value, expected[0], rtol=0, atol=1e-12)
    np.testing.assert_allclose(problem.b.value, expected[1], rtol=0, atol=1e-12)


def test_clipping_values() -> None:
    problem = Regression("float64")
    code = tc.train.grad_update(problem.loss) + tc.train.clip_gradients(problem.loss, value=0.1)
    step = tc.compile(code)
    step.run()
    w, b = problem.gradients(problem.w0, problem.b0)
    np.testing.assert_allclose(problem.w.grad, np.clip(w, -0.1, 0.1), atol=1e-12)
    np.testing.assert_allclose(problem.b.grad, np.clip(b, -0.1, 0.1), atol=1e-12)
    step.run(limit=0.05)
    np.testing.assert_allclose(problem.w.grad, np.clip(w, -0.05, 0.05), atol=1e-12)


def test_clipping_arrays() -> None:
    w, b = Regression("float64").gradients(np.ones((2, 3)), np.ones(2))
    expected = by_norm((w, b), 0.25)
    tc.train.clip_norm(w, b, limit=0.25)
    np.testing.assert_allclose(w, expected[0], atol=1e-12)
    np.testing.assert_allclose(b, expected[1], atol=1e-12)
    tc.train.clip_value(w, b, limit=0.01)
    np.testing.assert_allclose(w, np.clip(expected[0], -0.01, 0.01), atol=1e-12)
    np.testing.assert_allclose(b, np.clip(expected[1], -0.01, 0.01), atol=1e-12)


def test_scalar_and_empty_parameters() -> None:
    scalar = tc.param("scalar", o=(), init=3.0, dtype="float64")
    empty = tc.param("empty", o=0, dtype="float64")
    loss = scalar * scalar + (empty * empty).sum()
    step = tc.compile(
        tc.train.grad_update(loss),
        tc.train.clip_gradients(loss, norm=2.0),
        tc.train.adam_update(loss, learning_rate=0.1),
    )
    step.run()
    np.testing.assert_allclose(scalar.value, 2.9, atol=1e-7)
    np.testing.assert_allclose(scalar.grad, 2.0, atol=1e-5)
    assert empty.value.shape == empty.grad.shape == (0,)
