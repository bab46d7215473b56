"""Loops that carry what a tensor was instead of its negative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op


@op
def turned(a: real[N], b: real[N], steps):
    for _t in range(steps):
        c[i] = b[i] + 0.5 * a[i]
        b = -a
        a = c
    return a, b


@op
def turned_twice(a: real[N, N], b: real[N, N], c: real[N, N], steps):
    for _t in range(steps):
        d[i, j] = b[i, j] + 0.5 * a[i, j] + c[j, i]
        c = -b
        b = -a
        a = d
    return a


@op
def also_kept(a: real[N], b: real[N], steps):
    total = 0 * b
    for _t in range(steps):
        old = b
        c[i] = old[i] + 0.5 * a[i]
        b = -a
        total += b
        b[0] = 2.0 * b[0]
        a = c
    return a + total + b


def by_hand(function: Any, steps: int, *states: np.ndarray) -> list[np.ndarray]:
    a, b, *others = states
    total = 0 * b
    for _ in range(steps):
        if function is turned_twice:
            a, b, others = b + 0.5 * a + others[0].T, -a, [-b]
        else:
            a, b = b + 0.5 * a, -a
        if function is also_kept:
            total = total + b
            b[:1] *= 2
    return {turned: [a, b], turned_twice: [a], also_kept: [a + total + b]}[function]


@pytest.mark.parametrize("function", [turned, turned_twice, also_kept], ids=lambda each: each.__name__)
def test_values_are_the_same_to_the_last_bit(function: Any) -> None:
    for extent, steps in ((0, 2), (1, 3), (2, 1), (7, 0), (7, 5)):
        if function is also_kept and not extent:
            continue
        generator = np.random.default_rng(extent)
        shape = (extent, extent) if function is turned_twice else (extent,)
        states = generator.normal(size=(3 if function is turned_twice else 2, *shape))
        expected = by_hand(function, steps, *states)
        runs: list[Callable[..., Any]] = [function, function.interpret]
        for run in runs:
            found = run(*states, steps)
            for got, want in zip(found if isinstance(found, tuple) else (found,), expected, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-14)
    signed = function(*(np.zeros_like(states) * states), 3)
    for got, want in zip(
        signed if isinstance(signed, tuple) else (signed,),
        by_hand(function, 3, *(np.zeros_like(states) * states)),
        strict=True,
    ):
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_memory_changes_places() -> None:
    text = turned.explain("loops", np.ones(7), np.ones(7), 5)
    inside = text[text.index("repeat") :]
    assert "minus_b_2[i] + 0.5 * a_2[i]\n\n    swap a_2, minus_b_2\n\n" in inside
    assert "[i] = -a_2[i]" not in inside


@op
def leap(c: real[N, M], u: real[N, M], v: real[N, M], steps):
    for _t in range(steps):
        w[i, j] = 2.0 * u[i, j] - v[i, j]
        w[i, j] += c[i, j] * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4.0 * u[i, j])
        v = u
        u = w
    return (u * u).sum()


def test_adjoints_of_steps_that_look_back_twice_copy_nothing() -> None:
    gradient = tc.grad(leap, argnums=(0, 1, 2))
    for extent in (1, 2, 5):
        c, u, v = np.random.default_rng(extent).normal(size=(3, extent, extent + 1))
        tc.check_grads(lambda c, u, v: leap(c, u, v, 3), (c, u, v))
    text = gradient.explain("loops", c, u, v, 3)
    forward, _, backward = text.partition("repeat _t in")[2].partition("repeat ")
    # The tape is written where the next state is made, and the loop backwards has one nest.
    assert [text.count("\n    nest_") for text in (forward, backward)] == [1, 1]
    assert "\n    copy_" not in text
