"""What code keeps from run to run: momenta and the like, by label, to look at, save and set."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import cd
from tcdsl.tensors.graph_linking.code import Code, GradientUpdate


@cd
def momentum(p, *, learning_rate, beta):
    velocity = beta * velocity + p.grad
    p -= learning_rate * velocity


def trained() -> tuple[tc.Tensor, tc.Tensor, tc.Routine]:
    w, b = tc.param("w", init=[1.0, 2.0]), tc.param("b", init=[0.5, 0.5])
    loss = (w * w + 3 * b).sum()
    code = Code([GradientUpdate(loss, (w, b))])
    return w, b, tc.compile(code, [momentum(p, learning_rate=0.1, beta=0.9) for p in (w, b)])


def test_state_is_what_the_code_of_the_routine_keeps() -> None:
    w, _, step = trained()
    assert list(step.state) == ["velocity.w", "velocity.b"]
    assert step.state["velocity.w"].shape == (2,)
    assert_allclose(step.state["velocity.w"].value, [0.0, 0.0])
    step.run()
    assert_allclose(step.state["velocity.w"].value, [2.0, 4.0])
    assert_allclose(step.state["velocity.b"].value, [3.0, 3.0])
    assert tc.compile(Code([GradientUpdate((w * w).sum(), (w,))])).state == {}


def test_state_set_to_zero_starts_anew() -> None:
    w, b, step = trained()

    def three_steps() -> np.ndarray:
        w.value, b.value = [1.0, 2.0], [0.5, 0.5]
        for each in step.state.values():
            each.value = 0
        for _ in range(3):
            step.run()
        return np.array(w.value)

    first = three_steps()
    assert_allclose(three_steps(), first, rtol=0)
    w.value, b.value = [1.0, 2.0], [0.5, 0.5]
    for _ in range(3):
        step.run()
    assert not np.allclose(w.value, first)


def test_equal_labels_get_a_number() -> None:
    w, other = tc.param("w", init=[1.0]), tc.param("w", init=[1.0])
    code = Code([GradientUpdate((w * other).sum(), (w, other))])
    step = tc.compile(code, [momentum(p, learning_rate=0.1, beta=0.9) for p in (w, other)])
    assert list(step.state) == ["velocity.w", "velocity.w_2"]


@cd
def changed(p):
    change = p - last  # the one that reads it is of no use
    last = p * 2.0


def test_state_that_is_only_written_stands_there_too() -> None:
    step = tc.compile(changed(tc.tensor([1.0, 2.0], label="p")))
    assert [each.name for each in step.program.inputs] == ["p"]
    step.run()
    assert_allclose(step.state["last.p"].value, [2.0, 4.0])


@cd
def summed(p, *, logic):
    total[logic] += p * 1.0
    assign(largest, "=@^", p, logic=".")


@cd
def summed_without_logic(p):
    total += p * 1.0


def test_accumulating_by_a_logic_onto_a_name_that_nothing_has_written_is_state() -> None:
    x = tc.tensor(np.array([[1.0, -2.0], [3.0, 4.0]]), label="x")
    step = tc.compile(summed(x, logic="ij; => ji"), summed_without_logic(x))
    for _ in range(3):
        step.run()
    assert_allclose(step.state["total.x"].value, 3 * np.array([[1.0, 3.0], [-2.0, 4.0]]))
    assert_allclose(step.state["largest.x"].value, [[1.0, 0.0], [3.0, 4.0]])
    assert_allclose(step.state["total.x_2"].value, 3 * x.value)
    with pytest.raises(tc.DslSyntaxError, match="`total` is read before anything is written to it"):
        summed(np.ones((2, 2)), logic="ij; => ji")
