"""Loops that keep some of their states: the same results and derivatives, in segments or by binomial checkpointing."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff.loop_derivatives.binomial_checkpoints import next_state
from tcdsl.errors import DslSyntaxError, DtypeError, OutOfMemoryError
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import SizePlan, evaluate_size
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import verify
from tcdsl.lowering.lower import lower
from tcdsl.runtime.calling.execution import Executable


@op
def segmented(u, k, n):
    for t in tc.loop(n, checkpoint_every=4):
        u[i] += k * sin(u[i - 1]) * t
    return u


@op
def plain(u, k, n):
    for t in tc.loop(n):
        u[i] += k * sin(u[i - 1]) * t
    return u


@op
def nested(u, n):
    for t in tc.loop(n, checkpoint_every=3):
        for s in range(t):
            u[i] = tanh(u[i] + s * u[0])
    return u


U = np.random.default_rng(5).random(6)


@pytest.mark.parametrize("n", [0, 1, 4, 5, 11])
def test_segments_change_no_result_and_no_derivative(n: int) -> None:
    np.testing.assert_allclose(segmented(U, 0.1, n), plain(U, 0.1, n), rtol=1e-14)
    tc.check_grads(lambda u, k: segmented(u, k, n), (U, np.array(0.1)))
    found = tc.grad(lambda u: segmented(u, 0.1, n).sum())(U)
    np.testing.assert_allclose(found, tc.grad(lambda u: plain(u, 0.1, n).sum())(U), rtol=1e-12)


def test_loops_inside_know_the_number_of_their_round() -> None:
    tc.check_grads(lambda u: nested(u, 7), (U,))


def test_segments_are_printed_and_parsed() -> None:
    for program in (segmented.program(U, 0.1, 9), tc.grad(lambda u: segmented(u, 0.1, 9).sum()).program(U)):
        verify(program)
        assert parse_program(format_program(program)) == program
        assert "times checkpointed" in format_program(program)


@op
def long(u, n):
    for _ in tc.loop(n, checkpoint_every=100):
        u = tanh(u * u)
    return u.sum()


def bytes_of(program: Program, states: int, n: int) -> int:
    sizes = SizePlan(program).bind([(states,), (), (n, 0)][: len(program.inputs)])
    return sum(
        numpy_dtype(buffer.dtype).itemsize * int(np.prod([max(evaluate_size(e, sizes), 0) for e in buffer.shape]))
        for buffer in lower(program).buffers
        if buffer.kind != "input"
    )


def test_memory_grows_with_the_segments_alone() -> None:
    states, n = 50, 10_000
    program = tc.grad(long).program(np.zeros(states), n)
    assert bytes_of(program, states, n) < 4 * 8 * states * (n // 100 + 100)


@pytest.mark.parametrize("name", ["checkpoint_every", "checkpoints"])
@pytest.mark.parametrize("value", [0, 2.5, True])
def test_what_is_asked_for_is_a_number_of_rounds_or_states(name: str, value: Any) -> None:
    @op
    def f(u):
        for _ in tc.loop(3, **{name: value}):
            u = 2 * u
        return u

    with pytest.raises(DtypeError, match="give an integer of at least 1"):
        f.interpret(U)


def test_segments_and_a_number_of_states_exclude_each_other() -> None:
    @op
    def f(u):
        for _ in tc.loop(3, checkpoints=2, checkpoint_every=2):
            u = 2 * u
        return u

    with pytest.raises(DslSyntaxError, match="give one: the rounds between two states, or the number of states"):
        f.interpret(U)


@op
def few(u, k, n):
    for t in tc.loop(n, checkpoints=3):
        u[i] += k * sin(u[i - 1]) * t
    return u


@pytest.mark.parametrize("n", [0, 1, 2, 5, 23, 60])
def test_a_few_states_change_no_result_and_no_derivative(n: int) -> None:
    np.testing.assert_allclose(few(U, 0.0002, n), plain(U, 0.0002, n), rtol=1e-14)
    tc.check_grads(lambda u, k: few(u, k, min(n, 9)), (U, np.array(0.0002)))
    found = tc.grad(lambda u: few(u, 0.0002, n).sum())(U)
    np.testing.assert_allclose(found, tc.grad(lambda u: plain(u, 0.0002, n).sum())(U), rtol=1e-11)


@op
def one_state(u, n, m):
    for t in tc.loop(n, checkpoints=1):
        for s in tc.loop(m, checkpoints=2):
            u[i] = tanh(u[i] + 0.1 * s * u[t])
    return u


@op
def all_states(u, n, m):
    for t in tc.loop(n):
        for s in tc.loop(m):
            u[i] = tanh(u[i] + 0.1 * s * u[t])
    return u


@op
def ended(u, n):
    for t in tc.loop(n, checkpoints=2):
        if sum(u[i] * u[i]) > 9:
            break
        u = 1.2 * u + 0.01 * t
    return u


@op
def counted(u, n: int64):
    for _ in tc.loop(n, checkpoints=2):
        u = sin(u)
    return u


def test_few_states_of_loops_in_loops_and_of_loops_that_data_end() -> None:
    found = tc.grad(lambda u: one_state(u, 5, 6).sum())(U)
    np.testing.assert_allclose(found, tc.grad(lambda u: all_states(u, 5, 6).sum())(U), rtol=1e-12)
    for n in (0, 3, 30):
        tc.check_grads(lambda u, n=n: ended(u, n), (U,))
        tc.check_grads(lambda u, n=n: counted(u, np.int64(n)), (U,))


@op
def halved(u: real[N], v: real[M], n):
    for _t in tc.loop(n, checkpoint_every=2):
        k = 0
        while k < 2 or sum(u[i] * u[i]) > 1:
            k = k + 1
            v[0] *= 0.8
            u = 0.5 * tanh(u * v[1])
    return u * v[0]


def test_loops_that_data_end_are_computed_again_in_segments() -> None:
    for n in (1, 3):
        tc.check_grads(lambda u, v, n=n: halved(u, v, n), (U, U[:2]))


def test_second_derivatives_by_few_states() -> None:
    def loss(f):
        return lambda u: (f(u, 0.2, 9) ** 2).sum()

    np.testing.assert_allclose(tc.hessian(loss(few))(U), tc.hessian(loss(plain))(U), rtol=1e-9, atol=1e-12)

    def slope(f):
        return lambda u: (tc.grad(loss(f))(u) ** 2).sum()

    np.testing.assert_allclose(tc.grad(slope(few))(U), tc.grad(slope(plain))(U), rtol=1e-9, atol=1e-12)


def test_few_states_are_printed_and_parsed() -> None:
    for program in (few.program(U, 0.1, 9), tc.grad(lambda u: few(u, 0.1, 9).sum()).program(U)):
        verify(program)
        assert parse_program(format_program(program)) == program
    assert "times checkpointed 3 with" in format_program(few.program(U, 0.1, 9))


@op
def endless(u, n):
    for _ in tc.loop(n, checkpoints=6):
        u = tanh(u * u)
    return u.sum()


def test_memory_is_that_of_the_states_asked_for() -> None:
    states = 50
    program = tc.grad(endless).program(np.zeros(states), 10_000)
    assert bytes_of(program, states, 10_000) == bytes_of(program, states, 100) < 3 * 8 * states * 6


@cache
def least(length: int, places: int) -> int:
    """How many rounds have to be computed again, at the least, to go back over so many from their first state."""
    if length == 1:
        return 0
    if places == 1:
        return length * (length - 1) // 2
    return min(d + least(length - d, places - 1) + least(d, places) for d in range(1, length))


def test_no_order_of_the_rounds_is_less_work() -> None:
    chosen = Executable(next_state())

    @cache
    def found(length: int, places: int) -> int:
        if length == 1:
            return 0
        distance = int(chosen.run([np.array(length), np.array(places)])[0])
        return distance + (found(length - distance, places - 1) if places > 1 else 0) + found(distance, places)

    for places in range(1, 6):
        assert [found(length, places) for length in range(1, 50)] == [least(length, places) for length in range(1, 50)]


def test_no_more_states_have_room_than_there_are_rounds() -> None:
    @op
    def f(u, n):
        for _ in tc.loop(u.shape[0] + 1, checkpoints=10**12):
            u = sin(u)
        for _ in tc.loop(n, checkpoints=10**12):
            u = sin(u)
        return u

    @op
    def g(u, n):
        for _ in range(u.shape[0] + 1 + n):
            u = sin(u)
        return u

    derived, states = tc.grad(lambda u: f(u, 3).sum()), np.ones(2)
    np.testing.assert_allclose(derived(states), tc.grad(lambda u: g(u, 3).sum())(states), rtol=1e-13)


def test_room_for_states_is_taken_by_those_that_are_kept() -> None:
    @op
    def f(u):
        for _ in tc.loop(u.shape[0], checkpoints=10**12):
            u = sin(u)
        return u.sum()

    assert bytes_of(tc.grad(f).program(np.zeros(50)), 50, 50) < 8 * 50 * (50 + 20)


def test_too_little_memory_is_an_error_that_says_how_much_is_missing() -> None:
    @op
    def repeated(x: real[N], n: int64):
        y: real[n]
        y[i] = x[0]
        return y

    with pytest.raises(OutOfMemoryError, match=r"too little memory for `repeated`.*\n.*728. TiB(.|\n)*fewer rows"):
        repeated(U, 10**14)
