"""Index variables times sizes: digits where they are digits, tests at run time where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from tcdsl.errors import ShapeError
from tcdsl.ir.text.printer import format_program
from tests.ranges.brute_force import agree, arrays_of, bound, compute, sizes_of
from tests.ranges.programs import Shapes


def same(shapes, expected, extents=(0, 1, 2, 5)):
    for number, sizes in enumerate(sizes_of(shapes, extents)):
        arrays = arrays_of(shapes, sizes, seed=number)
        right = expected(*arrays)
        if right is None:
            with pytest.raises(ShapeError):
                bound(shapes.program(), sizes)
            continue
        np.testing.assert_allclose(compute(shapes, arrays), np.asarray(right), err_msg=str(sizes))


def test_flattening():
    shapes = Shapes({"A": 2})
    shapes.add("C[i*A_1 + p] = A[i, p]")
    assert not shapes.assertions
    same(shapes, lambda A: A.ravel())
    agree(
        shapes,
        lambda A_0, A_1: (A_0 * A_1,),
        lambda i, p, A_0, A_1: 0 <= i < A_0 and 0 <= p < A_1,
    )


@pytest.mark.parametrize(
    ("extents", "place", "expected"),
    [
        ("A_1 - P_0 + 1", "i*(A_1 - P_0 + 1) + j", lambda B: B.ravel()),
        ("A_1 - P_0 + 1", "j*A_0 + i", lambda B: B.T.ravel()),
        ("A_1 - P_0 + 1", "A_0*(A_1 - P_0 + 1) - 1 - (i*(A_1 - P_0 + 1) + j)", lambda B: B.ravel()[::-1]),
        ("A_1 - P_0 + 1", "(i*(A_1 - P_0 + 1) + j)*2 + 1", lambda B: np.stack([0 * B, B], -1).ravel()),
        ("(A_1 - P_0) // 2 + 1", "i*((A_1 - P_0) // 2 + 1) + j", lambda B: B.ravel()),
    ],
)
def test_flattening_what_a_window_leaves(extents, place, expected):
    shapes = Shapes({"A": 2, "P": 1})
    step = 2 if "//" in extents else 1
    shapes.add(f"B[i, j] += A[i, {step}*j + k] * P[k]", extents=["A_0", extents])
    size = f"A_0*({extents})" + ("*2" if "*2" in place else "")
    shapes.add(f"C[{place}] = B[i, j]", extents=[size])
    (_, flattened) = shapes.program().statements
    assert not flattened.unique
    assert flattened.condition is None

    def right(A, P):
        count = (A.shape[1] - len(P)) // step + 1
        if count < 0:
            return None
        return expected(np.array([[row[step * j :][: len(P)] @ P for j in range(count)] for row in A]))

    same(shapes, right, (1, 2, 3, 5))


def test_sums_of_sizes_that_are_no_digits_are_compared_at_the_call():
    shapes = Shapes({"A": 2, "P": 1, "C": 1})
    shapes.add("C[i*(P_0 + 1) + j] = A[i, j]", keep="C")
    assert "meets cells again: its lower part spans" in shapes.program().assertions[-1].message
    assert not shapes.program().statements[0].unique


def test_flattening_three_axes():
    shapes = Shapes({"A": 3})
    shapes.add("C[i*A_1*A_2 + j*A_2 + k] = A[i, j, k]")
    assert not shapes.assertions
    same(shapes, lambda A: A.ravel(), (0, 1, 2, 3))


def test_a_kronecker_product():
    shapes = Shapes({"A": 2, "B": 2})
    shapes.add("C[i*B_0 + p, j*B_1 + q] = A[i, j] * B[p, q]")
    same(
        shapes,
        lambda A, B: np.kron(A, B) if A.size and B.size else np.zeros((len(A) * len(B), A.shape[1] * B.shape[1])),
        (0, 1, 3),
    )


def test_reading_by_digits():
    shapes = Shapes({"C": 1, "P": 1})
    shapes.add("A[i, p] = C[i*P_0 + p], p < P_0")
    same(
        shapes,
        lambda C, P: C[: len(C) // len(P) * len(P)].reshape(len(C) // len(P), len(P)) if len(P) else None,
        (0, 1, 2, 3, 7),
    )


def test_reading_back_what_was_flattened_gives_the_same_extents():
    shapes = Shapes({"A": 2})
    shapes.add("C[i*A_1 + p] = A[i, p]")
    shapes.add("B[i, p] = C[i*A_1 + p], p < A_1")
    assert "tensor B: float64[A_0, A_1]" in format_program(shapes.program())
    same(shapes, lambda A: A)


def test_digits_on_a_declared_target():
    shapes = Shapes({"A": 2, "M": 1})
    shapes.add("C[i*A_1 + p] = A[i, p]", extents=["M_0"])

    def expected(A, M):
        out = np.zeros(len(M))
        flat = A.ravel()[: len(M)]
        out[: len(flat)] = flat
        return out

    same(shapes, expected, (0, 1, 2, 3, 5))
    assert shapes.program().statements[0].condition is None


def test_digits_written_backwards():
    shapes = Shapes({"A": 2})
    shapes.add("C[(A_0 - 1 - i)*A_1 + A_1 - 1 - p] = A[i, p]")
    assert not shapes.assertions
    same(shapes, lambda A: A.ravel()[::-1])


def test_pixel_shuffle():
    shapes = Shapes({"X": 3, "R": 1})
    shapes.add("Y[x*R_0 + r, y*R_0 + s] = X[x, y, r*R_0 + s], r < R_0, s < R_0")

    def expected(X, R):
        n = len(R)
        if X.shape[2] < n * n:
            return None
        Y = np.zeros((X.shape[0] * n, X.shape[1] * n))
        for x in range(X.shape[0]):
            for y in range(X.shape[1]):
                for r in range(n):
                    for s in range(n):
                        Y[x * n + r, y * n + s] = X[x, y, r * n + s]
        return Y

    for n, channels in ((1, 1), (2, 4), (2, 5), (1, 3)):
        X = np.random.default_rng(0).standard_normal((2, 3, channels))
        np.testing.assert_array_equal(compute(shapes, [X, np.zeros(n)]), expected(X, np.zeros(n)))


def test_a_symbolic_stride():
    shapes = Shapes({"I": 1, "K": 1, "S": 1})
    shapes.add("O[x] += I[x*S_0 + k] * K[k]")

    def expected(I, K, S):
        if not len(S) or len(I) + len(S) < len(K):
            return None
        return [I[x * len(S) : x * len(S) + len(K)] @ K for x in range((len(I) - len(K)) // len(S) + 1)]

    same(shapes, expected, (1, 2, 3, 6))
    with pytest.raises(ShapeError, match="stride"):
        bound(shapes.program(), {"I_0": 3, "K_0": 1, "S_0": 0})


def test_a_symbolic_stride_on_a_declared_target_is_tested_at_run_time():
    shapes = Shapes({"I": 1, "K": 1, "S": 1})
    shapes.add("O[x] += I[x*S_0 + k] * K[k]", extents=["4"])
    assert shapes.program().statements[0].condition is not None
    same(
        shapes,
        lambda I, K, S: [
            sum(I[x * len(S) + k] * K[k] for k in range(len(K)) if x * len(S) + k < len(I)) for x in range(4)
        ],
        (0, 1, 2, 3, 6),
    )


def test_strides_and_dilations():
    shapes = Shapes({"I": 1, "K": 1, "S": 1, "D": 1})
    shapes.add("O[x] += I[x*S_0 + k*D_0] * K[k]")

    def expected(I, K, S, D):
        span = (len(K) - 1) * len(D)
        if len(I) - 1 - span + len(S) < 0:
            return None
        count = (len(I) - 1 - span) // len(S) + 1
        return [sum(I[x * len(S) + k * len(D)] * K[k] for k in range(len(K))) for x in range(count)]

    same(shapes, expected, (1, 2, 4))


def test_extents_with_names_stay_as_they_are():
    shapes = Shapes({"I": 1, "K": 1, "S": 1})
    shapes.add("O[x] += I[x*S_0 + k] * K[k]")
    shapes.add("Y[x] = 2.0 * O[x]")
    assert shapes.tensors["Y"].shape == shapes.tensors["O"].shape


def test_products_that_nothing_else_bounds_ask_for_a_range():
    with pytest.raises(ShapeError, match="nothing bounds the index `i`"):
        Shapes({"A": 1, "S": 1, "D": 1}).add("O[()] += A[i*S_0 + j*D_0], 0 <= j < 3", extents=[])
    with pytest.raises(ShapeError, match="cannot be inferred"):
        Shapes({"A": 1, "S": 1}).add("O[i + j] += A[i*S_0 + j]")


def test_products_and_quotients_of_sizes_are_named():
    shapes = Shapes({"A": 1, "N": 1, "M": 1})
    shapes.add("O[i] = A[i + N_0 * M_0] + A[i + N_0 // M_0], i < 4")
    program = shapes.program()
    assert sum(1 for size in program.sizes if not hasattr(size.source, "axis")) >= 2
    N, M, A = np.zeros(3), np.zeros(2), np.arange(10.0)
    np.testing.assert_array_equal(compute(shapes, [A, N, M]), A[6:] + A[1:5])


def test_quotients_of_index_variables_by_sizes_are_checked_like_data():
    shapes = Shapes({"A": 1, "B": 1, "N": 1})
    shapes.add("O[i] = A[i // N_0] * B[i]")
    np.testing.assert_array_equal(compute(shapes, [np.array([1.0, 2]), np.ones(4), np.zeros(2)]), [1, 1, 2, 2])
