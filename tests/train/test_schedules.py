"""Schedules: their values, on numbers and on tensors, and that they compile nothing anew."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.runtime.calling.execution import Executable
from tcdsl.train.schedules import Schedule, constant, cosine, exponential, linear, stepwise
from tests.train.regression import Regression


def cosine_by_hand(step: int) -> float:
    if step < 4:
        return 0.5 * (step + 1) / 4
    done = min((step - 4) / 6, 1.0)
    return 0.1 + 0.4 * (1 + math.cos(math.pi * done)) / 2


CASES: dict[str, tuple[Schedule, Callable[[int], float]]] = {
    "constant": (constant(0.3), lambda step: 0.3),
    "linear": (linear(0.5, 8), lambda step: 0.5 * max(0.0, 1 - step / 8)),
    "linear to an end": (linear(0.5, 8, end=0.9), lambda step: 0.5 + 0.4 * min(step / 8, 1)),
    "cosine": (cosine(0.5, 10), lambda step: 0.25 * (1 + math.cos(math.pi * min(step / 10, 1)))),
    "cosine with warm-up": (cosine(0.5, 10, warmup=4, end=0.1), cosine_by_hand),
    "stepwise": (stepwise(0.5, 3), lambda step: 0.5 * 0.1 ** (step // 3)),
    "exponential": (exponential(0.5, factor=0.8), lambda step: 0.5 * 0.8**step),
}
each = pytest.mark.parametrize(("schedule", "by_hand"), CASES.values(), ids=CASES)


@each
def test_numbers(schedule: Schedule, by_hand: Callable[[int], float]) -> None:
    for step in range(15):
        value = schedule(step)
        assert type(value) is float
        assert value == pytest.approx(by_hand(step), abs=1e-12)
        assert schedule(np.int64(step)) == pytest.approx(value, abs=1e-15)


@each
def test_tensors(schedule: Schedule, by_hand: Callable[[int], float]) -> None:
    index = tc.static_index("index", 15)
    rate = schedule(index)
    for step in range(15):
        index.set(step)
        assert rate.dtype == "float64"
        assert float(rate) == pytest.approx(by_hand(step), abs=1e-12)


def trained_by_hand(problem: Regression, rates: list[float]) -> np.ndarray:
    w, b = problem.w0, problem.b0
    for rate in rates:
        by_w, by_b = problem.gradients(w, b)
        w, b = w - rate * by_w, b - rate * by_b
    return w


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    made: list[object] = []
    original = Executable.__init__

    def counting(self: Executable, program: object, *rest: object) -> None:
        made.append(program)
        original(self, program, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Executable, "__init__", counting)
    return made


@each
def test_one_routine_for_all_steps(schedule: Schedule, by_hand: Callable[[int], float], compiled: list[object]) -> None:
    problem = Regression("float64")
    step = tc.compile(tc.train.grad_update(problem.loss), tc.train.sgd_update(problem.loss, learning_rate=0.1))
    for number in range(12):
        step.run(learning_rate=schedule(number))
        # Equal programs are one, also those of other tests.
        assert len(compiled) <= 1
    expected = trained_by_hand(problem, [by_hand(number) for number in range(12)])
    np.testing.assert_allclose(problem.w.value, expected, atol=1e-12)


@each
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_counted_in_the_routine(
    schedule: Schedule, by_hand: Callable[[int], float], compiled: list[object], dtype: str
) -> None:
    problem = Regression(dtype)
    count = tc.tensor(0, label="count")
    step = tc.compile(
        tc.train.grad_update(problem.loss),
        tc.train.sgd_update(problem.loss, learning_rate=schedule(count)),
        tc.train.advance(count),
    )
    for _ in range(12):
        step.run()
        assert len(compiled) <= 1
    expected = trained_by_hand(problem, [by_hand(number) for number in range(12)])
    np.testing.assert_allclose(problem.w.value, expected, atol=1e-12 if dtype == "float64" else 1e-5)
    assert problem.w.value.dtype == dtype
    assert count.value == 12


def test_a_rate_that_is_a_tensor_starts_no_new_state() -> None:
    problem = Regression("float64")
    count = tc.tensor(0, label="count")

    def made() -> tc.Routine:
        update = tc.train.sgd_update(problem.loss, learning_rate=constant(0.1)(count), momentum=0.9)
        return tc.compile(tc.train.grad_update(problem.loss), update)

    made().run()
    made().run()
    first_w, first_b = problem.gradients(problem.w0, problem.b0)
    w, b = problem.w0 - 0.1 * first_w, problem.b0 - 0.1 * first_b
    second_w, _ = problem.gradients(w, b)
    np.testing.assert_allclose(problem.w.value, w - 0.1 * (0.9 * first_w + second_w), atol=1e-12)


def test_bad_arguments() -> None:
    for make, message in (
        (lambda: constant("fast"), "`rate` is a number, not 'fast'"),  # type: ignore[arg-type]
        (lambda: linear(0.1, 0), "`steps` is a number of steps, 1 or more, not 0"),
        (lambda: linear(0.1, 2.5), "`steps` is a number of steps, 1 or more, not 2.5"),  # type: ignore[arg-type]
        (lambda: cosine(0.1, 5, warmup=5), "`steps` is a number of steps, 6 or more, not 5"),
        (lambda: cosine(0.1, 5, warmup=-1), "`warmup` is a number of steps, 0 or more, not -1"),
        (lambda: stepwise(0.1, True), "`every` is a number of steps, 1 or more, not True"),
        (lambda: exponential(0.1, factor=None), "`factor` is a number, not None"),  # type: ignore[arg-type]
    ):
        with pytest.raises(tc.ConfigurationError) as caught:
            make()
        assert message in str(caught.value)
