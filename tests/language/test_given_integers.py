"""Integers that Python gives to an op in another staged function: loops over them run, as where it is called alone."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import ShapeError
from tests.language.running_programs import program

GENERATOR = np.random.default_rng(31)
A, V = GENERATOR.random((3, 3)), GENERATOR.random(3)


@op
def power(A, v, steps):
    for _ in range(steps):
        v = A @ v
        v = v / np.sqrt((v * v).sum())
    return v


@op
def weighted(v, weights, n):
    for k in range(n):
        v = v * weights[k]
    return v


@op
def last_of(v, n):
    for k in reversed(range(1, n + 1)):
        h = v * k
    return h


@op
def shrunk(v, n):
    for _ in range(n):
        v = v[1:]
    return v


@op
def in_others(A, v):
    return power(A, v, 200) + weighted(v, [2, v, A[0]], 3) + last_of(v, 2) + shrunk(A, 2)[0]


def test_ops_called_in_others_run_where_their_rounds_do_not_need_python() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = in_others(A, V)
    np.testing.assert_allclose(found, power(A, V, 200) + 2 * V * V * A[0] + V + A[2])
    program = in_others.staging.last_entry().executable.program  # the 200 rounds alone
    assert len(program.repeats) == 1


def test_derivatives_by_what_a_lambda_gives() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tc.grad(lambda A: power(A, V, 200)[0])(A)
    step = np.zeros((3, 3))
    step[0, 1] = 1e-6
    rise = power(A + step, V, 200)[0] - power(A - step, V, 200)[0]
    assert np.isclose(found[0, 1], rise / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("rounds", [0, 1, 4])
def test_tensors_and_arrays_take_a_number_alike(rounds: int) -> None:
    wanted = power(A, V, rounds)
    np.testing.assert_allclose(np.asarray(power(tc.tensor(A), tc.tensor(V), rounds)), wanted, rtol=1e-12)


@op
def out_of_range(x, n):
    s = 0.0
    for k in range(n):
        s = s + x[k]
    return s


def test_a_fault_is_the_one_of_a_call_by_itself() -> None:
    def message(function: Any) -> str:
        with pytest.raises(ShapeError) as caught:
            function()
        return str(caught.value)

    assert message(lambda: tc.grad(lambda x: out_of_range(x, 5))(V)) == message(lambda: out_of_range(V, 5))


@op
def primes_upto(n):
    out = output(n)
    k = 0
    for c in range(2, n):
        prime = True
        for q in range(k):
            if out[q] * out[q] > c:
                break
            if c % out[q] == 0:
                prime = False
                break
        if prime:
            out[k] = c
            k += 1
    return out, k


@op
def rising(x, n):
    out = output(n)
    rounds = n - 1
    for t in range(rounds):
        if x[t] > 0.3:
            out[t + 1] = out[t] + x[t] * x[t]
    return out


@op
def rising_while(x, n):
    out = output(n)
    t = 0
    while t < n - 1:
        out[t + 1] = out[t] + x[t]
        t += 1
    if n > 18:
        out[0] = -1.0
    return out


def test_what_loops_do_does_not_depend_on_whether_an_extent_is_small() -> None:
    # Up to 16 an integer that is an extent is a constant of the program.
    for n in (0, 2, 3, 4, 7, 16, 17):
        primes = [c for c in range(2, n) if all(c % q for q in range(2, c))]
        found, count = primes_upto(n)
        assert (found.tolist(), count) == ([*primes, *[0] * (n - len(primes))], len(primes))
    x = GENERATOR.random(20)
    for n in (1, 4, 20):
        out = np.zeros(n)
        for t in range(n - 1):
            if x[t] > 0.3:
                out[t + 1] = out[t] + x[t] * x[t]
        np.testing.assert_allclose(rising(x, n), out)
        out = np.append(-1.0 if n > 18 else 0.0, np.cumsum(x[: n - 1]))
        np.testing.assert_allclose(rising_while(x, n), out)
    slopes = [2 * x[t] * (t < 3 and x[t] > 0.3) * sum(np.cumprod(x[t + 1 : 3] > 0.3), start=1) for t in range(20)]
    np.testing.assert_allclose(tc.grad(lambda x: rising(x, 4).sum())(x), slopes)


@op
def first_above(x, *, n):
    out = output(n)
    for t in range(n):
        last = 0.0
        for q in range(t):
            last = out[q]
            if last > x[t]:
                break
        out[t] = x[t] + last
    return out


def test_loops_of_numbers_that_python_knows_may_have_loops_that_data_end() -> None:
    x, wanted = GENERATOR.random(4), np.zeros(4)
    for t in range(4):
        last = next((each for each in wanted[:t] if each > x[t]), wanted[t - 1] if t else 0.0)
        wanted[t] = x[t] + last
    np.testing.assert_allclose(first_above(x, n=4), wanted)


@op
def declared(x, n):
    out: real[n]
    rounds = 2 * n - n
    for t in range(rounds):
        out[t] = x[t] * t
    return out


@op
def summed(x):
    s = 0.0
    for t in range(len(x) - 1, -1, -1):
        s = s / 2 + x[t]
    return s


@op
def by_shape(x):
    s = 0.0
    for t in range(x.shape[0]):
        s = s / 2 + x[t]
    return s


def rounds_in(function: Any, *arguments: Any) -> list[int]:
    program = function.staging.entry(function.signature.call(arguments, {}))[0].executable.program
    return [len(program.repeats), len(program.statements)]


def test_numbers_and_sizes_that_are_known_run_wherever_they_have_come() -> None:
    @op
    def outer(x):
        return declared(x, 20).sum() + declared(x, 3).sum() + summed(x[:30]) + by_shape(x[2:32])

    x = GENERATOR.random(40)
    weights = 0.5 ** np.arange(30)
    wanted = x[:20] @ np.arange(20) + x[:3] @ np.arange(3) + x[:30] @ weights + x[2:32] @ weights[::-1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isclose(outer(x), wanted)
        slope = tc.grad(lambda x: declared(x, 20).sum())(x)
    np.testing.assert_allclose(slope, np.arange(40) * (np.arange(40) < 20))
    assert rounds_in(outer, x)[0] == 4
    assert np.isclose(summed(x), by_shape(x[::-1].copy()))
    assert np.isclose(np.asarray(summed(tc.tensor(x))), summed(x))


def test_the_length_of_a_tensor_is_a_size() -> None:
    @op
    def mean_of(x, y):
        return x.sum() / len(x) + len(y), len([x, y])

    assert mean_of(np.array([1.0, 5.0]), np.zeros((3, 2))) == (6.0, 2)
    assert rounds_in(by_shape, GENERATOR.random(7)) == rounds_in(summed, GENERATOR.random(7))


def test_numbers_that_are_known_change_what_rounds_carry() -> None:
    @op
    def counted(x, n):
        k = 0
        for _ in range(x.shape[0]):
            k = (n + k) % 5
            x = x * 0.5 + k
        return x, k

    x = np.ones(3)
    found, tangent = tc.jvp(lambda x: counted(x, 3)[0], (x,), (x,))
    np.testing.assert_array_equal(found, counted(x, 3)[0])
    np.testing.assert_array_equal(found, 0.125 * x + (0.25 * 3 + 0.5 * 1 + 4))
    np.testing.assert_array_equal(tangent, 0.125 * x)


def test_rounds_hand_numbers_on_that_are_known() -> None:
    @op
    def first_beyond(x, n, limit):
        s, t = 0.0, n
        while t:
            s = s + x[t]
            if s > limit:
                return s, t
            t -= 1
        return s, t

    @op
    def outer(x):
        return first_beyond(x, 3, 4.5)

    x = np.arange(9.0)
    assert outer(x) == first_beyond(x, 3, 4.5) == (5.0, 2)
    assert tuple(map(np.asarray, first_beyond(tc.tensor(x), 3, 4.5))) == (5.0, 2)
    assert tc.grad(lambda x: first_beyond(x, 3, 4.5)[0])(x).tolist() == [0, 0, 1, 1, 0, 0, 0, 0, 0]


LARGE = ["x + (N + 2**63)", "x + (n + 2**63)", "(2**64 - N) * x", "x * -(n - 2**70)", "x if n < 2**70 else 2 * x"]


@pytest.mark.parametrize("value", LARGE)
def test_numbers_that_do_not_fit_are_refused_beside_sizes_too(value: str) -> None:
    # An array is compared as in NumPy, with whatever number.
    for n in (3,) if "<" in value else (3, np.array(3)):
        with pytest.raises(tc.DtypeError, match=r"the integer -?\d+ does not fit in int64"):
            program(f"return {value}")(np.ones(2), n)


def test_sizes_are_exact_where_they_are_no_values() -> None:
    f = program("k = N + 2**70\nreturn x[k - 2**70 - 1], x if N < 2**70 else 2 * x")
    for found in f(np.arange(3.0), 1):
        np.testing.assert_array_equal(found, np.arange(3.0) if found.ndim else 2.0)
