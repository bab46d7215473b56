"""Values that all rounds of a loop have in common: what moves in front of it, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.expressions import Apply, walk
from tcdsl.lowering.loopir.loops import Kernel
from tcdsl.lowering.loopir.traversal import expressions
from tcdsl.lowering.lower import lower

RNG = np.random.default_rng(4)
CALLS = {"log", "exp", "tanh", "sin"}


@op
def decoded(ways: real[S, S], score: real[S], steps):
    for _t in range(steps):
        best = tc.output()
        best[s] >>= score[r] + log(ways[r, s])
        score = best
    return score


@op
def scaled(x: real[N], rate, y: real[N], steps):
    for _t in range(steps):
        y[i] = y[i] * exp(-rate) + sin(x[i]) * exp(-rate)
        y[i] += 0.5 * (y[N - 1 - i] - y[i])
    return y


@op
def nested(x: real[N], y: real[N], steps):
    for _t in range(steps):
        for _k in range(steps):
            y = 0.5 * (y + y.sum()) / N * tanh(x)
        y = y + tanh(x)
    return y


@op
def changing(x: real[N], steps):
    for _t in range(steps):
        total = x.sum()
        x[i] = tanh(x[i]) + 0.1 * total
    return x


@op
def by_number(x: real[N], y: real[M]):
    for t in range(N):
        y[i] = y[M - 1 - i] + tanh(x[t])
    return y


@op
def branch(x: real[N], limit):
    y = x + 0
    if x.sum() > limit:
        y[i] = log(x[i]) * y[N - 1 - i]
    return y


@op
def gathered(x: real[N], at: int64[N], steps):
    y = 0 * x
    for _t in range(steps):
        y[i] = y[N - 1 - i] + exp(x[at[i]])
    return y


@op
def squared(x: real[N], y: real[N], steps):
    for _t in range(steps):
        y[i] = 0.1 * y[N - 1 - i] + x[i] ** 2
    return y


def numbers(*shape: int) -> np.ndarray:
    return RNG.random(shape) + 0.1


Case = tuple[Any, tuple[Any, ...]]
OUTSIDE: dict[str, Case] = {
    "decoded": (decoded, (numbers(5, 5), numbers(5), 3)),
    "scaled": (scaled, (numbers(6), np.array(0.3), numbers(6), 4)),
    "nested": (nested, (numbers(6), numbers(6), 3)),
}
INSIDE: dict[str, Case] = {
    "changing": (changing, (numbers(5), 3)),
    "by number": (by_number, (numbers(4), numbers(5))),
    "branch": (branch, (numbers(5), np.array(1.0))),
    "gathered": (gathered, (numbers(5), np.array([0, 2, 4, 1, 1]), 3)),
}


def called_in_rounds(kernel: Kernel) -> set[str]:
    inside = {nest for each in kernel.repeated for nest in range(each.first, each.end)}
    parts = (part for nest in inside for expr in expressions(kernel.nests[nest].body) for part in walk(expr))
    return {part.primitive for part in parts if isinstance(part, Apply)} & CALLS


def made(function: Any, arguments: tuple[Any, ...]) -> Kernel:
    return lower(function.program(*arguments))


@pytest.mark.parametrize("name", OUTSIDE)
def test_they_are_computed_before_the_loop(name: str) -> None:
    function, arguments = OUTSIDE[name]
    assert not called_in_rounds(made(function, arguments))


@pytest.mark.parametrize("name", ["changing", "by number", "gathered"])
def test_others_are_computed_in_rounds(name: str) -> None:
    function, arguments = INSIDE[name]
    assert called_in_rounds(made(function, arguments))


@pytest.mark.parametrize("function", [branch, squared], ids=["branch", "squared"])
def test_nothing_is_made_for_branches_and_squares(function: Any) -> None:
    arguments = INSIDE["branch"][1] if function is branch else (numbers(5), numbers(5), 3)
    assert not any("in_all_rounds" in buffer.name for buffer in made(function, arguments).buffers)


@pytest.mark.parametrize("name", [*OUTSIDE, *INSIDE])
def test_results_are_the_same(name: str) -> None:
    function, arguments = {**OUTSIDE, **INSIDE}[name]
    np.testing.assert_allclose(function(*arguments), function.interpret(*arguments), rtol=1e-12)
    if isinstance(arguments[-1], int):
        none = (*arguments[:-1], 0)
        np.testing.assert_allclose(function(*none), function.interpret(*none), rtol=1e-12)


def gradient(function: Callable[..., Any], arguments: tuple[Any, ...]) -> np.ndarray:
    return np.asarray(tc.grad(lambda x: function(x, *arguments[1:]).sum())(arguments[0]))


@pytest.mark.parametrize("name", OUTSIDE)
def test_gradients_go_through_them(name: str) -> None:
    function, arguments = OUTSIDE[name]
    x = arguments[0]
    step = np.zeros_like(x)
    step.flat[2] = 1e-6
    ahead, behind = function(x + step, *arguments[1:]).sum(), function(x - step, *arguments[1:]).sum()
    assert np.isclose(gradient(function, arguments).flat[2], (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-8)
