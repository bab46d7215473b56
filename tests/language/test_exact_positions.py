"""Positions outside of statements, and bounds of loops, are computed exactly."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tests.language.test_exact_indices import HIGH, LOW, ends, triples
from tests.long_variants import few

# -- outside statements ------------------------------------------------------------------------------------------------


@op
def one_cell(x, a, b, c):
    return x[a[0] * b[0] + c[0]]


@op
def many_cells(x, a, b, c):
    return x[a * b + c][0]


@op
def cell_of_a_part(x, a, b, c):
    return x[:][a[0] * b[0] + c[0]]


@op
def cells_in_rounds(x, a, b, c):
    s = 0.0
    for t in tc.loop(1):
        s = s + x[a[t] * b[t] + c[t]]
    return s


@op
def cells_in_conditions(x, a, b, c):
    s = 0.0
    while x[a[0] * b[0] + c[0]] > s:
        s = s + 1.0
    return s


@op
def stored(x, a, b, c):
    y = 0.0 * x
    y[a[0] * b[0] + c[0]] = 1.0
    return (x * y).sum()


@pytest.mark.parametrize("f", [one_cell, many_cells, cell_of_a_part, cells_in_rounds, cells_in_conditions, stored])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_brackets_outside_statements_are_exact_too(f: Any, dtype: str) -> None:
    x = np.arange(300.0)
    sampled = zip(*triples((dtype, dtype, dtype), 40), strict=True)
    for a, b, c in (*(map(int, row) for row in sampled), (100, 2, 0), (127, 2, 1), (100, 3, 0)):
        given, index = [np.array([number], dtype) for number in (a, b, c)], a * b + c
        if 0 <= index < len(x):
            assert f(x, *given) == f.interpret(x, *given) == x[index]
        else:
            with pytest.raises(IndexError, match=f"index {index} is out of range"):
                f(x, *given)


# -- bounds of loops --------------------------------------------------------------------------------------------------


@op
def rounds(a, b, n):
    count = 0
    for _ in range(a[0] * n + b[0], 2 * a[0] + b[0], 3):
        count = count + 1
        if count == 9:
            break
    return count


@op
def rounds_of_numbers(a, b, n):
    count = 0
    for _ in range(a * n + b, 2 * a + b, 3):
        count = count + 1
        if count == 9:
            break
    return count


@pytest.mark.parametrize("dtype", few(["int8", "uint8", "int64", "uint64"], {"uint8", "int64"}))
def test_bounds_of_loops_are_exact(dtype: str) -> None:
    met = set()
    for a, b in itertools.product(ends(dtype), ends(dtype)):
        for n in (0, -1):
            numbers = range(a * n + b, 2 * a + b, 3)
            fit = all(LOW <= each <= HIGH for each in (numbers.start, numbers.stop))
            met.add(fit)
            arrays = np.array([a], dtype), np.array([b], dtype), n
            for f, given in (
                (rounds, arrays),
                (rounds_of_numbers, (a, b, n)) if dtype == "int64" else (rounds, arrays),
            ):
                for run in (f, f.interpret):
                    if fit:
                        assert run(*given) == min(len(numbers), 9)
                    else:
                        with pytest.raises(OverflowError, match="a bound of this `range` does not fit into 64 bits"):
                            run(*given)
    assert met == ({True, False} if "64" in dtype else {True})
