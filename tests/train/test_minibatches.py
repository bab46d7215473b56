"""Minibatches inside of the compiled step, epochs over them, and what a run costs."""

from __future__ import annotations

import gc
import math
import sys
import tracemalloc
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.primitives import relu

BATCHES, SIZE = 5, 4
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(BATCHES * SIZE, 3)).astype("float32")
Y = GENERATOR.normal(size=(BATCHES * SIZE, 2)).astype("float32")
W0 = GENERATOR.normal(size=(2, 3)).astype("float32")
ORDER = GENERATOR.permutation(len(X)).reshape(BATCHES, SIZE)


def step_by_hand(w: np.ndarray, x: np.ndarray, y: np.ndarray, rate: float) -> tuple[np.ndarray, float]:
    residual = x @ w.T - y
    return w - rate * (2 / residual.size) * residual.T @ x, float((residual**2).mean())


class Sliced:
    """A step on ``data[batch_n]``."""

    def __init__(self) -> None:
        self.batch_n = tc.static_index("batch_n", BATCHES)
        x = tc.tensor(X.reshape(BATCHES, SIZE, 3), batch=2, label="x")[self.batch_n]
        y = tc.tensor(Y.reshape(BATCHES, SIZE, 2), batch=2, label="y")[self.batch_n]
        self.made(x, y)

    def made(self, x: Any, y: Any) -> None:
        self.w = tc.param("w", o=2, i=3, init=W0, dtype="float32")
        self.loss = ((self.w @ x - y) ** 2).mean()
        self.step = tc.compile(tc.train.grad_update(self.loss), tc.train.sgd_update(self.loss, learning_rate=0.1))

    def rows(self, k: int) -> Any:
        return slice(k * SIZE, (k + 1) * SIZE)


class Gathered(Sliced):
    """A step on ``data[order[batch_n]]``."""

    def __init__(self) -> None:
        self.batch_n = tc.static_index("batch_n", BATCHES)
        self.order = tc.tensor(ORDER, batch=2, label="order")
        rows = self.order[self.batch_n]
        self.made(tc.tensor(X, batch=1, label="x")[rows], tc.tensor(Y, batch=1, label="y")[rows])

    def rows(self, k: int) -> Any:
        return np.asarray(self.order)[k]


both = pytest.mark.parametrize("make", [Sliced, Gathered])


@both
def test_one_routine_serves_all_minibatches(make: type[Sliced]) -> None:
    problem = make()
    problem.step.compile()
    bound = problem.step._bound
    w = W0
    for k in (0, 3, 1, 4, 2, 3, 0):
        w, loss = step_by_hand(w, X[problem.rows(k)], Y[problem.rows(k)], 0.1)
        problem.step.run(batch_n=k)
        np.testing.assert_allclose(problem.w.value, w, atol=1e-5)
        np.testing.assert_allclose(problem.loss.value, loss, atol=1e-5)
    assert problem.step._bound is bound
    # An index stays where it was set.
    w, _ = step_by_hand(w, X[problem.rows(0)], Y[problem.rows(0)], 0.1)
    problem.step.run()
    np.testing.assert_allclose(problem.w.value, w, atol=1e-5)


@both
@pytest.mark.parametrize("k", [-1, BATCHES])
def test_out_of_range_changes_nothing(make: type[Sliced], k: int) -> None:
    problem = make()
    problem.step.run(batch_n=2)
    before, loss = problem.w.value.copy(), problem.loss.value.copy()
    with pytest.raises(tc.DataIndexError) as caught:
        problem.step.run(learning_rate=0.7, batch_n=k)
    assert f"the static index `batch_n` = {k} is out of range" in str(caught.value)
    assert f"it runs from 0 to {BATCHES - 1}" in str(caught.value)
    np.testing.assert_array_equal(problem.w.value, before)
    np.testing.assert_array_equal(problem.loss.value, loss)
    problem.step.run()
    expected, _ = step_by_hand(before, X[problem.rows(2)], Y[problem.rows(2)], 0.1)
    np.testing.assert_allclose(problem.w.value, expected, atol=1e-5)


def test_assigning_an_index_checks_its_range() -> None:
    batch_n = tc.static_index("batch_n", BATCHES)
    batch_n.value = 3
    assert batch_n.value == 3
    with pytest.raises(tc.DataIndexError, match="the static index `batch_n` = 5 is out of range"):
        batch_n.value = BATCHES
    with pytest.raises(tc.ConfigurationError, match=r"the static index `batch_n` is an integer, not 1.5"):
        batch_n.value = 1.5
    assert batch_n.value == 3


