"""Reductions inside values: which variables they bind, what drops out of them, ties, NaN, several side by side."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tests.language.outcomes import assert_gives, refusal
from tests.language.running_programs import program

E = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]])
x = np.array([1.0, 2.0, 3.0, 4.0, 6.0])


def test_reductions_are_values() -> None:
    @op
    def f(E):
        Y[i, j] = E[i, j] / sum(E[i, l])
        d[i] = max(E[i, j]) - min(E[i, j])
        p[i] = 1 + prod(E[i, j])
        q[i] = any(E[i, j] > 6) and not all(E[i, j] > 6)
        return Y, d, p, q

    wanted = (E / E.sum(1, keepdims=True), [2, 3], [7, 141], [False, True])
    assert_gives(f, E, wanted=wanted)


def test_a_generator_over_a_range_of_sizes_or_integers_is_a_reduction_over_its_variables() -> None:
    @op
    def f(I, E):
        M, N = E.shape
        O[i] = max(I[2 * i + j] for j in range(2))
        s[i] = 1 + sum(E[i, j] for j in range(N))
        t[i] = 1 + sum(E[i, j] for j in range(1, N))
        u[()] = 0.5 * sum(E[i, j] for i in range(M) for j in range(N))
        return O, s, t, u

    assert_gives(f, x, E, wanted=([2, 4], [7, 17], [6, 13], 11.0))


def test_a_range_may_have_a_step() -> None:
    @op
    def f(x, *, step: int):
        N = x.shape[0]
        a[()] = 0 + sum(x[j] for j in range(0, N, 2))
        b[()] = sum((j + 1) * x[j] for j in range(1, 5, 3))
        c[()] = argmax(x[j] for j in range(1, N, step))
        d = output(N)
        d[i] = sum(x[j] for j in range(i, N, 2))
        e[i] = sum(x[2 * i + j] for j in range(0, 4, 2))
        g[i] = sum(x[i + j] for j in range(0, N - 1, 3))
        h[()] = sum(x[j] for j in range(3, 3, 2))
        return a, b, c, d, e, g, h

    # j takes 0 and 2 for e, so that i may be 1; 0 and 3 for g.
    wanted = (10.0, 2 * 2 + 5 * 6.0, 3, [10, 6, 9, 4, 6], [4, 9], [5, 8], 0.0)
    assert_gives(f, x, step=2, wanted=wanted)

    @op
    def down(x):
        a[()] = sum(x[j] for j in range(4, 0, -1))
        return a

    assert "a range whose step is not a positive integer" in refusal(tc.DslSyntaxError, down, x)


def test_several_fors_and_ifs_of_a_generator() -> None:
    @op
    def f(E, x):
        M, N = E.shape
        a[()] = 0 + sum(E[i, j] for i in range(M) if i > 0 for j in range(N) if j != 1)
        b[k] = x[k] + sum(E[i, j] * x[k] for i in range(M) for j in range(i + 1) if E[i, j] > 1)
        c = output(5)
        c[k] = sum(x[j] for j in range(k + 1) if j % 2 == 0)
        return a, b, c

    lower = 4 + 5
    assert_gives(f, E, x, wanted=(11.0, x * (1 + lower), [1, 1, 4, 4, 10]))


def test_without_a_generator_a_variable_belongs_to_the_innermost_reduction_around_it() -> None:
    @op
    def f(E):
        y[i] = sum(E[i, j] * max(E[k, j]))
        z[i] = max(E[i, j] + sum(E[k, j]))
        return y, z

    assert_gives(f, E, wanted=((E * E.max(0)).sum(1), (E + E.sum(0)).max(1)))


def test_a_variable_belongs_to_the_innermost_reduction_that_contains_all_its_occurrences() -> None:
    @op
    def f(E, w):
        y[i] = 1.0 * sum(w[j] * max(E[k, j]) * E[i, j])
        return y

    w = np.array([1.0, -1.0, 2.0])
    assert_gives(f, E, w, wanted=(w * E.max(0) * E).sum(1))


def test_reductions_side_by_side_never_share_a_variable() -> None:
    @op
    def f(w, E):
        y[i] = sum(w[k] * E[i, k]) / sum(w[k])
        z[i] = sum(E[i, k]) * sum(E[k, i])
        return y, z

    w = np.array([1.0, 2.0, 5.0])
    square = np.vstack([E, [0.5, 1.0, 2.0]])
    assert_gives(f, w, square, wanted=(square @ w / 8, square.sum(1) * square.sum(0)))


def test_the_ifs_of_a_generator_filter_a_reduction_and_so_do_conditions_on_one_that_is_the_whole_value() -> None:
    @op
    def f(E):
        N = E.shape[1]
        y[i, j] = E[i, j] / sum(E[i, l] for l in range(N) if l <= j)
        s[i] = sum(E[i, k]), k > 0
        t[i] = 10 * max(E[i, k] for k in range(N) if k < 2 if E[i, k] < 5)
        return y, s, t

    assert_gives(f, E, wanted=(E / E.cumsum(1), [5, 12], [20, 40]))


def test_a_reduction_that_binds_nothing_is_an_error() -> None:
    @op
    def f(x):
        y[i] = x[i] / sum(x[i])
        return y

    message = refusal(tc.DslSyntaxError, f, x)
    assert "the reduction binds no index variable: `i` belongs to the statement" in message
    assert "for k in range(n)" in message


def test_a_point_out_of_range_inside_a_reduction_drops_out_of_that_reduction_only() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N)
        m = output(N)
        y[i] = x[i] + sum(x[i + k] for k in range(-1, 2))
        m[i] = mean(x[i + k] for k in range(-1, 2))
        return y, m

    padded = np.pad(x, 1)
    sums = padded[:-2] + padded[1:-1] + padded[2:]
    assert_gives(f, x, wanted=(x + sums, sums / [2, 3, 3, 3, 2]))


def test_mean_divides_by_the_number_of_points_summed() -> None:
    @op
    def f(E, n):
        a[i] = mean(E[i, j])
        b[i] = mean(E[i, j]), E[i, j] > 2
        c[()] = 0 + mean(E[i, j])
        d[()] = 0 + mean(n[i])
        return a, b, c, d

    assert_gives(f, E, np.array([1, 2]), wanted=(E.mean(1), [3, 16 / 3], 22 / 6, 1.5), dtype=np.float64)


def test_argmax_and_argmin_are_positions_along_the_reduced_variable() -> None:
    @op
    def f(E):
        N = E.shape[1]
        a[i] = argmax(E[i, j])
        b[j] = argmin(E[i, j])
        c[i] = argmax(E[i, j] for j in range(1, N))
        d[i] = 10 * argmin(-E[i, j]) + 1
        return a, b, c, d

    E = np.array([[5.0, 2.0, 3.0], [4.0, 7.0, 1.0]])
    assert_gives(f, E, wanted=([0, 1], [1, 0, 1], [2, 1], [1, 11]), dtype=np.int64)


def test_the_position_among_several_ranges_counts_in_their_order() -> None:
    @op
    def f(A):
        _, J, L = A.shape
        rows[i] = argmax(A[i, j, l] for j in range(J) for l in range(L))
        columns[i] = argmin(A[i, j, l] for l in range(L) for j in range(J))
        some[i] = 2 * argmax(A[i, j, l] for j in range(J) for l in range(3) if l != j)
        everything = argmin(A[i, j, l] for i in range(2) for j in range(J) for l in range(L))
        return rows, columns, some, everything

    A = np.random.default_rng(3).integers(0, 9, (2, 3, 4)).astype(float)
    apart = np.where(np.eye(3, dtype=bool), -1, A[:, :, :3]).reshape(2, 9)
    wanted = (
        A.reshape(2, 12).argmax(1),
        A.transpose(0, 2, 1).reshape(2, 12).argmin(1),
        2 * apart.argmax(1),
        A.argmin(),
    )
    assert_gives(f, A, wanted=wanted, dtype=np.int64)
    assert "`argmax` over an empty range" in refusal(tc.ShapeError, f, A[:, :0])
    A[0, 1, 2] = A[1, 2, 0] = np.nan
    assert_gives(f, A, wanted=([6, 8], [7, 2], [10, 12], 6))

    @op
    def of_data(A, b):
        k[()] = argmax(A[i, j] for i in range(2) for j in range(3) if b[j] > 0)
        return k

    values = np.array([[5.0, 2.0, 3.0], [4.0, 7.0, 1.0]])
    assert_gives(of_data, values, np.array([1, 0, 1]), wanted=0)
    assert_gives(of_data, values, np.array([0, 1, 1]), wanted=4)
    assert "`argmax` over an empty range" in refusal(tc.ShapeError, of_data, values, np.zeros(3, int))

    for generator in (
        "for i in range(1, 2) for j in range(3)",
        "for i in range(0, 2, 2) for j in range(3)",
        "for i in range(2) for j in range(i)",
        "for i in range(2) for j in range(k + 1)",
    ):
        f = program(f"a[k] = argmax(A[i, j] + A[k, 0] {generator})\nreturn a", "A")
        message = refusal(tc.DslSyntaxError, f, values)
        assert "`argmax` over 2 ranges, of which one does not count all numbers from 0" in message
    assert "argmax(... for i in range(n) for j in range(n))" in refusal(
        tc.DslSyntaxError, program("a[()] = argmax(A[i, j])\nreturn a", "A"), values
    )


def test_the_first_of_several_winners_is_taken() -> None:
    @op
    def f(n):
        a[()] = 0 + argmax(n[i])
        b[()] = 0 + argmin(n[i])
        return a, b

    assert_gives(f, np.array([2.0, 3.0, 3.0, 1.0, 1.0]), wanted=(1, 3))
    assert_gives(f, np.zeros(4), wanted=(0, 0))


def test_max_and_min_propagate_nan_and_argmax_takes_the_first_of_them() -> None:
    @op
    def f(x):
        a[()] >>= x[i]
        b[()] <<= x[i]
        c[()] = 0 + max(x[i])
        d[()] = argmax(x[i])
        e[()] = argmin(x[i])
        g[i] = max(x[i], 2.5)
        return a, b, c, d, e, g

    values = np.array([1.0, np.nan, 3.0, np.nan])
    nan = np.nan
    assert_gives(f, values, wanted=(nan, nan, nan, 1, 1, [2.5, nan, 3.0, nan]))


def test_max_and_min_of_two_or_more_arguments_are_elementwise() -> None:
    @op
    def f(E):
        a[i, j] = max(E[i, j], 3.0)
        b[i] = min(E[i, 0], E[i, 1], 4)
        c[i] = sum(max(E[i, j], 2.0))
        d[i] = max(min(E[i, j], 2.5))
        return a, b, c, d

    assert_gives(f, E, wanted=(np.maximum(E, 3), [1, 4], np.maximum(E, 2).sum(1), [2.5, 2.5]))


def test_reductions_over_nothing() -> None:
    @op
    def f(E):
        s[i] = 1 + sum(E[i, j])
        p[i] = 1 + prod(E[i, j])
        m[i] = 0 - max(E[i, j])
        n[i] = mean(E[i, j])
        q[i] = any(E[i, j] > 0) or all(E[i, j] > 0)
        return s, p, m, n, q

    inf, nan = np.inf, np.nan
    assert_gives(f, E[:, :0], wanted=([1, 1], [2, 2], [inf, inf], [nan, nan], [True, True]))
    assert_gives(f, E[:0], wanted=([], [], [], [], []))


def test_integer_sums_are_64_bit() -> None:
    @op
    def f(n, b):
        s[()] = 0 * 1 + sum(n[i])
        p[()] = prod(n[i])
        c[()] = sum(b[i])
        return s, p, c

    n = np.array([100, 100, 100], np.int8)
    assert_gives(f, n, np.array([True, True, False]), wanted=(300, 10**6, 2), dtype=np.int64)


def test_a_reduction_at_one_position_stays_within_the_range_of_the_positions() -> None:
    @op
    def f(x):
        y[i] = max(x[i + k] for k in range(3)) if i != 1 else max(x[i + k] for k in range(4))
        return y

    x = np.array([1.0, 5.0, 2.0, 3.0, 7.0])
    assert_gives(f, x, wanted=[5, 7])
    assert_gives(f, x[:4], wanted=[5])
    assert_gives(f, x[:3], wanted=[])


def test_means_over_ranges_with_a_step_inside_a_sum() -> None:
    @op
    def f(A):
        y = output(3)
        y[i] += sum(
            mean(min(l * 1.0, A[(p + m) % 3, m % 4]) for p in range(i, m + 2) for l in range(3) if A[p % 3, l] <= 4)
            for m in range(0, i + 1, 2)
        )
        return y

    A = np.arange(12.0).reshape(3, 4) - 3
    wanted = np.zeros(3)
    for i in range(3):
        for m in range(0, i + 1, 2):
            points = [(p, l) for p in range(i, m + 2) for l in range(3) if A[p % 3, l] <= 4]
            values = [min(l, A[(p + m) % 3, m % 4]) for p, l in points]
            wanted[i] += np.mean(values) if values else np.nan
    assert_gives(f, A, wanted=wanted)


def test_one_inner_reduction_stands_under_two_outer_ones() -> None:
    @op
    def f(A, B, C, ids):
        y[i] = sum(A[i, j] * sum(B[j, k]) for j in range(2)) + max(C[i, j] - sum(B[j, k]) for j in range(3))
        z[i] = sum(A[i, j] * sum(B[ids[k], j])) - sum(C[i, j] * sum(B[ids[k], j]) for j in range(3) if j > 0)
        w[i] = (sum(A[i, k]) if i > 1 else 0.0) + (sum(A[i, k]) * 2 if i < 1 else 0.0)
        v[i] = sum(A[i, j] * sum(C[i, k])) / sum(C[i, j] + sum(C[i, k]))
        u[i] = sum(A[i, j] * sum(B[ids[k], 0]) * (j > 0)) - sum(C[i, j] * sum(B[ids[k], 0]) * (j < 2))
        u[i] *= 1.0 if B[0, 0] < 0 else 2.0
        q[i] = sum(A[i, k]) * (i > 1) + (sum(A[i, k]) if i < 1 else 0.0) + sum(A[i, k]) / 2
        return y, z, w, v, u, q

    generator = np.random.default_rng(0)
    a, b, c = (generator.integers(1, 9, shape).astype(float) for shape in ((3, 3), (3, 3), (3, 3)))
    ids = np.array([2, 0, 2, 1])
    rows, columns, sums = b.sum(axis=1), b[ids].sum(axis=0), c.sum(axis=1)
    y = (a[:, :2] * rows[:2]).sum(axis=1) + (c - rows).max(axis=1)
    z = a @ columns - c[:, 1:] @ columns[1:]
    w = a.sum(axis=1) * [2, 0, 1]
    v = a.sum(axis=1) * sums / (sums + 3 * sums)
    first = b[ids, 0].sum()
    u = 2 * first * (a[:, 1:].sum(axis=1) - c[:, :2].sum(axis=1))
    q = a.sum(axis=1) * [1.5, 0.5, 1.5]
    for found, wanted in zip(f.interpret(a, b, c, ids), (y, z, w, v, u, q), strict=True):
        np.testing.assert_allclose(found, wanted)


def test_numbers_are_reduced_over_the_points_of_a_generator() -> None:
    @op
    def f(x, n):
        (N,) = x.shape
        rank[i] = sum(1 for k in range(N) if x[k] > x[i])
        c: real[N]
        c[i] = sum(1.5 for k in range(4)), i < 2
        d: real[N]
        d[i] = max(n for k in range(2))
        e[i] = sum(N for k in range(3)) + 0 * x[i]
        return rank, c, d, e, 2 * sum(x)

    x = np.array([1.0, 3.0, 2.0])
    wanted = ([2, 0, 1], [6, 6, 0], [7, 7, 7], [9, 9, 9], 12.0)
    for found, expected in zip(f.interpret(x, 7.0), wanted, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_whole_arrays_meet_values_without_index_variables_in_statements() -> None:
    @op
    def f(x, A):
        (N,) = x.shape
        spread[()] += mean(square(x - mean(x)))
        y[i] = x[i] - np.max(x / np.sum(x))
        z = np.zeros(5)
        z[0] = np.max(np.abs(x - x[0])) / (N - 1.0)
        z[1] = np.sum((x > np.mean(x)) * (2.0 * N))
        z[2] = np.sum(np.where(x < np.mean(x), x, 0.0))
        z[3] = np.max(np.sum(A, axis=1)) + sum(mean(A, axis=0, keepdims=True))
        for t in range(N):
            z[4] += np.sum(np.where(x > x[t], x - x[t], 0.0) / (t + 1))
        return spread, y, z

    x = np.array([3.5, 1.0, 2.0, 6.0])
    A = np.outer(x, x)
    above = sum(np.where(x > cell, x - cell, 0.0).sum() / (t + 1) for t, cell in enumerate(x))
    z = [2.5 / 3, 8.0 * (x > x.mean()).sum(), x[x < x.mean()].sum(), A.sum(1).max() + A.mean(0).sum(), above]
    assert_gives(f, x, A, wanted=(np.var(x), x - 6 / 12.5, np.array(z)))
    tc.check_grads(f, (x, A))
    narrow = f(x.astype(np.float32), A.astype(np.float32))
    assert [each.dtype for each in narrow] == [np.float32, np.float32, np.float64]


@pytest.mark.parametrize("value", ["sum(x * x[i])", "sum(x > x[i])", "sum(x * sum(A[i, k]))"])
def test_whole_arrays_and_values_at_points_are_an_error(value: str) -> None:
    f = program(f"y[i] = {value}\nreturn y", "x, A")
    with pytest.raises(tc.ShapeError, match=r"`x` has rank 1 and stands here without an index(.|\n)*as in `x\[i\]`"):
        f(np.ones(3), np.ones((3, 3)))
