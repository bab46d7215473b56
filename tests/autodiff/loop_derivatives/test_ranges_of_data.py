"""Derivatives of rounds whose ranges data give, and which change one part of a tensor, by that part alone."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff import gradient, tangent
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.lowering.loop_passes.liveness import peak_bytes
from tcdsl.lowering.lower import lower

ROWS = np.array([0, 2, 2, 5, 6, 6, 9])


@op
def cells(row: int64[M], x, y: real[L]):
    z = y * 1.0
    for i in range(M - 1):
        for j in range(row[i], row[i + 1]):
            z[i] = tanh(z[i] + x[j])
        z[i] = z[i] ** 2
    return (z * z).sum()


@op
def in_place(row: int64[M], x, y: real[L]):
    z[i] = y[i]
    for i in range(M - 1):
        for j in range(row[i], row[i + 1]):
            z[i] *= 1.5 + x[j]
            for _ in range(2):
                z[i] = z[i] * (1.1 + x[j])
    return (z * z).sum()


@op
def slabs(row: int64[M], x, y: real[L, 2]):
    z = y * 1.0
    for i in range(M - 1):
        for j in range(row[i], row[i + 1]):
            z[i, k] = tanh(z[i, k] + x[j] * (k + 1))
    return (z * z).sum()


@op
def until(row: int64[M], x, y: real[L]):
    z = y * 1.0
    for i in range(M - 1):
        n = 0
        while z[i] < 3 and n < 4:
            z[i] = z[i] * (1.5 + x[i])
            n = n + 1
    return (z * z).sum()


@op
def beside(row: int64[M], x, y: real[L]):
    z = y * 1.0
    for i in range(1, M - 1):
        for j in range(row[i], row[i + 1]):
            z[i] = tanh(z[i] + x[j] * z[i - 1]) * (z[i + 1] if i < M - 2 else 1.0)
            for _ in range(2):
                z[i] += z[i] * z[i - 1] * 0.1
        s = x[i]
        for j in range(row[i], row[i + 1]):
            s = s - 0.1 * s * (z[i - 2] if i > 1 else x[j])
        z[i] += s
    return (z * z).sum()


@op
def slabs_beside(row: int64[M], x, y: real[L, 2]):
    z = y * 1.0
    for i in range(1, M - 1):
        for j in range(row[i], row[i + 1]):
            z[i, k] += x[j] * z[i - 1, 1 - k]
            z[i, 0] = z[i, 0] * sin(z[i, 1]) + z[i - 1, 1]
    return (z * z).sum()


FUNCTIONS = [cells, in_place, slabs, until, beside, slabs_beside]


def given(function):
    rng = np.random.default_rng(0)
    y = rng.random((6, 2) if function in (slabs, slabs_beside) else 6) + 0.5
    return rng.random(9) * 0.5 + 0.1, y


@pytest.mark.parametrize(
    "function",
    [pytest.param(each, marks=() if each in (cells, slabs, until) else pytest.mark.long) for each in FUNCTIONS],
)
def test_derivatives_are_differences(function):
    x, y = given(function)
    slopes = tc.grad(function, argnums=(1, 2))
    d_x, d_y = slopes(ROWS, x, y)
    v, w = np.cos(x), np.sin(y)
    step = 1e-6
    change = (function(ROWS, x + step * v, y + step * w) - function(ROWS, x - step * v, y - step * w)) / (2 * step)
    np.testing.assert_allclose((d_x * v).sum() + (d_y * w).sum(), change, rtol=1e-7)
    product = tc.hvp(lambda x: function(ROWS, x, y), x, v)
    change = (slopes(ROWS, x + step * v, y)[0] - slopes(ROWS, x - step * v, y)[0]) / (2 * step)
    np.testing.assert_allclose(product, change, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "function", [cells, *(pytest.param(each, marks=pytest.mark.long) for each in (in_place, beside))]
)
def test_memory_grows_with_the_length(function):
    x, y = given(function)
    first = gradient(function.program(ROWS, x, y), ["x"])
    for program in (first, tangent(first, ["x"])):
        kernel, needed = lower(program), []
        for cells in (3000, 6000):
            shapes = {"row": (cells + 1,), "x": (5 * cells,), "y": (cells, *y.shape[1:])}
            given_shapes = [shapes.get(each.name, shapes["x"]) for each in program.inputs]
            needed.append(peak_bytes(kernel, bind_sizes(program, given_shapes)).peak)
        assert needed[1] < 2.1 * needed[0]


def test_sums_of_second_derivatives_are_not_cleared_in_each_round():
    x, y = given(cells)
    second = tangent(gradient(cells.program(ROWS, x, y), ["x"]), ["x"])
    inside = [each for repeat in second.repeats for each in repeat.body.statements]
    assert not any(extent in str(each.domain) for each in inside for extent in ["z0 < x_0"])


def test_parts_out_of_range_are_asked_for_where_no_round_runs():
    x, y = given(cells)
    with pytest.raises(tc.TcdslError, match="out of range of axis 0"):
        tc.grad(cells, argnums=1)(ROWS, x, y[:3])
