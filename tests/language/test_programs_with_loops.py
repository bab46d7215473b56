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
