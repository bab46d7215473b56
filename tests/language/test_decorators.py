"""`@op` and `@cd`: values and memory."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op


def test_op_takes_tensors_and_gives_new_tensors() -> None:
    @op
    def matmul(A, B):
        C[i, j] += A[i, k] * B[k, j]
        return C

    A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    found = matmul(A, B)
    assert type(found) is np.ndarray
    np.testing.assert_array_equal(found, A @ B)
    assert found.flags.writeable
    again = matmul(A, B)
    assert not np.shares_memory(found, again)


def test_in_op_an_accumulation_makes_a_new_version_of_the_name() -> None:
    @op
    def f(x):
        y = x
        y[i] += 1
        y += x
        x[i] *= 10
        return y, x

    x = np.arange(3.0)
    y, new_x = f(x)
    assert y.tolist() == [1, 3, 5]
    assert new_x.tolist() == [0, 10, 20]
    assert x.tolist() == [0, 1, 2]


def test_in_op_another_name_keeps_the_earlier_version() -> None:
    @op
    def f(x):
        y[i] = x[i]
        before = y
        y[i] += 1
        return before, y

    before, after = f(np.zeros(2))
    assert before.tolist() == [0, 0]
    assert after.tolist() == [1, 1]


def test_in_op_assignment_rebinds_a_name() -> None:
    @op
    def f(x):
        y[i] = x[i]
        y = x.sum()
        return y  # noqa: RET504

    assert f(np.arange(4.0)) == 6


def test_in_cd_assignments_change_tensors_in_place() -> None:
    @cd
    def sgd(p, g, *, learning_rate):
        p -= learning_rate * g

    p = np.ones(3)
    view = p[::-1]
    assert sgd(p, np.array([1.0, 2.0, 3.0]), learning_rate=0.5) is None
    np.testing.assert_array_equal(p, [0.5, 0, -0.5])
    np.testing.assert_array_equal(view, [-0.5, 0, 0.5])


def test_in_cd_assigning_to_a_name_of_a_tensor_stores_and_never_rebinds() -> None:
    @cd
    def fill(a, b):
        a = b + 1
        a = 2 * a

    a = np.zeros(2)
    fill(a, np.array([1.0, 2.0]))
    assert a.tolist() == [4, 6]


def test_in_cd_another_name_of_the_same_memory_sees_the_store() -> None:
    @cd
    def f(a, b):
        a[i] = 5 * b[i]
        b += a

    a, b = np.zeros(2), np.ones(2)
    f(a, b)
    assert (a.tolist(), b.tolist()) == ([5, 5], [6, 6])


def test_in_place_code_works_on_strided_and_fortran_ordered_memory() -> None:
    @cd
    def increment(a, b):
        a[i, j] += b[j, i]

    for make in (np.asfortranarray, lambda a: np.repeat(a, 2, axis=1)[:, ::2], lambda a: a[::-1].copy()[::-1]):
        a = make(np.zeros((2, 3)))
        increment(a, np.arange(6.0).reshape(3, 2))
        np.testing.assert_array_equal(a, np.arange(6.0).reshape(3, 2).T)


def test_in_place_code_rounds_to_float16() -> None:
    @cd
    def halve(a):
        a[i] = a[i] / 3

    a = np.array([1, 2], np.float16)
    halve(a)
    np.testing.assert_array_equal(a, (np.array([1, 2], np.float32) / 3).astype(np.float16))


def test_cd_is_not_differentiable() -> None:
    @cd
    def step(p, g):
        p -= g

    for derivative in (tc.grad, tc.value_and_grad):
        with pytest.raises(tc.DifferentiationError, match="`step` is a @cd function"):
            derivative(step)
    with pytest.raises(tc.DifferentiationError, match="`step` is a @cd function"):
        tc.vjp(step, np.ones(2), np.ones(2))


def test_an_op_may_not_call_code_that_stores_into_its_values() -> None:
    @cd
    def step(p):
        p += 1

    @op
    def f(x):
        y[i] = x[i]
        step(y)
        return y

    with pytest.raises(tc.DslSyntaxError, match="stores into `p`, but here that is a value"):
        f(np.ones(2))


def test_in_cd_several_targets_store_as_each_would_alone() -> None:
    @cd
    def swap(a, b):
        a, b = b, a

    @cd
    def chain(a, b):
        a = b = a + 1

    @cd
    def nested(a, b, c):
        (a, [b, n]), c = (b, (c, 3)), a
        c *= n

    @cd
    def walrus(a, b):
        b += (a := 2 * a)

    a, b, c = np.zeros(2), np.ones(2), np.full(2, 2.0)
    swap(a, b)
    assert (a.tolist(), b.tolist()) == ([1, 1], [0, 0])
    chain(a, b)
    assert (a.tolist(), b.tolist()) == ([2, 2], [2, 2])
    b[:] = 5
    nested(a, b, c)
    assert (a.tolist(), b.tolist(), c.tolist()) == ([5, 5], [2, 2], [6, 6])
    walrus(a, b)
    assert (a.tolist(), b.tolist()) == ([10, 10], [12, 12])


def test_in_cd_a_name_that_only_unpacking_binds_is_pythons_name_for_the_memory() -> None:
    @cd
    def halve(p, g):
        p -= g / 2

    @cd
    def all_of_them(*arrays):
        for position in range(2):
            p, g = arrays[position::2]
            halve(p, g)

    a, b = np.full(2, 4.0), np.full(3, 6.0)
    all_of_them(a, b, np.full(2, 2.0), np.full(3, 4.0))
    assert a.tolist() == [3, 3]
    assert b.tolist() == [4, 4, 4]


def test_in_op_several_targets_rebind_as_in_python() -> None:
    @op
    def f(x, y):
        x, y = y, x
        a = b = x + 1
        b += y
        (c, *rest), d = (a, b, x), y
        return a, b, c, rest[1], d

    x, y = np.zeros(2), np.ones(2)
    assert [part[0] for part in f.interpret(x, y)] == [2, 2, 2, 1, 0]
