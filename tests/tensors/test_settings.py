"""Numbers of a run: each call of code keeps its own until a run gives one; what is no such number is refused."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd


@cd
def descend(p, *, learning_rate):
    p -= learning_rate * p


@cd
def step_down(p, *, count):
    p -= count


def ones(name):
    return tc.param(name, init=[1.0])


def test_calls_with_different_numbers_keep_them():
    a, b, c = ones("a"), ones("b"), ones("c")
    code = [descend(a, learning_rate=0.1), descend(b, learning_rate=0.5), descend(c, learning_rate=0.1)]
    step = tc.compile(code)
    assert sum(each.name.startswith("learning_rate") for each in step.program.inputs) == 2  # 0.1 is one input
    step.run()
    np.testing.assert_allclose([a.value[0], b.value[0], c.value[0]], [0.9, 0.5, 0.9])


def test_a_run_gives_a_number_to_all_of_the_name():
    a, b = ones("a"), ones("b")
    step = tc.compile(descend(a, learning_rate=0.1), descend(b, learning_rate=0.5))
    step.run(learning_rate=0.25)
    np.testing.assert_allclose([a.value[0], b.value[0]], [0.75, 0.75])
    step.run()
    np.testing.assert_allclose([a.value[0], b.value[0]], [0.5625, 0.5625])


def test_an_integer_takes_no_fraction():
    a = ones("a")
    step = tc.compile(step_down(a, count=1))
    with pytest.raises(
        tc.ConfigurationError, match=r"`count` is an integer in this code, which 0\.5 is not(.|\n)*count=1\.0"
    ):
        step.run(count=0.5)
    step.run(count=2.0)
    assert a.value[0] == -1.0


def test_a_number_beside_a_faulty_one_is_not_taken():
    a = ones("a")
    data = tc.tensor(np.arange(6.0).reshape(3, 2), batch=1)
    batch_n = tc.static_index("batch_n", 3)
    step = tc.compile(descend(a, learning_rate=0.5), data[batch_n] * 1.0)
    with pytest.raises(tc.DataIndexError, match="`batch_n` = 3 is out of range"):
        step.run(learning_rate=0.25, batch_n=3)
    with pytest.raises(tc.ConfigurationError, match="`learning_rate` is a number, not a str"):
        step.run(batch_n=1, learning_rate="fast")
    with pytest.raises(tc.ConfigurationError, match=r"no number `lr`(.|\n)*learning_rate, batch_n"):
        step.run(lr=1.0)
    step.run()
    assert a.value[0] == 0.5
    assert batch_n.value == 0


def test_static_indices_of_one_name_move_together():
    first, second = tc.static_index("batch_n", 3), tc.static_index("batch_n", 2)
    data = tc.tensor(np.arange(6.0).reshape(3, 2), batch=1)
    x, y = data[first] * 1.0, data[second] * 10.0
    step = tc.compile(x, y)
    step.run(batch_n=1)
    np.testing.assert_array_equal([x.value, y.value], [[2.0, 3.0], [20.0, 30.0]])
    with pytest.raises(tc.DataIndexError):
        step.run(batch_n=2)
    assert (int(first), int(second)) == (1, 1)


def test_a_cell_at_a_static_index_is_written_in_place():
    @cd
    def put(a, x, n):
        a[n, i] += x[i]
        a[n, i] += a[n, i]

    @cd
    def take(x, a, n):
        x[i] += a[n, i]

    a, x = tc.tensor(np.zeros((3, 2)), label="a"), tc.tensor(np.array([1.0, 2.0]), label="x")
    n = tc.static_index("n", 3)
    for code in (put(a, x, n), take(x, a, n)):
        step = tc.compile(code)
        assert "copy" not in step.explain("loops")
        step.run(n=1)
    np.testing.assert_array_equal(a.value, [[0, 0], [2, 4], [0, 0]])
    np.testing.assert_array_equal(x.value, [3, 6])


def test_the_size_of_a_static_index_is_a_positive_integer():
    assert tc.static_index("n", 1).extent == 1
    assert tc.static_index("n", np.int64(2)).extent == 2
    for size in (0, -1, True, 2.0):
        with pytest.raises(tc.ConfigurationError, match="a size is an integer above 0"):
            tc.static_index("n", size)