def test_static_indices_need_no_checks_while_running() -> None:
    sliced, gathered = Sliced().step, Gathered().step
    assert "check" not in str(sliced.explain("loops"))
    # What the rows hold is known only there.
    assert "< 20  (of x, axis 0)" in str(gathered.explain("loops"))
    assert "(of order" not in str(gathered.explain("loops"))
    # Axes shorter than the index keep theirs.
    batch_n = tc.static_index("batch_n", BATCHES + 1)
    y = tc.tensor(X.reshape(BATCHES, -1), batch=1, label="x")[batch_n] * 2
    step = tc.compile(y)
    step.run(batch_n=BATCHES - 1)
    with pytest.raises(tc.DataIndexError, match="index 5 is out of range for axis 0 of `x`"):
        step.run(batch_n=BATCHES)


def test_gradients_at_a_static_index() -> None:
    batch_n = tc.static_index("batch_n", 3)
    table = tc.param("table", o=(3, 2), init=np.arange(6.0).reshape(3, 2), dtype="float64")
    loss = (table[batch_n] ** 2).sum()
    step = tc.compile(tc.train.grad_update(loss))
    for k in range(3):
        step.run(batch_n=k)
        expected = np.zeros((3, 2))
        expected[k] = 2 * np.arange(6.0).reshape(3, 2)[k]
        np.testing.assert_array_equal(table.grad, expected)
    assert "check" not in str(step.explain("loops"))


def test_a_row_that_does_not_exist_changes_nothing() -> None:
    problem = Gathered()
    problem.step.run(batch_n=1)
    wrong = ORDER.copy()
    wrong[1, 2] = len(X)
    problem.order.value = wrong
    before, gradient = problem.w.value.copy(), problem.w.grad.copy()
    with pytest.raises(tc.DataIndexError) as caught:
        problem.step.run()
    assert f"index {len(X)} is out of range" in str(caught.value)
    np.testing.assert_array_equal(problem.w.value, before)
    np.testing.assert_array_equal(problem.w.grad, gradient)
    problem.order.value = ORDER
    problem.step.run()
    assert np.any(problem.w.value != before)


@both
def test_epochs_equal_the_loop_by_hand(make: type[Sliced]) -> None:
    problem = make()
    rate = tc.train.linear(0.2, 3 * BATCHES)
    seen: list[tuple[int, float]] = []
    means = tc.train.epochs(
        problem.step,
        problem.batch_n,
        3,
        loss=problem.loss,
        learning_rate=rate,
        on_epoch=lambda epoch, mean: seen.append((epoch, mean)),
    )
    w, number, expected = W0, 0, []
    for _ in range(3):
        losses = []
        for k in range(BATCHES):
            w, loss = step_by_hand(w, X[problem.rows(k)], Y[problem.rows(k)], rate(number))
            losses.append(loss)
            number += 1
        expected.append(sum(losses) / BATCHES)
    np.testing.assert_allclose(problem.w.value, w, atol=1e-5)
    np.testing.assert_allclose(means, expected, atol=1e-5)
    assert seen == list(enumerate(means))


def test_shuffling_between_epochs() -> None:
    problem = Gathered()
    generator = np.random.default_rng(1)

    def shuffle(epoch: int, mean: float) -> None:
        problem.order.value = generator.permutation(len(X)).reshape(BATCHES, SIZE)

    tc.train.epochs(problem.step, problem.batch_n, 2, on_epoch=shuffle)
    again, w, order = np.random.default_rng(1), W0, ORDER
    for _ in range(2):
        for k in range(BATCHES):
            w, _ = step_by_hand(w, X[order[k]], Y[order[k]], 0.1)
        order = again.permutation(len(X)).reshape(BATCHES, SIZE)
    np.testing.assert_allclose(problem.w.value, w, atol=1e-5)


def test_epochs_stop_when_asked() -> None:
    problem = Sliced()
    means = tc.train.epochs(problem.step, problem.batch_n, 100, on_epoch=lambda epoch, mean: epoch == 2)
    assert len(means) == 3
    assert all(math.isnan(mean) for mean in means)
    assert tc.train.epochs(problem.step, problem.batch_n, 0) == []


