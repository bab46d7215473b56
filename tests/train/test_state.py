"""State of code that is made of other code."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd


@cd
def averaged(p, *, decay):
    mean = decay * mean + (1 - decay) * p
    p = mean


def test_inner_code_keeps_the_state_of_each_tensor_apart() -> None:
    @cd
    def both(p, q, *, decay):
        averaged(p, decay=decay)
        averaged(q, decay=decay)

    p, q = tc.param("p", o=2, init=1.0, dtype="float64"), tc.param("q", o=3, init=4.0, dtype="float64")
    step = tc.compile(both(p, q, decay=0.5))
    step.run()
    np.testing.assert_array_equal(p.value, [0.5, 0.5])
    np.testing.assert_array_equal(q.value, [2.0, 2.0, 2.0])
    step.run()
    np.testing.assert_array_equal(p.value, [0.5, 0.5])
    np.testing.assert_array_equal(q.value, [2.0, 2.0, 2.0])
    assert [state.label for states in p.states.values() for state in states.values()] == ["mean.p"]
    assert [state.label for states in q.states.values() for state in states.values()] == ["mean.q"]


def test_inner_code_has_the_state_that_it_has_by_itself() -> None:
    @cd
    def outer(p, *, decay):
        averaged(p, decay=decay)

    p = tc.param("p", o=(), init=8.0, dtype="float64")
    tc.compile(averaged(p, decay=0.5)).run()
    assert p.value == 4.0
    tc.compile(outer(p, decay=0.5)).run()
    assert p.value == 4.0


def test_inner_code_on_what_is_no_tensor_of_the_graph_has_its_state_in_the_outer_code() -> None:
    @cd
    def outer(p, *, decay):
        square_of = p * p
        averaged(square_of, decay=decay)
        p = square_of

    p = tc.param("p", o=(), init=2.0, dtype="float64")
    step = tc.compile(outer(p, decay=0.5))
    step.run()
    assert p.value == 2.0
    step.run()
    assert p.value == 3.0
    assert [state.label for states in p.states.values() for state in states.values()] == ["mean.p"]


def test_a_declared_name_is_state_where_it_is_read_first() -> None:
    @cd
    def sums(p, *, rate):
        total = tc.output()
        fresh = tc.output()
        fresh = 2 * p
        total = total + rate * fresh
        p += total

    p = tc.param("p", o=2, init=1.0, dtype="float64")
    step = tc.compile(sums(p, rate=1.0))
    step.run()
    np.testing.assert_array_equal(p.value, [3.0, 3.0])
    step.run()
    np.testing.assert_array_equal(p.value, [11.0, 11.0])
    assert [state.label for states in p.states.values() for state in states.values()] == ["total.p"]


def test_on_arrays_state_is_an_error_that_says_so() -> None:
    with pytest.raises(tc.DslSyntaxError) as caught:
        tc.train.sgd(np.ones(3), np.ones(3), learning_rate=0.1, momentum=0.9)
    assert "a declared target is read" in str(caught.value)
    assert "a parameter, for which the call passes a buffer" in str(caught.value)


def test_code_declares_no_parameters() -> None:
    @cd
    def by_string(p):
        p -= 0.1 * ("w" * p)

    @cd
    def by_call(p):
        p -= 0.1 * tc.param("w", o=3)

    p = tc.param("p", o=3, init=1.0)
    for given in (p, np.ones(3)):
        with pytest.raises(tc.DslSyntaxError, match="the string 'w' is an operand of tensor arithmetic"):
            by_string(given)
        with pytest.raises(tc.DslSyntaxError, match="the parameter `w` is made in code"):
            by_call(given)


def test_numbers_of_numpy_are_numbers_of_the_run() -> None:
    p = tc.param("p", o=2, init=1.0, dtype="float64")
    step = tc.compile(averaged(p, decay=np.float32(0.5)))
    step.run(decay=0.25)
    np.testing.assert_array_equal(p.value, [0.75, 0.75])


def test_configuration_that_cannot_be_hashed() -> None:
    p = tc.param("p", o=2, init=1.0)
    with pytest.raises(tc.ConfigurationError, match="the keyword argument `decay` is configuration, but a list"):
        averaged(p, decay=[0.5])
