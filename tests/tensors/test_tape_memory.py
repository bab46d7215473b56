"""What training steps with loops hold: what their tapes take, from step to step the same, and no more than asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op

B, D, H = 8, 4, 32
STATE = B * H * 8  # the bytes of one state
CLEAR = Path("/proc/self/clear_refs")


@op
def rnn(x: real[T, B, D], h: real[B, H], W, U):
    for t in range(T):
        n[b, k] = tanh(sum(h[b, j] * W[0, j, k]) + sum(x[t, b, d] * U[0, d, k]))
        h = n
    return h


@op
def every_16th(x: real[T, B, D], h: real[B, H], W, U):
    for t in tc.loop(T, checkpoint_every=16):
        n[b, k] = tanh(sum(h[b, j] * W[0, j, k]) + sum(x[t, b, d] * U[0, d, k]))
        h = n
    return h


@op
def four_states(x: real[T, B, D], h: real[B, H], W, U):
    for t in tc.loop(T, checkpoints=4):
        n[b, k] = tanh(sum(h[b, j] * W[0, j, k]) + sum(x[t, b, d] * U[0, d, k]))
        h = n
    return h


@op
def lstm(x: real[T, B, D], h: real[B, H], W, U):
    c = 0 * h
    for t in range(T):
        z[b, g, k] = sum(h[b, j] * W[g, j, k]) + sum(x[t, b, d] * U[g, d, k])
        n[b, k] = c[b, k] / (1 + exp(-z[b, 0, k])) + tanh(z[b, 3, k]) / (1 + exp(-z[b, 1, k]))
        m[b, k] = tanh(n[b, k]) / (1 + exp(-z[b, 2, k]))
        c, h = n, m
    return h


@op
def squared(W, U, x, h):
    return sum(rnn(x, h, W, U)[b, k] ** 2)


@cd
def descend(W, U, x, h):
    slope = tc.grad(squared)(W, U, x, h)
    W[g, j, k] -= 0.1 * slope[g, j, k]


@op
def descended(W, U, x, h):
    slope = tc.grad(squared)(W, U, x, h)
    return W - 0.1 * slope


def given(rounds: int, gates: int) -> tuple[list[tc.Tensor], list[tc.Tensor]]:
    generator = np.random.default_rng(5)
    weights = [tc.param(label, o=(gates, inputs, H)) for label, inputs in (("W", H), ("U", D))]
    for weight, inputs in zip(weights, (H, D), strict=True):
        weight.value = generator.standard_normal((gates, inputs, H)) / inputs
    return [tc.tensor(generator.random((rounds, B, D))), tc.tensor(np.zeros((B, H)))], weights


def step_of(function: Any, rounds: int, update: Any = tc.train.sgd_update) -> tuple[tc.Tensor, Any]:
    data, weights = given(rounds, 4 if function is lstm else 1)
    loss = (function(*data, *weights) ** 2).mean()
    return loss, tc.compile(tc.train.grad_update(loss), update(loss, learning_rate=0.01))


def allocated(step: tc.Routine) -> int:
    """The bytes that a run holds at most, the memory behind its tensors apart."""
    held = sum(array.nbytes for array in step._arrays())
    return int(str(step.explain("loops")).rstrip().rpartition("peak ")[2]) - held


def held_now(what: str) -> int:
    status = Path("/proc/self/status").read_text()
    return 1000 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith(what))


# A round of the LSTM keeps its four gates, the factors of two, and both states, each once.
@pytest.mark.parametrize(
    ("function", "update", "states"), [(rnn, tc.train.sgd_update, 1), (lstm, tc.train.adam_update, 8)]
)
def test_a_step_takes_what_its_tape_takes(function: Any, update: Any, states: int) -> None:
    rounds = (16, 64, 256, 1024)
    taken = [allocated(step_of(function, each, update)[1]) for each in rounds]
    slopes = np.diff(taken) / np.diff(rounds)
    assert (slopes <= states * STATE).all()
    np.testing.assert_allclose(slopes, slopes[0], rtol=0.05)


@pytest.mark.skipif(not CLEAR.exists(), reason="the system does not say what a process has held at most")
@pytest.mark.parametrize("update", [tc.train.sgd_update, tc.train.adam_update])
def test_steps_hold_no_more_than_the_first_one(update: Any) -> None:
    _, step = step_of(lstm, 256, update)
    step.compile()
    before = held_now("VmRSS")
    CLEAR.write_text("5")
    step.run()
    assert held_now("VmHWM") - before < 256 * 8 * STATE + 1_000_000
    after = held_now("VmRSS")
    for _ in range(40):
        step.run()
    assert held_now("VmRSS") - after < 400_000


@pytest.mark.parametrize(("function", "most"), [(every_16th, 256 // 16 + 2 * 16), (four_states, 4 + 12)])
def test_steps_keep_the_states_that_loops_ask_for(function: Any, most: int) -> None:
    loss, step = step_of(function, 256)
    assert allocated(step) < most * STATE
    wanted, whole = step_of(rnn, 256)
    assert allocated(whole) > 256 * STATE
    for _ in range(3):
        step.run()
        whole.run()
    np.testing.assert_allclose(float(loss.value), float(wanted.value), rtol=1e-9)


@pytest.mark.parametrize("function", [rnn, pytest.param(lstm, marks=pytest.mark.long)])
def test_steps_keep_as_many_states_as_fit(function: Any) -> None:
    wanted, whole = step_of(function, 300)
    for limit in (200 * STATE, 100 * STATE):
        with tc.config(tape_memory=limit):
            for _ in range(2):  # the second time from disk
                loss, step = step_of(function, 300)
                assert allocated(step) <= limit < allocated(whole)
    for _ in range(3):
        step.run()
        whole.run()
    np.testing.assert_allclose(float(loss.value), float(wanted.value), rtol=1e-9)


def test_gradients_inside_of_what_runs_on_tensors_have_as_many_states_as_fit() -> None:
    def made() -> list[tuple[tc.Routine, tc.Tensor]]:
        data, weights = given(300, 1)
        changed = tc.compile(descend(*weights, *data))
        new = descended(*given(300, 1)[1], *data)
        return [(changed, weights[0]), (tc.compile(new), new)]

    whole = made()
    with tc.config(tape_memory=60 * STATE):
        small = made()
    for (step, found), (other, wanted) in zip(small, whole, strict=True):
        assert allocated(step) < 80 * STATE < 300 * STATE < allocated(other)
        step.run()
        other.run()
        np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-9)


def test_tensors_and_arrays_need_the_same_memory() -> None:
    data, weights = given(300, 1)
    arrays = [np.array(each.value) for each in (*weights, *data)]
    peaks = [
        int(str(text).rstrip().rpartition("peak ")[2])
        for text in (descend.explain("loops", *arrays), tc.compile(descend(*weights, *data)).explain("loops"))
    ]
    assert peaks[1] < 1.02 * peaks[0]
