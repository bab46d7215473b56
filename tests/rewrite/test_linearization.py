"""Derivatives in two parts: both together are the derivative, and the linear one computes nothing again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff import adjoint, tangent
from tcdsl.ir.build import size
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import AxisExtent, Program, Size, tensors_read
from tcdsl.ir.sizes.size_binding import bind_sizes, evaluate_size
from tcdsl.ir.text.printer import format_program
from tcdsl.rewrite.batching import batched
from tcdsl.rewrite.linearization import dependents, linearized
from tests.autodiff.hard_cases.cases import HardCase
from tests.autodiff.hard_cases.compositions import program_of
from tests.autodiff.hard_cases.rows import ONE_OF_EACH
from tests.autodiff.programs import floating_inputs, program
from tests.golden_texts import Golden
from tests.long_variants import every
from tests.programs.table import PROGRAMS, CharacteristicProgram, arguments_of
from tests.range_checks import verify_deeply

RNG = np.random.default_rng(12)


def two_parts(made: Program, transform: Callable[..., Program]) -> tuple[Program, Program, Program]:
    derivative = transform(made, floating_inputs(made))
    seeds = [tensor.name for tensor in derivative.inputs[len(made.inputs) :]]
    return derivative, *linearized(derivative, seeds, len(made.outputs))


def check_parts(made: Program, arrays: list[np.ndarray]) -> None:
    sizes = bind_sizes(made, [np.shape(array) for array in arrays])
    for transform in (tangent, adjoint):
        derivative, first, linear = two_parts(made, transform)
        seeds = {}
        for seed in derivative.inputs[len(made.inputs) :]:
            shape = [evaluate_size(extent, sizes) for extent in seed.shape]
            seeds[seed.name] = np.asarray(RNG.uniform(-1, 1, shape))
        held = dict(zip((tensor.name for tensor in made.inputs), arrays, strict=True)) | seeds
        wanted = interpret(derivative, [*arrays, *seeds.values()]).outputs
        held |= dict(zip(first.outputs, interpret(first, arrays).outputs, strict=True))
        results = interpret(linear, [held[tensor.name] for tensor in linear.inputs]).outputs
        for one, other in zip([*(held[name] for name in made.outputs), *results], wanted, strict=True):
            np.testing.assert_array_equal(one, other)
        for part in (first, linear):
            verify_deeply(part)
        moving = dependents(linear, list(seeds))
        for statement in linear.statements:
            constant = statement.target.tensor in linear.outputs or not tensors_read(statement)
            assert statement.target.tensor in moving or constant


@pytest.mark.parametrize("row", [row for row in PROGRAMS.values() if row.smooth], ids=str)
def test_both_parts_of_the_characteristic_programs(row: CharacteristicProgram) -> None:
    for call in row.calls[:2]:
        arrays = arguments_of(row, call, "float64")
        check_parts(row.function.program(*arrays, **row.options), arrays)


@pytest.mark.parametrize("row", every(3, ONE_OF_EACH), ids=str)
def test_both_parts_of_hard_cases(row: HardCase) -> None:
    arrays = row.typed("float64")
    check_parts(program_of(row.function, arrays), arrays)


def layer() -> Program:
    body = "h[j] = tanh(x[j]) for [j]: 0 <= j < K\ny[i] += W[i, j] * h[j] for [i, j]: 0 <= i < N and 0 <= j < K"
    return program("W: float64[N, K]; x: float64[K]", "h: float64[K]; y: float64[N]", body)


def test_the_texts_of_both_parts(golden: Golden) -> None:
    for transform in (tangent, adjoint):
        _, first, linear = two_parts(layer(), transform)
        golden(f"linearization/layer_{transform.__name__}", format_program(first) + "\n" + format_program(linear))


def test_the_linear_part_takes_no_array_of_which_it_needs_the_extents_only() -> None:
    body = "y[i] = sin(x[i]) for [i]: 0 <= i < N\nz[()] += y[i] * y[i] for [i]: 0 <= i < N"
    made = program("x: float64[N]", "y: float64[N]; z: float64", body, "z")
    _, first, linear = two_parts(made, adjoint)
    assert first.outputs == ("z", "y")
    assert [tensor.name for tensor in linear.inputs] == ["x", "y", "d_z"]
    body = "y[i] = exp(x[i]) for [i]: 0 <= i < N"
    _, _, linear = two_parts(program("x: float64[N]", "y: float64[N]", body), adjoint)
    assert [tensor.name for tensor in linear.inputs] == ["y", "d_y"]
    assert linear.sizes == (Size("N", AxisExtent("y", 0)),)


def test_extents_that_nothing_else_has_come_from_the_argument() -> None:
    body = "y[()] += x[i] for [i]: 0 <= i < N"
    _, _, linear = two_parts(program("x: float64[N]", "y: float64", body), adjoint)
    assert [tensor.name for tensor in linear.inputs] == ["x", "d_y"]
    assert not any("x" in tensors_read(statement) for statement in linear.statements)


def test_a_batch_is_one_more_index() -> None:
    made = batched(tangent(layer(), ["x"], keep_outputs=False), ["t_x"], [size("K")], ["t_y"], trailing=True)
    verify_deeply(made)
    assert "t_y[i, b] += t_h[j, b] * W[i, j]" in format_program(made)
    W, x, directions = RNG.random((2, 3)), RNG.random(3), RNG.random((3, 3))
    [together] = interpret(made, [W, x, directions]).outputs
    one = tangent(layer(), ["x"], keep_outputs=False)
    for k in range(3):
        [alone] = interpret(one, [W, x, directions[:, k]]).outputs
        np.testing.assert_allclose(together[:, k], alone)


def test_batches_keep_starts_that_have_no_batch() -> None:
    body = "y[i] = w[i] * w[i] for [i]: 0 <= i < N\ny_2[i] += x[i] from y for [i]: 0 <= i < N"
    made = program("x: float64[N]; w: float64[N]", "y: float64[N]; y_2: float64[N]", body, "y_2, y")
    together = batched(made, ["x"], [size("N")], ["y_2", "y"], trailing=False)
    verify_deeply(together)
    x, w = RNG.random((3, 3)), RNG.random(3)
    summed, kept = interpret(together, [x, w]).outputs
    np.testing.assert_allclose(summed, x + w * w)
    np.testing.assert_allclose(kept, np.tile(w * w, (3, 1)))


@op
def sum_of_positive(x: real[N]):
    s = 0.0
    for t in range(N):
        if x[t] > 0:
            s = s + x[t] * x[t]
    return s


def test_values_need_no_tangents_of_branches_in_loops() -> None:
    x, d = np.array([1.0, -2.0, 3.0]), np.array([1.0, 10.0, 100.0])
    value, pushforward = tc.linearize(sum_of_positive, x)
    assert (value, pushforward(d)) == (10.0, 602.0)
