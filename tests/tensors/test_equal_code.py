"""Code for tensors that are alike is staged once; what it depends on besides is looked at in every call."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op, output
from tcdsl.tensors.functions import tensor_calls

RATES = {"fast": 0.5}
TABLE = np.array([0.25, 0.5])


@cd
def descent(p, *, rate):
    velocity = output(init=p)
    velocity = 0.5 * velocity + p.grad
    p -= rate * velocity


@cd
def outer(p, *, rate):
    p -= rate * p
    descent(p, rate=rate)


def parameters(*shapes, label="w"):
    return [
        tc.param(f"{label}{k}", o=shape[:1], i=shape[1:], init=np.full(shape, k + 1.0))
        for k, shape in enumerate(shapes)
    ]


def loss_of(made):
    total = (made[0] * made[0]).sum()
    for each in made[1:]:
        total = total + (each * each).sum()
    return total


def stepped(rule, made, **numbers):
    step = tc.compile(tc.train.grad_update(loss_of(made)), [rule(p, **numbers) for p in made])
    for _ in range(2):
        step.run()
    return step


@pytest.fixture
def staged(monkeypatch):
    """The shapes with which code is staged."""
    shapes = []

    def recorded(function, positional, *rest):
        shapes.append(positional[0][1].sizes)
        return original(function, positional, *rest)

    original = tensor_calls._recorded
    monkeypatch.setattr(tensor_calls, "_recorded", recorded)
    return shapes


@pytest.mark.parametrize("rule", [descent, outer, tc.train.adam, tc.train.adamw])
def test_each_shape_is_staged_once_however_many_tensors_there_are(rule, staged):
    numbers = {"rate" if rule in (descent, outer) else "learning_rate": 0.0625}
    tc.train.update(parameters((3, 5), (5, 3)), rule, **numbers)
    first = len(staged)
    assert set(staged) == {(3, 5), (5, 3)}
    tc.train.update(parameters((5, 3), (3, 5), (3, 5)), rule, **numbers)
    assert len(staged) == first


@pytest.mark.parametrize("rule", [descent, outer])
def test_every_tensor_has_its_own_state(rule):
    made = parameters((3, 2), (2, 3), (3, 2), (3, 2))
    step = stepped(rule, made, rate=0.25)
    for number, each in enumerate(made):
        value = velocity = number + 1.0
        for _ in range(2):
            gradient = 2 * value
            value -= 0.25 * value * (rule is outer)
            velocity = 0.5 * velocity + gradient
            value -= 0.25 * velocity
        np.testing.assert_allclose(each.value, np.full(each.sizes, value), rtol=1e-12)
    for name in ("w0", "w2", "w3"):
        assert f"velocity_{name}_2[i, j] = 0.5 * velocity_{name}[i, j] + d_{name}[i, j]" in str(step.code)


def test_the_state_goes_on_where_code_is_made_again():
    first, second = parameters((2,), (2,))
    stepped(descent, [first, second], rate=0.25)
    held = np.array(second.value)
    stepped(descent, [first, second], rate=0.25)
    fresh = tc.param("w", o=2, init=held)
    stepped(descent, [fresh], rate=0.25)
    assert not np.allclose(second.value, fresh.value)


def test_what_the_function_reads_is_looked_at():
    @cd
    def scaled(p, *, factor):
        p *= RATES["fast"] * factor

    made = parameters((2,), (2,), (2,))
    codes = [scaled(made[0], factor=2.0)]
    RATES["fast"] = 2.0
    codes += [scaled(made[1], factor=2.0), scaled(made[2], factor=4.0)]
    RATES["fast"] = 0.5
    tc.compile(codes).run()
    assert [float(each.value[0]) for each in made] == [1.0, 8.0, 24.0]


def test_cells_that_python_reads_are_looked_at():
    @cd
    def scaled(p):
        p *= float(TABLE[0])

    made = parameters((2,), (2,))
    codes = [scaled(made[0])]
    TABLE[0] = 4.0
    codes += [scaled(made[1])]
    TABLE[0] = 0.25
    tc.compile(codes).run()
    assert [float(each.value[0]) for each in made] == [0.25, 8.0]


def test_tensors_around_the_function_and_repeated_ones_are_their_own():
    around = tc.tensor(np.array([10.0, 20.0]), label="around")

    @cd
    def added(p, q):
        q += p * around

    made = parameters((2,), (2,), (2,), (2,))
    tc.compile([added(made[0], made[1]), added(made[2], made[3]), added(made[3], made[3])]).run()
    np.testing.assert_array_equal(made[1].value, [12.0, 22.0])
    np.testing.assert_array_equal(made[3].value, np.array([34.0, 64.0]) * [11.0, 21.0])


def test_types_rows_and_numbers_make_other_code():
    @cd
    def halved(p, *, by):
        p *= by

    small = tc.tensor(np.ones(2, np.float32), label="a")
    wide, row = tc.param("b", o=2, init=np.ones(2)), tc.param("c", o=(), i=2, init=np.ones(2))
    tc.compile([halved(each, by=by) for each in (small, wide, row) for by in (0.5, -0.0)]).run()
    for each, kind in ((small, np.float32), (wide, np.float64), (row, np.float64)):
        assert each.value.dtype == kind
        assert np.signbit(each.value).all()


def test_computed_tensors_that_code_reads_stand_where_they_did():
    @op
    def square(w):
        return w * w

    @cd
    def both(w, t, c):
        w += 1.0
        c = t

    found = []
    for k in range(2):
        w, c = tc.param(f"w{k}", o=2, init=np.full(2, k + 1.0)), tc.tensor(np.zeros(2))
        tc.compile(both(w, square(w), c)).run()
        found.append(float(c.value[0]))
    assert found == [4.0, 9.0]
