"""Derivatives cost at most four times what the function costs: every characteristic program, and 150 random ones."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.autodiff import gradient
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.lower import lower
from tests.autodiff.cost.measuring import Derivatives, kept_derivatives
from tests.autodiff.programs import floating_inputs, program
from tests.autodiff.random_programs import random_case
from tests.differential.loading import loaded
from tests.differential.test_random_gradients import differentiable
from tests.long_variants import every, seeds
from tests.programs.table import LARGE, PROGRAMS, CharacteristicProgram, arguments_of

SMOOTH = [each for each in PROGRAMS.values() if each.smooth]


@pytest.mark.parametrize("characteristic", SMOOTH, ids=str)
def test_characteristic_programs(characteristic: CharacteristicProgram) -> None:
    derivatives: Derivatives | None = None
    for call in (*characteristic.calls, LARGE[characteristic.name]):
        arrays = arguments_of(characteristic, call, "float64")
        if derivatives is None:
            made = characteristic.function.program(*arrays, **characteristic.options)
            derivatives = kept_derivatives(made, tuple(floating_inputs(made)))
        derivatives.measured(arrays).check()


def random_arrays(seed: int, extent: int) -> list[np.ndarray]:
    """Arrays for the programs of `random_case`."""
    rng = np.random.default_rng(seed)
    x, a = rng.uniform(0.3, 1.2, extent), rng.uniform(-1, 1, (extent, extent))
    return [x, a, rng.uniform(0.5, 1.5, ()), rng.integers(0, extent, extent)]


@pytest.mark.parametrize("batch", seeds(4, 100))
def test_random_programs(batch: int) -> None:
    for seed in range(10 * batch, 10 * batch + 10):
        case = random_case(seed)
        derivatives = Derivatives(case.program, case.wrt)
        for extent in (1, 2, 7):
            derivatives.measured(random_arrays(seed, extent)).check()


@pytest.mark.parametrize("batch", seeds(2, 20))
def test_random_functions(batch: int) -> None:
    checked = 0
    for seed in range(60_000 + 20 * batch, 60_000 + 20 * batch + 20):
        case = differentiable(seed)
        if case is None:
            continue
        arrays = list(case.arrays.values())
        made = loaded(case.source).program(*arrays)
        names = floating_inputs(made)
        if names:
            Derivatives(made, names).measured(arrays).check()
            checked += 1
    assert checked > 8


# -- what is executed grows like what is counted ----------------------------------------------------------------------


def exponent(values: list[float], sizes: list[int]) -> float:
    """How fast values grow with sizes, from the last two."""
    return float(np.log(values[-1] / values[-2]) / np.log(sizes[-1] / sizes[-2]))


def scaled(shapes: tuple[tuple[int, ...], ...], factor: int) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(extent * factor for extent in shape) for shape in shapes)


@pytest.mark.parametrize("characteristic", every(2, SMOOTH), ids=str)
def test_points_executed_by_adjoints_grow_like_operations(characteristic: CharacteristicProgram) -> None:
    factors = [1, 3, 9]
    points: list[float] = []
    counted: list[float] = []
    derivatives: Derivatives | None = None
    kernel = None
    for factor in factors:
        arrays = arguments_of(characteristic, scaled(characteristic.calls[0], factor), "float64")
        arrays = [np.broadcast_to(array.flat[0], array.shape) if array.dtype.kind == "f" else array for array in arrays]
        if derivatives is None:
            made = characteristic.function.program(*arrays, **characteristic.options)
            derivatives = kept_derivatives(made, tuple(floating_inputs(made)))
            # As tiles, whose width is the processor's, do these points. Checks ahead are points of long loops alone.
            kernel = lower(derivatives.adjoint, optimize="-padding -panels -checks_ahead")
        assert kernel is not None
        *_, (_, inputs) = derivatives.with_arguments(arrays)
        points.append(executed_points(kernel, bind_sizes(kernel.program, [array.shape for array in inputs])))
        measured = derivatives.measured(arrays)
        counted.append(measured.primal + measured.interface)
    assert exponent(points, factors) <= exponent(counted, factors) + 0.1, (points, counted)


DIAGONAL = "A[i, j] = where(i == j, x[i], 0.0) for [i, j]: 0 <= i < N and 0 <= j < N\n"
SPARSE = {
    "traces": program(
        "x: float64[N]",
        "A: float64[N, N]; y: float64; z: float64",
        DIAGONAL + "y[()] += A[i, i] for [i]: 0 <= i < N\nz[()] = y[()] + y[()] for []:",
        "z",
    ),
    "row times column": program(
        "x: float64[N]", "A: float64[N, N]; y: float64", DIAGONAL + "y[()] += A[i, 0] * A[0, i] for [i]: 0 <= i < N"
    ),
    "single cells": program(
        "x: float64[N]", "y: float64", "y[()] = x[0] + x[2] + x[3] + x[5] + x[9] for []: N > 9", "y"
    ),
    "strided sum": program("x: float64[N]", "y: float64", "y[()] += x[7 * i] for [i]: 0 <= i and 7 * i < N"),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_gradients_execute_a_linear_number_of_points(name: str) -> None:
    made: Program = gradient(SPARSE[name], ["x"], keep_outputs=False)
    kernel = lower(made)
    counts = [executed_points(kernel, bind_sizes(kernel.program, [(extent,)])) for extent in (100, 1000, 10_000)]
    for count, extent in zip(counts, (100, 1000, 10_000), strict=True):
        assert count <= 4 * extent + 20