def test_progress_is_shown_in_terminals_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = Sliced()
    tc.train.epochs(problem.step, problem.batch_n, 2, loss=problem.loss)
    assert capsys.readouterr().out == ""
    import io

    import rich
    from rich.console import Console

    shown = io.StringIO()
    monkeypatch.setattr(rich, "get_console", lambda: Console(file=shown, force_terminal=True, width=100))
    means = tc.train.epochs(problem.step, problem.batch_n, 2, loss=problem.loss)
    assert "2/2" in shown.getvalue()
    assert f"loss {means[-1]:.6g}" in shown.getvalue()
    shown.truncate(0)
    tc.train.epochs(problem.step, problem.batch_n, 2, loss=problem.loss, progress=False)
    assert shown.getvalue() == ""


def test_bad_arguments_of_epochs() -> None:
    problem = Sliced()
    for arguments, message in (
        ((problem.loss, problem.batch_n, 1), "a Tensor as a routine"),
        ((problem.step, 5, 1), "a int as the index"),
        ((problem.step, problem.batch_n, -1), "-1 epochs"),
    ):
        with pytest.raises(tc.ConfigurationError, match=message):
            tc.train.epochs(*arguments)
    with pytest.raises(tc.ConfigurationError, match="the loss is no tensor of one cell"):
        tc.train.epochs(problem.step, problem.batch_n, 1, loss=problem.w)
    with pytest.raises(tc.ConfigurationError, match="this routine has no number `rate`"):
        tc.train.epochs(problem.step, problem.batch_n, 1, rate=0.1)


@op
def layer(x, *, label):
    return relu("w" @ x + "b"[16])


def deep(layers: int) -> tc.Routine:
    batch_n = tc.static_index("batch_n", BATCHES)
    h = tc.tensor(np.ones((BATCHES, SIZE, 3)), batch=2, label="x")[batch_n]
    for number in range(layers):
        h = layer(label=f"L{number}")(h)
    loss = (h * h).mean()
    step = tc.compile(
        tc.train.grad_update(loss),
        tc.train.clip_gradients(loss, norm=1.0),
        tc.train.adam_update(loss, learning_rate=0.01),
    )
    # What the environment asks to check is checked in Python.
    with tc.config(check=""):
        return step.compile()


def test_a_run_allocates_nothing() -> None:
    step = deep(3)
    for k in range(50):
        step.run(batch_n=k % BATCHES, learning_rate=0.01)
    gc.collect()
    blocks = sys.getallocatedblocks()
    tracemalloc.start()
    try:
        for _ in range(200):
            step.run(batch_n=3, learning_rate=0.02)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        step.run(batch_n=2, learning_rate=0.03)
        after, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # Keyword arguments, the clock and the like; one layer's temporaries alone would be 512 bytes each.
    assert after - before < 256
    assert peak - before < 2500
    gc.collect()
    assert abs(sys.getallocatedblocks() - blocks) < 100


def python_calls(step: tc.Routine) -> int:
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    step.run(batch_n=1)
    sys.setprofile(profile)
    try:
        step.run(batch_n=2)
    finally:
        sys.setprofile(None)
    return count


def test_python_does_the_same_little_whatever_is_run() -> None:
    shallow, long = python_calls(deep(1)), python_calls(deep(4))
    assert abs(shallow - long) <= 1  # releasing a lock is reported now and then
    assert shallow < 40


def test_two_routines_share_parameters() -> None:
    w = tc.param("w", o=3, init=1.0, dtype="float64")
    first, second = ((w - 3) ** 2).sum(), ((w + 1) ** 2).sum()
    up = tc.compile(tc.train.grad_update(first), tc.train.sgd_update(first, learning_rate=0.25))
    down = tc.compile(tc.train.grad_update(second), tc.train.sgd_update(second, learning_rate=0.25))
    up.run()
    np.testing.assert_array_equal(w.value, [2.0] * 3)
    np.testing.assert_array_equal(w.grad, [-4.0] * 3)
    down.run()
    np.testing.assert_array_equal(w.value, [0.5] * 3)
    np.testing.assert_array_equal(w.grad, [6.0] * 3)
    up.run(learning_rate=0.5)
    down.run()
    np.testing.assert_array_equal(w.value, [1.0] * 3)
    w.value = np.zeros(3)
    up.run()
    np.testing.assert_array_equal(w.value, [3.0] * 3)
    np.testing.assert_array_equal(first.value, 27.0)
