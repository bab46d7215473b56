"""Whole programs: seeds, names, zeros, losses, what is refused, and what derivatives look like."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.autodiff import adjoint, gradient, tangent
from tcdsl.errors import DifferentiationError, ShapeError
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.text.printer import format_program
from tcdsl.runtime.transforms.checking import DerivativeMismatchError, check_adjoint
from tcdsl.simplification import simplify
from tests.autodiff.program_gradients import check_program_gradient
from tests.autodiff.programs import check, program, pulled_back, values
from tests.range_checks import verify_deeply

MATMUL = program(
    "A: float64[N, K]; B: float64[K, M]",
    "C: float64[N, M]",
    "C[i, j] += A[i, k] * B[k, j] for [i, j, k]: 0 <= i < N and 0 <= j < M and 0 <= k < K",
    "C",
)
LOSS = program("x: float64[N]", "y: float64", "y[()] += x[i] * x[i] for [i]: 0 <= i < N")


def test_inputs_and_outputs() -> None:
    derived = adjoint(MATMUL, ["B", "A"])
    assert [tensor.name for tensor in derived.inputs] == ["A", "B", "d_C"]
    assert derived.inputs[-1].shape == MATMUL.tensor("C").shape
    assert derived.outputs == ("C", "d_B", "d_A")
    assert adjoint(MATMUL, ["A"], keep_outputs=False).outputs == ("d_A",)
    pushed = tangent(MATMUL, ["B"])
    assert [tensor.name for tensor in pushed.inputs] == ["A", "B", "t_B"]
    assert pushed.outputs == ("C", "t_C")


def test_seeds_have_the_shape_of_the_outputs() -> None:
    with pytest.raises(ShapeError, match="d_C"):
        values(adjoint(MATMUL, ["A"]), np.ones((2, 3)), np.ones((3, 4)), np.ones((2, 3)))


def test_names_that_are_taken() -> None:
    made = program(
        "x: float64[N]; d_x: float64[N]; d_y: float64", "y: float64", "y[()] += x[i] * d_x[i] * d_y for [i]: 0 <= i < N"
    )
    derived = adjoint(made, ["x", "d_x", "d_y"])
    names = [tensor.name for tensor in (*derived.inputs, *derived.tensors)]
    assert len(set(names)) == len(names)
    check(made, np.arange(3.0), np.ones(3), 2.0)


def test_the_primal_keeps_its_names() -> None:
    twice = adjoint(adjoint(MATMUL, ["A"]), ["A", "B"])
    assert twice.outputs == ("C", "d_A", "d_A_2", "d_B")


def test_inputs_that_nothing_depends_on_get_zeros() -> None:
    made = program("x: float64[N]; w: float64[M]", "y: float64[N]", "y[i] = x[i] for [i]: 0 <= i < N")
    dx, dw = pulled_back(made, [np.ones(2), np.ones(3)], [[5.0, 6.0]], ["x", "w"])
    np.testing.assert_array_equal(dx, [5, 6])
    np.testing.assert_array_equal(dw, np.zeros(3))
    (ty,) = values(tangent(made, ["w"], keep_outputs=False), np.ones(2), np.ones(3), np.ones(3))
    np.testing.assert_array_equal(ty, np.zeros(2))


def test_an_input_that_is_an_output() -> None:
    made = program("x: float64[N]", "y: float64[N]", "y[i] = 2.0 * x[i] for [i]: 0 <= i < N", "x, y, x")
    dx = pulled_back(made, [np.ones(2)], [np.ones(2), 10 * np.ones(2), 100 * np.ones(2)], ["x"])[0]
    np.testing.assert_array_equal(dx, [121, 121])
    check(made, np.ones(2))


def test_results_are_tensors_of_their_own() -> None:
    made = program("a: float64[N]; b: float64[N]", "y: float64[N]", "y[i] = a[i] + b[i] for [i]: 0 <= i < N")
    derived = adjoint(made, ["a", "b", "a"])
    assert len(set(derived.outputs)) == 4
    verify_deeply(derived)
    assert "d_y" not in derived.outputs


def test_gradient_of_a_loss() -> None:
    derived = gradient(LOSS, ["x"])
    assert derived.outputs == ("y", "d_x")
    assert [tensor.name for tensor in derived.inputs] == ["x"]
    y, dx = values(derived, [1.0, 2.0, 3.0])
    assert y == 14
    np.testing.assert_array_equal(dx, [2, 4, 6])
    assert "d_x[i] = 2.0 * x[i] " in format_program(derived)


def test_losses_have_one_element() -> None:
    made = program("x: float64[N]", "y: float64[N]", "y[i] = x[i] * x[i] for [i]: 0 <= i < N")
    derived = gradient(made, ["x"])
    np.testing.assert_array_equal(values(derived, [3.0])[1], [6])
    with pytest.raises(ShapeError, match="one element"):
        values(derived, [3.0, 4.0])


def test_what_has_no_gradient() -> None:
    made = program(
        "x: float64[N]; n: int64[N]",
        "y: float64; c: int64",
        "y[()] += x[i] for [i]: 0 <= i < N\nc[()] += n[i] for [i]: 0 <= i < N",
        "y, c",
    )
    with pytest.raises(DifferentiationError, match="n is int64: integer and bool tensors have no gradient"):
        adjoint(made, ["x", "n"])
    with pytest.raises(DifferentiationError, match="c is int64"):
        adjoint(made, ["x"], outputs=["c"])
    with pytest.raises(DifferentiationError, match="z is not an input"):
        tangent(made, ["z"])
    with pytest.raises(DifferentiationError, match="x is not an output"):
        adjoint(made, ["x"], outputs=["x"])
    check(made, np.ones(3), [1, 2, 3], wrt=["x"])


def test_second_derivatives() -> None:
    hessian_vector = adjoint(gradient(LOSS, ["x"], keep_outputs=False), ["x"], keep_outputs=False)
    np.testing.assert_array_equal(values(hessian_vector, [1.0, 2.0], [10.0, 100.0])[0], [20, 200])
    body = "y[()] += exp(x[i] * x[j]) for [i, j]: 0 <= i < N and 0 <= j < N"
    check_program_gradient(program("x: float64[N]", "y: float64", body), [np.array([0.3, -0.5])], ["x"], order=3)


def test_integers_stop_derivatives() -> None:
    body = "n[i] = int64(x[i]) for [i]: 0 <= i < N\ny[i] = x[i] * float64(n[i]) for [i]: 0 <= i < N"
    made = program("x: float64[N]", "n: int64[N]; y: float64[N]", body)
    (dx,) = pulled_back(made, [[2.5, 3.5]], [[1.0, 10.0]], ["x"])
    np.testing.assert_array_equal(dx, [2, 30])


def test_a_wrong_derivative_is_noticed() -> None:
    def function(x: np.ndarray) -> list[np.ndarray]:
        return [np.sin(x)]

    check_adjoint(function, lambda arrays, seeds: [np.cos(arrays[0]) * seeds[0]], [np.arange(3.0)], [0])
    with pytest.raises(DerivativeMismatchError, match="dot-product identity"):
        check_adjoint(function, lambda arrays, seeds: [np.sin(arrays[0]) * seeds[0]], [np.arange(3.0)], [0])
    with pytest.raises(DerivativeMismatchError, match="shape"):
        check_adjoint(function, lambda arrays, seeds: [np.ones(2)], [np.arange(3.0)], [0])


def test_values_of_a_maximum_are_stored_if_computing_them_twice_could_differ() -> None:
    bare = program("x: float64[N]", "y: float64", "y[()] >>= x[i] for [i]: 0 <= i < N")
    assert "y_values" not in format_program(adjoint(bare, ["x"]))
    body = "y[()] >>= exp(x[i] * x[j + 1]) for [i, j]: 2 <= i < N and 0 <= j < i - 1"
    computed = program("x: float64[N]", "y: float64", body)
    derived = adjoint(computed, ["x"])
    assert "y_values[i - 2, j]" in format_program(derived)
    for n in range(6):
        check(computed, np.sin(np.arange(n)), order=1)


def test_simplification_keeps_what_is_computed() -> None:
    made = program(
        "x: float64[N]",
        "a: float64[N]; b: float64[N]; c: float64[N]; zero: float64[N]; dead: float64[N]; y: float64[N]",
        "\n".join(
            f"{line}  for [i]: 0 <= i < N"
            for line in (
                "zero[i] = 0.0",
                "a[i] = sin(x[i]) * 1.0 - zero[i]",
                "b[i] = sin(x[i])",
                "c[i] = b[i]",
                "dead[i] = exp(a[i])",
                "y[i] = a[i] + c[i] + 2.0 * 3.0",
            )
        ),
    )
    shorter = simplify(made)
    assert len(shorter.statements) == 2
    assert "y[i] = 2.0 * a[i] + 6.0" in format_program(shorter)
    np.testing.assert_allclose(interpret(shorter, [np.arange(3.0)]).outputs[0], 2 * np.sin(np.arange(3)) + 6)
    assert simplify(shorter) == shorter


def test_zero_times_an_unknown_stays() -> None:
    made = program("x: float64[N]", "y: float64[N]", "y[i] = 0.0 * x[i] for [i]: 0 <= i < N")
    assert np.isnan(interpret(simplify(made), [np.array([np.nan])]).outputs[0])
