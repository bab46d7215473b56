"""The reset form on a target that holds cells: those start anew that its index list can reach."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed

A = np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 9.0]])
q = np.array([2.0, -1.0])
held = np.array([10.0, 20.0, 30.0, 40.0])
sums = A.sum(0)


def check(f: Any, *arguments: Any, wanted: Any) -> None:
    """What the interpreter gives; compiled code is tested with all forms together."""
    found = f.interpret(*arguments)
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    for part, value in pairs:
        np.testing.assert_allclose(part, value)


def test_cells_that_a_condition_leaves_out_keep_what_they_hold() -> None:
    @op
    def f(R, S, T, q, A):
        R[j] = sum(q[i] * A[i, j]), j > 0
        S[j] = sum(A[i, j]), 1 <= j < 3
        T[j] = max(A[i, j]), j % 2 == 0, A[0, j] > 0
        return R, S, T

    product = q @ A
    wanted = ([10, *product[1:]], [10, *sums[1:3], 40], [5, 20, 7, 40])
    assert_gives(f, held, held, held, q, A, wanted=wanted)


def test_conditions_with_a_reduced_variable_only_filter() -> None:
    @op
    def f(R, S, T, A):
        R[j] = sum(A[i, j]), i > j
        S[j] = sum(A[i, j]), j > 0, i > 5
        T[j] = sum(A[i, j]), j > 0 and i > 0
        return R, S, T

    check(f, held, held, held, A, wanted=([5, 0, 0, 0], [10, 0, 0, 0], [10, 6, 7, 9]))


def test_conditions_of_the_generator_and_brackets_belong_to_the_reduction() -> None:
    @op
    def f(R, S, A):
        R[j] = sum(A[i, j] for i in range(2) if j > 1)
        S[j] = sum(A[i, j] * (j > 1))
        return R, S

    wanted = [0, 0, *sums[2:]]
    check(f, held, held, A, wanted=(wanted, wanted))


def test_a_cell_with_nothing_to_sum_starts_anew_and_one_that_is_out_of_reach_stays() -> None:
    @op
    def f(R, S, T, A, w):
        R[j] = prod(A[i, j + 1]), j > 1
        S[j] = sum(A[i, j] * w[j + k])
        T[j] = prod(w[j + k] for k in range(2))
        return R, S, T

    w = np.array([3.0, 5.0, 7.0])
    check(f, held, held, held, A, w, wanted=([10, 20, 36, 40], 15 * sums, [15, 35, 7, 1]))


def test_conditions_on_data() -> None:
    @op
    def f(R, A, m):
        R[j] = sum(A[i, j]), m[j] > 0
        return R

    check(f, held, A, np.array([1, 0, 0, 1]), wanted=[sums[0], 20, 30, sums[3]])


def test_without_conditions_the_cells_start_anew_that_the_index_list_reaches() -> None:
    @op
    def f(R, S, T, U, V, A):
        R[2 * j] = sum(A[i, j])
        S[j + 1] = sum(A[i, j])
        T[j + 1] = sum(A[i, j + 1])
        U[j // 3] = sum(A[i, j])
        V[5 - j - k] = sum(A[i, j] * A[i, k]), k < 2
        return R, S, T, U, V

    five, seven = np.arange(50.0, 55), np.arange(70.0, 77)
    products = np.array([[A[:, j] @ A[:, k] for k in range(2)] for j in range(4)])
    V = seven.copy()
    V[1:6] = [sum(products[j, k] for k in range(2) for j in range(4) if 5 - j - k == cell) for cell in range(1, 6)]
    wanted = (
        [sums[0], 71, sums[1], 73, sums[2], 75, sums[3]],
        [50, *sums],
        [sums[0], *sums[1:], 54][: len(five)],
        [sums[:3].sum(), sums[3], 52, 53, 54],
        V,
    )
    check(f, seven, five, five, five, seven, A, wanted=wanted)


def test_all_cells_or_those_at_a_fixed_index() -> None:
    @op
    def f(R, S, A):
        R[j] = sum(A[i, j])
        stats = output(3)
        stats[0] = sum(A[i, j])
        stats[1] = sum(A[i, j] * A[i, j])
        stats[-1] = max(A[i, j])
        S[1, j] = sum(A[i, j] for i in range(2))
        return R, stats, S

    wanted = (sums, [A.sum(), (A * A).sum(), 9], np.stack([A[0], sums]))
    check(f, held, A, A, wanted=wanted)


def test_shifted_strided_mirrored_and_meeting_indices() -> None:
    @op
    def f(R, S, T, U, V, A, b):
        (N,) = R.shape
        R[j + 1] = sum(A[i, j]), j < 2
        S[2 * j + 1] = sum(A[i, j]), j > 0
        T[N - 1 - j] = sum(A[i, j]), j < 2
        U[j // 2] = sum(A[i, j]), j > 1
        V[b[j]] = sum(A[i, j]), j > 1
        return R, S, T, U, V

    wanted = (
        [10, sums[0], sums[1], 40],
        [10, 20, 30, sums[1]],
        [10, 20, sums[1], sums[0]],
        [10, sums[2] + sums[3], 30, 40],
        [10, 20, 30, sums[2] + sums[3]],
    )
    check(f, held, held, held, held, held, A, np.array([0, 1, 3, 3]), wanted=wanted)


def test_an_index_that_is_data_reaches_all_positions_of_its_axis() -> None:
    @op
    def f(R, S, A, b):
        R[b[j]] = sum(A[i, j])
        S[b[j], i + 1] = sum(A[i, j] for k in range(1))
        return R, S

    wanted = ([sums[0] + sums[1], sums[2], 0, sums[3]], np.full((4, 4), 8.0))
    wanted[1][:, 1:3] = 0
    for j, row in enumerate([0, 0, 1, 3]):
        wanted[1][row, 1:3] += A[:, j]
    check(f, held, np.full((4, 4), 8.0), A, np.array([0, 0, 1, 3]), wanted=wanted)


def test_branches_that_data_decides_reach_where_they_are_in_range() -> None:
    @op
    def f(R, S, A, m):
        R[j] = sum(A[i, j + 1] if j < 2 else A[i, j]), j != 0
        S[j] = sum(A[i, j + 1] if m[j] else A[i, j])
        return R, S

    m = np.array([True, False, False, True])
    wanted = ([10, sums[2], sums[2], sums[3]], [sums[1], sums[1], sums[2], 40])
    check(f, held, held, A, m, wanted=wanted)


def test_an_unchanged_reset_clears_nothing_beside() -> None:
    @op
    def f(C, D, A, B):
        C[i, j] = sum(A[i, k] * B[k, j])
        D[D.shape[0] - 1 - i] = sum(C[i, k] * D[i])
        N, M = C.shape
        E = output(N, M)
        for _ in range(2):
            E[i, j] = sum(C[i, k] * C[k, j])
        return C, D, E

    square = A[:, :2]
    text = str(f.explain("ir", square, square[0], square, square))
    assert "+=" in text
    assert " = 0.0" not in text, text


def test_new_and_declared_targets_and_the_literal_operator_reset_all_cells() -> None:
    @op
    def f(R, A):
        new[j] = sum(A[i, j]), j > 1
        declared: real[6]
        declared[j] = prod(A[i, j]), j > 1
        assign(R[j], "=:+", A[i, j], j > 1)
        return new, declared, R

    tail = [0, 0, *sums[2:]]
    check(f, held, A, wanted=(tail, [1, 1, 21, 36, 1, 1], tail))


def test_logics_reset_all_cells() -> None:
    @op
    def f(R, x):
        R["i;j=>i0"] = sum(x * x)
        return R

    x = np.array([1.0, 2.0])
    check(f, np.full((2, 3), 7.0), x, wanted=[[3, 0, 0], [6, 0, 0]])


def test_a_target_that_a_statement_has_written_in_part() -> None:
    @op
    def f(A):
        R = output(6)
        R[0] = 5.0
        R[j] = sum(A[i, j]), 1 <= j < 3
        R[j] = sum(A[i, j - 2]), j > 4
        return R

    check(f, A, wanted=[5, *sums[1:3], 0, 0, sums[3]])


def test_truth_values_and_integers() -> None:
    @op
    def f(flags, numbers, counts, A, n):
        flags[j] = any(A[i, j] > 6), j > 0
        numbers[j] = all(A[i, j] > 3), j > 0
        counts[j] = max(n[i, j]), j > 0, i > 5
        return flags, numbers, counts

    flags = np.array([True, True, False, False])
    counts = np.arange(4, dtype=np.int8)
    found = f.interpret(flags, held, counts, A, A.astype(np.int8))
    np.testing.assert_array_equal(found[0], [True, False, True, True])
    np.testing.assert_array_equal(found[1], [10, 0, 0, 1])
    np.testing.assert_array_equal(found[2], [0, -128, -128, -128])
    assert [part.dtype for part in found] == [bool, np.float64, np.int8]


def test_code_in_place_and_tensors() -> None:
    @cd
    def f(R, A):
        R[j] = sum(A[i, j]), j > 0

    np.testing.assert_array_equal(changed(f, held, A)[0], [10, *sums[1:]])
    R = tc.tensor(held.copy())
    tc.compile(f(R, tc.tensor(A))).run()
    np.testing.assert_array_equal(R.value, [10, *sums[1:]])


@pytest.mark.parametrize("shape", [(0, 4), (2, 1), (2, 0)])
def test_extents_of_0_and_1(shape: tuple[int, int]) -> None:
    @op
    def f(R, A):
        R[j] = sum(A[i, j]), j > 0
        return R

    wanted = held[: shape[1]].copy()
    wanted[1:] = 0
    check(f, held[: shape[1]], np.ones(shape), wanted=wanted)


def test_the_adjoint_of_what_the_target_held_is_zero_exactly_on_the_reset_cells() -> None:
    @op
    def f(R, S, T, A, b):
        R[j] = sum(A[i, j] * A[i, j]), j > 1
        S[b[j]] = sum(A[i, j]), j > 1
        T[2 * j + 1] = sum(A[0, j] for i in range(2))
        return R, S, T

    seeds = (np.array([1.0, 10, 100, 1000]), np.array([2.0, 3, 5, 7]), np.arange(10.0, 20))
    _, pullback = tc.vjp(f, held, held, np.zeros(10), A, np.array([0, 1, 3, 3]))
    d_R, d_S, d_T, d_A, _ = pullback(seeds)
    np.testing.assert_array_equal(d_T, [10, 0, 12, 0, 14, 0, 16, 0, 18, 19])
    d_A[0] -= [22, 26, 30, 34]
    np.testing.assert_array_equal(d_R, [1, 10, 0, 0])
    np.testing.assert_array_equal(d_S, [2, 3, 5, 0])
    np.testing.assert_array_equal(d_A, 2 * A * [0, 0, 100, 1000] + [0, 0, 7, 7])


def test_a_place_that_does_not_exist_is_not_started_anew_where_the_statement_has_no_points() -> None:
    @op
    def f(D, A):
        D[1] = sum(A[j, i + 1]), i >= 1, j > 0
        return D

    check(f, np.array([-1.5]), A[:, :2], wanted=[-1.5])
    assert_gives(f, np.array([-1.5, 2.0]), A[:, :2], wanted=[-1.5, 0.0])
    assert_gives(f, np.array([-1.5, 2.0]), A, wanted=[-1.5, 16.0])


def test_a_target_that_a_shifted_read_narrows_may_be_longer_than_what_its_condition_reads() -> None:
    @op
    def f(D, a, B):
        D[i] = sum(B[j, i - 1]), a[i] > 0
        return D

    # B has nothing to give D[0].
    a = np.array([1.0, -1.0, 2.0])
    assert_gives(f, held, a, A, wanted=[10.0, 20.0, sums[1], 40.0])
