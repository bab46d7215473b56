"""Jacobians as programs: sparse where the derivative is, the same in both modes, by rows and by columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tcdsl import op
from tcdsl.autodiff import adjoint, gradient
from tcdsl.autodiff.jacobians.program_jacobians import jacobian
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.text.printer import format_program
from tests.autodiff.hard_cases.cases import HardCase
from tests.autodiff.hard_cases.compositions import program_of
from tests.autodiff.hard_cases.rows import ONE_OF_EACH
from tests.autodiff.kept_derivatives import kept_adjoint, kept_jacobian, kept_tangent
from tests.autodiff.programs import program, values
from tests.autodiff.random_programs import random_case
from tests.golden_texts import Golden
from tests.long_variants import every
from tests.programs.table import PROGRAMS, CharacteristicProgram, arguments_of
from tests.range_checks import verify_deeply

RNG = np.random.default_rng(11)
MODES = ("forward", "reverse")


def points(made: Program, **sizes: int) -> int:
    """How many points all statements execute."""
    return sum(len(list(statement.domain.points(sizes))) for statement in made.statements)


def quadratic_form() -> Program:
    body = "y[()] += x[i] * A[i, k] * x[k] for [i, k]: 0 <= i < N and 0 <= k < N"
    return program("A: float64[N, N]; x: float64[N]", "y: float64", body)


# -- texts and counts ----------------------------------------------------------------------------------------


def test_the_hessian_of_a_quadratic_form_is_one_addition_per_cell(golden: Golden) -> None:
    slopes = gradient(quadratic_form(), ["x"], keep_outputs=False)
    for mode in MODES:
        made = jacobian(slopes, ["x"], mode=mode, keep_outputs=False)
        [statement] = made.statements
        assert statement.accumulate == "assign"
        assert points(made, N=50, x_0=50) == 50 * 50
        golden(f"jacobian/quadratic_form_{mode}", format_program(made))
        A = RNG.random((4, 4))
        [found] = values(made, A, RNG.random(4))
        np.testing.assert_allclose(found, A + A.T)


@pytest.mark.parametrize("mode", MODES)
def test_an_elementwise_function_writes_a_diagonal(mode: str, golden: Golden) -> None:
    body = "h[i] = exp(x[i]) * x[i] for [i]: 0 <= i < N\ny[i] = tanh(h[i]) / (2.0 + sin(x[i])) for [i]: 0 <= i < N"
    made = jacobian(program("x: float64[N]", "h: float64[N]; y: float64[N]", body), ["x"], mode=mode)
    golden(f"jacobian/elementwise_{mode}", format_program(made))
    *_, last = made.statements
    assert last.target.indices[0] == last.target.indices[1]
    assert points(made, N=50) <= 5 * 50


@pytest.mark.parametrize("mode", MODES)
def test_a_matrix_meets_no_identity(mode: str, golden: Golden) -> None:
    body = "h[j] = tanh(x[j]) for [j]: 0 <= j < K\ny[i] += W[i, j] * h[j] for [i, j]: 0 <= i < N and 0 <= j < K"
    layer = program("W: float64[N, K]; x: float64[K]", "h: float64[K]; y: float64[N]", body)
    made = jacobian(layer, ["x", "W"], mode=mode, keep_outputs=False)
    golden(f"jacobian/layer_{mode}", format_program(made))
    # One point per cell that is not zero by structure.
    assert points(made, N=30, K=20) <= 2 * 30 * 20 + 2 * 20


@pytest.mark.parametrize("mode", MODES)
def test_convolutions_have_banded_jacobians(mode: str, golden: Golden) -> None:
    body = "y[i] += x[i + k] * w[k] for [i, k]: 0 <= i <= N - K and 0 <= k < K"
    convolution = program("x: float64[N]; w: float64[K]", "y: float64[N - K + 1]", body)
    made = jacobian(convolution, ["x"], mode=mode, keep_outputs=False)
    golden(f"jacobian/convolution_{mode}", format_program(made))
    assert points(made, N=40, K=3) == 38 * 3


@pytest.mark.parametrize("mode", MODES)
def test_gathers_write_where_they_read(mode: str, golden: Golden) -> None:
    body = "e[n, d] = tanh(t[ids[n], d]) for [n, d]: 0 <= n < N and 0 <= d < D"
    gather = program("t: float64[M, D]; ids: int64[N]", "e: float64[N, D]", body, "e")
    made = jacobian(gather, ["t"], mode=mode, keep_outputs=False)
    golden(f"jacobian/gather_{mode}", format_program(made))
    assert points(made, N=30, D=5, M=7) <= 3 * 30 * 5 + 7 * 5


def test_zero_by_structure_meets_no_infinity() -> None:
    body = "y[i] = sqrt(x[i]) * w[i] for [i]: 0 <= i < N"
    roots = program("x: float64[N]; w: float64[N]", "y: float64[N]", body)
    for mode in MODES:
        found = values(jacobian(roots, ["x"], mode=mode, keep_outputs=False), [0.0, 4.0], [1.0, np.inf])
        np.testing.assert_array_equal(found[0], [[np.inf, 0], [0, np.inf]])


def test_a_store_forgets_the_derivative_of_what_its_cells_held() -> None:
    body = "y[i] = x[i] * x[i] for [i]: 0 <= i < N\ny_2[2*i] = 3.0 * x[i] from y for [i]: 0 <= i and 2*i < N"
    made = program("x: float64[N]", "y: float64[N]; y_2: float64[N]", body, "y_2")
    x = np.array([1.0, 2.0, 3.0, 4.0])
    wanted = [[3, 0, 0, 0], [0, 4, 0, 0], [0, 3, 0, 0], [0, 0, 0, 8]]
    for mode in MODES:
        found = jacobian(made, ["x"], mode=mode, keep_outputs=False)
        np.testing.assert_array_equal(values(found, x)[0], wanted)
        assert points(found, N=50) <= 2 * 50


def test_blocks_of_what_does_not_depend_on_an_input_are_zeros() -> None:
    body = "y[i] = x[i] * x[i] for [i]: 0 <= i < N\nz[()] += w[i] for [i]: 0 <= i < M"
    made = program("x: float64[N]; w: float64[M]", "y: float64[N]; z: float64", body, "y, z")
    for mode in (*MODES, None):
        blocks = values(jacobian(made, ["x", "w"], mode=mode, keep_outputs=False), np.ones(2), np.ones(3))
        assert [block.shape for block in blocks] == [(2, 2), (2, 3), (2,), (3,)]
        np.testing.assert_array_equal(blocks[1], 0)
        np.testing.assert_array_equal(blocks[2], 0)


def test_without_a_mode_the_ranks_decide() -> None:
    body = "y[()] += x[i] * w[()] for [i]: 0 <= i < N"
    made = program("x: float64[N]; w: float64", "y: float64", body)
    assert jacobian(made, ["x", "w"]) == jacobian(made, ["x", "w"], mode=None)
    assert jacobian(made, ["x"]) == jacobian(made, ["x"], mode="reverse")
    assert jacobian(made, ["w"]) == jacobian(made, ["w"], mode="forward")


def test_a_block_has_the_type_of_its_output() -> None:
    body = "y[i] = float32(x[i]) * w[i] for [i]: 0 <= i < N"
    made = program("x: float64[N]; w: float32[N]", "y: float32[N]", body)
    for mode in MODES:
        result = jacobian(made, ["x", "w"], mode=mode, keep_outputs=False)
        assert [result.tensor(name).dtype for name in result.outputs] == ["float32", "float32"]
        verify_deeply(result)


# -- every program -------------------------------------------------------------------------------------------


def check_jacobian(made: Program, arrays: list[np.ndarray]) -> None:
    """Both modes agree; rows are adjoints of unit cotangents, columns tangents of unit directions."""
    inputs = {tensor.name: np.asarray(array) for tensor, array in zip(made.inputs, arrays, strict=True)}
    wrt = [tensor.name for tensor in made.inputs if is_floating(tensor.dtype)]
    results = interpret(made, arrays).outputs
    outputs = {
        name: np.asarray(array)
        for name, array in zip(made.outputs, results, strict=True)
        if is_floating(made.tensor(name).dtype)
    }
    forward, reverse = (kept_jacobian(made, tuple(wrt), mode) for mode in MODES)
    blocks = zip(interpret(forward, arrays).outputs, interpret(reverse, arrays).outputs, strict=True)
    matrices: dict[tuple[str, str], np.ndarray] = {}
    for output, value in outputs.items():
        for name in wrt:
            one, other = next(blocks)
            assert one.shape == value.shape + inputs[name].shape
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)
            matrices[output, name] = one.reshape(value.size, inputs[name].size)
    for name in wrt:
        v = np.asarray(RNG.uniform(-1, 1, inputs[name].shape))
        pushed = interpret(kept_tangent(made, (name,)), [*arrays, v]).outputs
        for output, found in zip(outputs, pushed, strict=True):
            np.testing.assert_allclose(np.ravel(found), matrices[output, name] @ v.ravel(), rtol=1e-8, atol=1e-8)
    for output, value in outputs.items():
        u = np.asarray(RNG.uniform(-1, 1, value.shape))
        # Of the only output it is what other tests have asked for.
        one = len(made.outputs) == 1
        reverse = kept_adjoint(made, tuple(wrt)) if one else adjoint(made, wrt, outputs=[output], keep_outputs=False)
        pulled = interpret(reverse, [*arrays, u]).outputs
        for name, found in zip(wrt, pulled, strict=True):
            np.testing.assert_allclose(np.ravel(found), u.ravel() @ matrices[output, name], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("row", [row for row in PROGRAMS.values() if row.smooth], ids=str)
def test_jacobians_of_the_characteristic_programs(row: CharacteristicProgram) -> None:
    for call in row.calls:
        if sum(int(np.prod(shape)) for shape in call) <= 60:
            arrays = arguments_of(row, call, "float64")
            check_jacobian(row.function.program(*arrays, **row.options), arrays)


@pytest.mark.parametrize("row", every(3, ONE_OF_EACH), ids=str)
def test_jacobians_at_hard_cases(row: HardCase) -> None:
    arrays = row.typed("float64")
    check_jacobian(program_of(row.function, arrays), arrays)


@op
def rosenbrock(x):
    y[()] += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return y


def test_the_hessian_of_a_chain_is_banded(golden: Golden) -> None:
    x: Any = RNG.uniform(-1, 1, 6)
    made = jacobian(gradient(rosenbrock.program(x), ["x"], keep_outputs=False), ["x"], keep_outputs=False)
    golden("jacobian/rosenbrock_hessian", format_program(made))
    assert points(made, x_0=60) <= 4 * 60
    [found] = values(made, x)
    assert np.count_nonzero(found) == 6 + 2 * 5
    np.testing.assert_allclose(found, found.T)


@pytest.mark.parametrize("seed", [2, 8, *range(100, 108)])
def test_jacobians_of_random_programs(seed: int) -> None:
    case = random_case(seed)
    check_jacobian(case.program, [np.asarray(array) for array in case.inputs])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(200, 420))
def test_jacobians_of_more_random_programs(seed: int) -> None:
    case = random_case(seed)
    check_jacobian(case.program, [np.asarray(array) for array in case.inputs])
