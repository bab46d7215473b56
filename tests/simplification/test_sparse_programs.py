"""Programs whose derivative must not cost more than they do: diagonals, traces, single cells."""

from __future__ import annotations

import numpy as np

from tcdsl.autodiff import gradient
from tcdsl.ir.program import Program
from tests.autodiff.programs import check, program, values

DIAGONAL = "A[i, j] = where(i == j, x[i], 0.0) for [i, j]: 0 <= i < N and 0 <= j < N"
RNG = np.random.default_rng(4)


def points(made: Program, **sizes: int) -> int:
    """How many points all statements execute."""
    return sum(len(list(statement.domain.points(sizes))) for statement in made.statements)


def cells(made: Program, **sizes: int) -> int:
    """How many cells all tensors have that statements make."""
    ranks = [len(tensor.shape) for tensor in made.tensors]
    return sum(sizes["N"] ** rank for rank in ranks)


def test_traces_of_a_diagonal_matrix() -> None:
    body = DIAGONAL + "\ny[()] += A[i, i] for [i]: 0 <= i < N\nz[()] = y[()] + y[()] for []:"
    made = program("x: float64[N]", "A: float64[N, N]; y: float64; z: float64", body, "z")
    derived = gradient(made, ["x"])
    assert points(derived, N=50) <= 2 * 50 + 5
    assert cells(derived, N=50) <= 2 * 50
    check(made, RNG.random(4))


def test_row_times_column_of_a_diagonal_matrix() -> None:
    body = DIAGONAL + "\ny[()] += A[i, 0] * A[0, i] for [i]: 0 <= i < N"
    made = program("x: float64[N]", "A: float64[N, N]; y: float64", body)
    derived = gradient(made, ["x"])
    assert cells(derived, N=50) <= 2 * 50
    assert points(derived, N=50) <= 2 * 50
    np.testing.assert_array_equal(values(derived, [3.0, 4.0, 5.0])[1], [6, 0, 0])
    check(made, RNG.random(4))


def test_trace_of_a_scaled_identity() -> None:
    body = "A[i, j] = where(i == j, 1.0, 0.0) * x[()] for [i, j]: 0 <= i < N and 0 <= j < N"
    body += "\ny[()] += A[i, i] for [i]: 0 <= i < N"
    made = program("x: float64; w: float64[N]", "A: float64[N, N]; y: float64", body)
    derived = gradient(made, ["x"])
    assert points(derived, N=50) <= 2 * 50
    assert cells(derived, N=50) <= 2


def test_single_cells() -> None:
    body = "y[()] = " + " + ".join(f"x[{k}]" for k in (0, 2, 3, 4)) + " for []: N > 4"
    made = program("x: float64[N]", "y: float64", body)
    derived = gradient(made, ["x"])
    assert points(derived, N=50) == 5
    np.testing.assert_array_equal(values(derived, np.ones(6))[1], [1, 0, 1, 1, 1, 0])


def test_dead_copies() -> None:
    body = "\n".join(f"z{k}[()] = x[()] for []:" for k in range(5)) + "\ny[()] = 2.0 * x[()] for []:"
    made = program("x: float64", "; ".join(f"z{k}: float64" for k in range(5)) + "; y: float64", body)
    assert len(gradient(made, ["x"], keep_outputs=False).statements) == 1


def test_a_sum_of_traces_shares() -> None:
    body = "\n".join(f"s{k}[()] += A[i, i] for [i]: 0 <= i < N" for k in range(4))
    body += "\ny[()] = s0[()] * s1[()] + s2[()] * s3[()] for []:"
    made = program("A: float64[N, N]", "; ".join(f"s{k}: float64" for k in range(4)) + "; y: float64", body)
    derived = gradient(made, ["A"])
    assert points(derived, N=50) <= 2 * 50 + 10
    check(made, RNG.random((3, 3)))


def test_a_product_of_scalars_through_names() -> None:
    names = [f"x{k}" for k in range(8)]
    lines = ["p1[()] = x0[()] * x1[()] for []:"]
    lines += [f"p{k}[()] = p{k - 1}[()] * x{k}[()] for []:" for k in range(2, 8)]
    tensors = "; ".join(f"p{k}: float64" for k in range(1, 8))
    made = program("; ".join(f"{name}: float64" for name in names), tensors, "\n".join(lines), "p7")
    assert len(gradient(made, names).statements) <= 3 * 8
    check(made, *RNG.random(8), order=1)


def test_sparse_derivatives_reach_through_statements() -> None:
    body = "h[i] = tanh(x[i]) for [i]: 0 <= i < N"
    body += "\nc[i, j] = h[i] * h[j] for [i, j]: 0 <= i < N and 0 <= j < N"
    body += "\ny[()] += c[i, i] * h[0] for [i]: 0 <= i < N"
    made = program("x: float64[N]", "h: float64[N]; c: float64[N, N]; y: float64", body)
    derived = gradient(made, ["x"])
    assert points(derived, N=50) <= 8 * 50
    check(made, RNG.random(4))
