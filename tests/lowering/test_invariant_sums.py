"""Sums that all rounds of a loop have in common: what moves in front of it, and what stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl import op
from tcdsl.ir.program import Program
from tcdsl.lowering.rounds.invariant_sums import with_invariant_sums

X, Y, AT = np.arange(1.0, 6.0), np.arange(3.0, 0.0, -1.0), np.array([2, 0, 2])


@op
def nearest(x: real[N], y: real[M]):
    total = 0.0
    for i in range(N):
        best = argmin(y[j])
        for k in range(M):
            if y[k] > x[i]:
                total += y[best] * k
    return total


@op
def centred(x: real[N], y: real[M], steps):
    for _ in range(steps):
        mean = sum(x[i]) / N
        y[k] = y[k] * 0.5 + mean + sum(x[i] * x[i])
    return y


@op
def until(x: real[N], y: real[M]):
    total = 0.0
    while total < 100:
        for k in range(M):
            total += y[k] + sum(x[i])
    return total


@op
def of_the_first(x: real[N], y: real[M]):
    total = 0.0
    for t in range(N):
        total += sum(x[0] * y[k]) * x[t]
    return total


@op
def gathered(y: real[M], at: int64[K], steps):
    total = 0.0
    for _ in range(steps):
        total += sum(y[at[k]])
    return total


@op
def changing(y: real[M], steps):
    for _ in range(steps):
        y[k] = y[k] - 0.1 * sum(y[m] for m in range(M))
    return y


@op
def by_number(x: real[N], y: real[M]):
    total = 0.0
    for t in range(N):
        total += sum(y[k] * x[t] for k in range(M) if k < t)
    return total


@op
def chosen(x: real[N], limit):
    total = limit * 0
    if limit > 3:
        total = sum(x[i])
    return total


MOVED: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "nearest": (nearest, (X, Y)),
    "centred": (centred, (X, Y, 3)),
    "until": (until, (X, Y)),
}
STAYING: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "of the first": (of_the_first, (X, Y)),
    "gathered": (gathered, (Y, AT, 3)),
    "changing": (changing, (Y, 3)),
    "by number": (by_number, (X, Y)),
    "chosen": (chosen, (X, np.array(4.0))),
}
NONE: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "nearest": (nearest, (X[:0], Y)),
    "of the first": (of_the_first, (X[:0], Y)),
    "gathered": (gathered, (Y, AT + 9, 0)),
    "centred": (centred, (X, Y, 0)),
}


def sums_in_rounds(program: Program) -> int:
    bodies = [repeat.body for repeat in program.repeats]
    own = [each for body in bodies for each in body.statements if len(each.domain.variables) > len(each.target.indices)]
    return len(own) + sum(map(sums_in_rounds, bodies))


@pytest.mark.parametrize("name", MOVED)
def test_they_are_computed_before_the_loop(name: str) -> None:
    function, arguments = MOVED[name]
    program = function.program(*arguments)
    assert sums_in_rounds(program)
    assert not sums_in_rounds(with_invariant_sums(program))


@pytest.mark.parametrize("name", STAYING)
def test_others_stay(name: str) -> None:
    function, arguments = STAYING[name]
    program = function.program(*arguments)
    assert with_invariant_sums(program) == program


@pytest.mark.parametrize(
    ("function", "arguments"), [*MOVED.values(), *STAYING.values(), *NONE.values()], ids=[*MOVED, *STAYING, *NONE]
)
def test_results_are_the_same(function: Any, arguments: tuple[Any, ...]) -> None:
    np.testing.assert_allclose(function(*arguments), function.interpret(*arguments), rtol=1e-12)
