"""`@cd` functions: stores into memory, names of their own, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.runtime.test_decorators import Foreign

x = np.ones(3)


def test_cd_stores_into_memory() -> None:
    @cd
    def sgd(p, g, v, learning_rate, *, momentum, weight_decay):
        delta = g + weight_decay * p
        v = momentum * v + delta
        p -= learning_rate * v

    p, g, v = np.ones(3), np.full(3, 2.0), np.full(3, 4.0)
    new_p, new_v = sgd.interpret(p, g, v, 0.5, momentum=0.5, weight_decay=0.25)
    assert p[0] == 1
    assert v[0] == 4
    np.testing.assert_allclose(new_v, 0.5 * 4 + 2.25)
    np.testing.assert_allclose(new_p, 1 - 0.5 * 4.25)


def test_a_fresh_name_in_cd_is_a_tensor_of_its_own() -> None:
    @cd
    def swap(a, b):
        old = a
        a = b
        b = old

    first, second = swap.interpret(np.zeros(2), np.ones(2))
    assert first.tolist() == [1, 1]
    assert second.tolist() == [0, 0]


def test_cd_functions_called_from_cd_functions_store_into_the_same_memory() -> None:
    @cd
    def increment(a, amount):
        a += amount

    @cd
    def twice(a):
        increment(a, 1.0)
        increment(a, a)

    assert twice.interpret(np.ones(2))[0].tolist() == [4, 4]


def test_whole_stores() -> None:
    @cd
    def fill(a, b):
        a[...] = 3
        b[:] = a * 2

    assert [part.tolist() for part in fill.interpret(np.zeros(2), np.zeros(2))] == [[3, 3], [6, 6]]


def test_cd_checks_what_it_writes() -> None:
    @cd
    def increment(a, b):
        a += b

    a = np.ones(3)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(tc.ShapeError, match="writes to `a`, but the array is read-only"):
        increment(frozen, a)
    with pytest.raises(tc.ShapeError, match="writes to `a`, which shares memory with `b`"):
        increment(a, a)
    with pytest.raises(tc.ShapeError, match="some of its cells share memory"):
        increment(np.lib.stride_tricks.as_strided(np.ones(1), (3,), (0,)), a)
    with pytest.raises(tc.DtypeError, match="writes to `a`, which is a Foreign"):
        increment(Foreign(), np.ones(3))
    with pytest.raises(tc.DtypeError, match="float64"):
        increment(np.ones(3, np.int64), a)
    assert a.tolist() == [1, 1, 1]


def test_a_target_keeps_its_shape() -> None:
    @cd
    def widen(a, b):
        a += b

    with pytest.raises(tc.ShapeError, match="does not broadcast to `a`"):
        widen.interpret(np.ones((1, 3)), np.ones((2, 3)))
    with pytest.raises(tc.ShapeError, match="rank 2 cannot be stored in `a`, which has rank 1"):
        widen.interpret(np.ones(3), np.ones((2, 3)))


def test_overlap_is_found_in_repeated_calls_too() -> None:
    @cd
    def step(p, q, g):
        p -= g
        q += g

    memory = np.ones(12)
    step(memory[:3], memory[3:6], memory[6:9])
    step(memory[:3], memory[3:6], memory[6:9])
    kept = memory.copy()
    with pytest.raises(tc.ShapeError, match="writes to `p`, which shares memory with `q`"):
        step(memory[:3], memory[2:5], memory[6:9])
    with pytest.raises(tc.ShapeError, match="writes to `q`, which shares memory with `g`"):
        step(memory[:3], memory[3:6], memory[5:8])
    frozen = np.ones(3)
    frozen.flags.writeable = False
    with pytest.raises(tc.ShapeError, match="writes to `q`, but the array is read-only"):
        step(memory[:3], frozen, memory[6:9])
    # Interleaved cells: the stretches of memory overlap, the cells do not.
    np.testing.assert_array_equal(memory, kept)
    step(memory[0:6:2], memory[1:6:2], memory[6:9])
    step(memory[0:6:2], memory[1:6:2], memory[6:9])
    np.testing.assert_array_equal(memory[0:6:2], kept[0:6:2] - 2)
    np.testing.assert_array_equal(memory[1:6:2], kept[1:6:2] + 2)


def test_an_operation_that_returns_nothing_is_refused_inside_others() -> None:
    @op
    def doubled(v):
        v *= 2

    @op
    def used(x):
        y = x * 1
        doubled(y)
        return y

    @cd
    def used_in_code(x):
        doubled(x)

    for function in (doubled, used, used_in_code, used.interpret):
        with pytest.raises(tc.DslSyntaxError, match="`doubled` returns nothing, and an operation gives its results by"):
            function(np.ones(2))


def test_code_that_changes_a_number_of_python() -> None:
    @cd
    def scale(x, y):
        x *= y

    x = np.array(3.0)
    scale(x, 2.0)
    assert x == 6
    with pytest.raises(tc.DslSyntaxError, match=r"`scale` changes `x`, which is a number of Python's(.*\n)*.*np.array"):
        scale(3.0, 2.0)

    @cd
    def in_rounds(x, n):
        for _ in range(n):
            if x > 0:
                x *= 2.0

    @cd
    def by_another(x, w):
        scale(x, 2.0)
        w *= x

    @cd
    def of_configuration(*, x=1.0):
        x *= 2.0

    for code, arguments in ((in_rounds, (3.0, 2)), (by_another, (3.0, np.ones(2))), (of_configuration, ())):
        with pytest.raises(tc.DslSyntaxError, match=r"changes `x`, which is a number of Python's here, and nothing"):
            code(*arguments)
    in_rounds(x, 2)
    assert x == 24

    @cd
    def descend(p, rate):
        rate *= 0.5
        p -= rate * p

    p = np.ones(2)
    descend(p, 0.5)
    np.testing.assert_array_equal(p, [0.75, 0.75])
