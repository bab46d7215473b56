"""The only block of a short reduction stores what it has found; nothing is joined then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tcdsl import cd, op
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.lower import lower
from tcdsl.targets.protocol.target import Build
from tests.targets.compiling import compile_kernel

RNG = np.random.default_rng(3)


@op
def total(x):
    t[()] += x[i]
    return t


@op
def lowest(x):
    t[()] <<= x[i]
    return t


@op
def taken_away(x, start):
    t = copy(start)
    t[()] -= x[i]
    return t


@op
def column_products(x):
    y[j] *= x[i, j]
    return y


@op
def columns_taken_away(x, start):
    y = copy(start)
    y[j] -= x[i, j]
    return y


@cd
def own_cells(x, start):
    start[j] += x[i, j] * start[i]


def values(function: Callable[..., Any], rows: int, columns: int) -> tuple[Any, ...]:
    flat = function in (total, lowest, taken_away)
    x = RNG.normal(size=(rows,) if flat else (rows, columns))
    if function in (taken_away, columns_taken_away):
        return x, RNG.normal(size=() if flat else (columns,))
    return (x,)


EXPECTED = {
    total: lambda x: x.sum(),
    taken_away: lambda x, start: start - x.sum(),
    lowest: lambda x: x.min(initial=np.inf),
    column_products: lambda x: x.prod(axis=0),
    columns_taken_away: lambda x, start: start - x.sum(axis=0),
}


@pytest.mark.parametrize("function", EXPECTED, ids=lambda each: each.__name__)
@pytest.mark.parametrize(("rows", "columns"), [(0, 3), (1, 1), (63, 2), (127, 5), (128, 0), (255, 9), (256, 4100)])
def test_values_do_not_depend_on_how_many_parts_there_are(
    function: Callable[..., Any], rows: int, columns: int
) -> None:
    given = values(function, rows, columns)
    np.testing.assert_allclose(function(*given), EXPECTED[function](*given), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("size", [1, 5, 63, 130])
def test_cells_that_a_sum_reads_are_not_stored_before(size: int) -> None:
    x, start = RNG.normal(size=(size, size)), RNG.normal(size=size)
    expected = start + x.T @ start
    own_cells(x, start)
    np.testing.assert_allclose(start, expected, rtol=1e-10)


def test_negative_zeros_and_nans_are_those_of_several_parts() -> None:
    assert not np.signbit(total(np.full(5, -0.0)))
    assert np.isnan(lowest(np.array([1.0, np.nan, 2.0])))


NUMBER = "input x: float64[N]\ntensor t: float64[]\nt[()] += x[i]  for [i]: 0 <= i < N\nreturn t\n"
ROW = "input x: float64[N, 5]\ntensor t: float64[5]\nt[j] += x[i, j]  for [i, j]: 0 <= i < N and 0 <= j < 5\nreturn t\n"


@pytest.mark.parametrize("text", [NUMBER, ROW], ids=["number", "row"])
@pytest.mark.parametrize(("size", "joins"), [(0, 0), (1, 0), (127, 0), (1000, 1)])
def test_nothing_is_joined_where_there_is_one_part(text: str, size: int, joins: int, options: Build) -> None:
    kernel = lower(parse_program(f"program p\n{text}"))
    assert [nest.name.split("_")[0] for nest in kernel.nests] == ["parts", "join"]
    assert compile_kernel(kernel, contiguous=(True,), options=options).plan({"N": size}).blocks(1) == joins
