"""Derivatives of derivatives of loops that compute states again: each order is a few times the one before, no more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.ir.text.printer import format_program
from tcdsl.ir.verifier.verifier import verify
from tests.long_variants import few

X, V = np.array([0.9, 0.5, 0.3]), np.array([0.7, -0.2, 0.4])


@op
def swing(x, v, n):
    for _ in range(n):
        v = v - 0.1 * sin(x)
        x = x + 0.1 * v
    return sum(x[i] * x[i])


@op
def swing_by_few(x, v, n):
    for _ in tc.loop(n, checkpoints=3):
        v = v - 0.1 * sin(x)
        x = x + 0.1 * v
    return sum(x[i] * x[i])


@op
def swing_until(x, v, n):
    k = 0
    while k < n:
        v = v - 0.1 * sin(x)
        x = x + 0.1 * v
        k = k + 1
    return sum(x[i] * x[i])


LOOPS = {"data": (swing, np.array), "few states": (swing_by_few, int), "while": (swing_until, np.array)}


@op
def begun_by_one(x, v, n):
    a, b = x, x
    for _ in tc.loop(n, checkpoints=2):
        a, b = sin(a) * b[::-1] + 0.1 * v, cos(b) * a
    return sum(a[i] * b[i] * v[i])


@op
def begun_by_one_with_tapes(x, v, n):
    a, b = x, x
    for _ in range(n):
        a, b = sin(a) * b[::-1] + 0.1 * v, cos(b) * a
    return sum(a[i] * b[i] * v[i])


def squares(function: Any, position: int) -> Any:
    """The sum of the squares of a derivative, as a function of the same arguments."""

    @op
    def summed(x, v, n):
        d = tc.grad(function, position)(x, v, n)
        return sum(d[i] * d[i])

    return summed


@pytest.mark.parametrize(
    ("name", "positions"),
    [
        ("data", (0, 1)),
        ("few states", (0, 0)),
        ("while", (1, 0)),
        *(
            pytest.param(name, positions, marks=pytest.mark.long)
            for name in LOOPS
            for positions in ((0, 0), (0, 1), (1, 0), (0, 0, 0), (1, 0, 1))
        ),
    ],
)
def test_they_are_those_of_loops_with_tapes(name: str, positions: tuple[int, ...]) -> None:
    (function, number), reference = LOOPS[name], swing
    for position in positions[:-1]:
        function, reference = squares(function, position), squares(reference, position)
    found = tc.grad(function, positions[-1])(X, V, number(7))
    np.testing.assert_allclose(found, tc.grad(reference, positions[-1])(X, V, 7), rtol=1e-11)


@pytest.mark.parametrize("last", [pytest.param(0, marks=pytest.mark.long), 1])
def test_what_begins_several_names_has_the_derivatives_of_all(last: int) -> None:
    found, expected = (tc.grad(squares(f, 0), last)(X, V, 5) for f in (begun_by_one, begun_by_one_with_tapes))
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.parametrize("name", few(LOOPS, {"few states"}))
def test_modes_may_follow_each_other_in_any_order(name: str) -> None:
    function, number = LOOPS[name]

    def along(function: Any, n: Any) -> Any:
        @op
        def turned(x, v):
            z = tc.hvp(lambda y: function(y, v, n), x, v)
            return sum(z[i] * z[i])

        return tc.grad(turned, 1)(X, V)

    np.testing.assert_allclose(along(function, number(6)), along(swing, 6), rtol=1e-11)
    moved = tc.jvp(lambda x, v: tc.grad(function)(x, v, number(6)), (X, V), (V, X))
    for found, expected in zip(moved, tc.jvp(lambda x, v: tc.grad(swing)(x, v, 6), (X, V), (V, X)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11)
    block = tc.jacobian(tc.grad(function), 1)(X, V, number(6))
    np.testing.assert_allclose(block, tc.jacobian(tc.grad(swing), 1)(X, V, 6), rtol=1e-11)


def test_half_precision_has_second_derivatives_too() -> None:
    x, v = X.astype(np.float16), V.astype(np.float16)
    found = tc.grad(squares(swing_by_few, 0))(x, v, 4)
    np.testing.assert_allclose(found, tc.grad(squares(swing, 0))(X, V, 4), rtol=2e-2)


def statements(program: Program) -> int:
    return len(program.statements) + sum(statements(repeat.body) for repeat in program.repeats)


@pytest.mark.parametrize("name", few(LOOPS, {"while"}))
def test_each_order_is_a_few_times_the_one_before(name: str) -> None:
    function, number = LOOPS[name]
    counts, ranks = [], []
    for _ in range(3):
        program = tc.grad(function).program(X, V, number(7))
        verify(program)
        assert parse_program(format_program(program)) == program
        counts.append(statements(program))
        ranks.append(max(len(tensor.shape) for tensor in program.tensors))
        function = squares(function, 0)
    assert counts[1] < 4 * counts[0]
    assert counts[2] < 4 * counts[1]
    # No stack keeps stacks.
    assert ranks == [2, 2, 2]
