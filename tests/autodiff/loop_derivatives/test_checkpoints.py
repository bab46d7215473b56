"""Loops in segments: the same results and derivatives, from the states at the beginnings of segments."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.errors import DtypeError
from tcdsl.ir.dtypes import numpy_dtype
from tcdsl.ir.sizes.size_binding import SizePlan, evaluate_size
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import verify
from tcdsl.lowering.lower import lower


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


def test_memory_grows_with_the_segments_alone() -> None:
    states, n = 50, 10_000
    program = tc.grad(long).program(np.zeros(states), n)
    sizes = SizePlan(program).bind([(states,), (), (n, 0)])
    total = sum(
        numpy_dtype(buffer.dtype).itemsize * int(np.prod([max(evaluate_size(e, sizes), 0) for e in buffer.shape]))
        for buffer in lower(program).buffers
        if buffer.kind != "input"
    )
    assert total < 4 * 8 * states * (n // 100 + 100)


@pytest.mark.parametrize("every", [0, -1, 2.5, True])
def test_segments_have_a_length(every: object) -> None:
    @op
    def f(u):
        for _ in tc.loop(3, checkpoint_every=every):
            u = 2 * u
        return u

    with pytest.raises(DtypeError, match="give an integer of at least 1"):
        f.interpret(U)
