"""Programs with loops and branches as one finds them in books, beside the same in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl import op

GENERATOR = np.random.default_rng(11)


def check(function: Any, arguments: tuple[Any, ...], expected: Any) -> None:
    """Compiled and interpreted it gives what is expected."""
    for run in (function, function.interpret):
        found = run(*(each.copy() if isinstance(each, np.ndarray) else each for each in arguments))
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else ((found, expected),)
        for one, wanted in pairs:
            assert np.shape(one) == np.shape(wanted)
            np.testing.assert_allclose(one, wanted, rtol=1e-9)


@op
def sines(x: Any, n: Any) -> Any:
    for _ in range(n):
        x = sin(x)
    return x


@op
def sum_of_sines(x: Any, n: Any, m: Any) -> Any:
    s = 0 * x
    for t in range(m):
        s = s + sines(t * x, n)
    return s


@op
def triangle(n: Any, m: Any) -> Any:
    total = 0
    for a in range(n):
        for b in range(a, m):
            total = total - m
            if (a + b) % 2 == 0:
                total = total + a * b
    return total


@pytest.mark.parametrize(("n", "m"), [(2, 3), (0, 3), (2, 0), (5, 2), (-1, 4)])
def test_a_number_that_only_inner_loops_ask_for(n: int, m: int) -> None:
    x, s = GENERATOR.random(3), np.zeros(3)
    for t in range(m):
        y = t * x
        for _ in range(n):
            y = np.sin(y)
        s += y
    check(sum_of_sines, (x, n, m), s)
    total = sum(a * b * ((a + b) % 2 == 0) - m for a in range(n) for b in range(a, m))
    check(triangle, (n, m), total)


@op
def first_large(x: Any) -> Any:
    found = False
    place = -1
    for t in range(x.shape[0]):
        if not found and x[t] > 0.5:
            found = True
            place = t
    return found, place


@op
def between(x: Any, low: Any) -> Any:
    count = 0
    for t in range(x.shape[0]):
        if low < x[t] <= 0.75 and (x[t] < 0.5 or not x[t] > 0.6) and 0 < t < 5:
            count = count + 1
    return count


def test_conditions_on_cells_of_a_round() -> None:
    for x in (np.array([0.1, 0.7, 0.9]), np.array([0.1]), np.zeros(0)):
        large = np.flatnonzero(x > 0.5)
        check(first_large, (x,), (large.size > 0, large[0] if large.size else -1))
    x = GENERATOR.random(40)
    wanted = (x > 0.25) & (x <= 0.75) & ((x < 0.5) | (x <= 0.6))
    check(between, (x, 0.25), wanted[1:5].sum())
