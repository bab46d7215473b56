"""Where index variables range: explicit ranges, equal extents, rounds, declared and existing targets, other cells."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, refusal

x = np.arange(1.0, 7.0)
A = np.arange(12.0).reshape(3, 4) + 1


# -- explicit ranges ---------------------------------------------------------------------------------------------


def test_a_condition_between_an_index_variable_and_sizes_is_an_explicit_range_from_0() -> None:
    @op
    def f(x, m):
        M = m.shape[0]
        a[i] = x[i], i < M
        b[i] = x[i], i <= M
        c[i] = x[i], M > i  # noqa: SIM300
        d[i] = x[i + 2], i < M
        return a, b, c, d

    assert_gives(f, x, np.ones(3), wanted=(x[:3], x[:4], x[:3], x[2:5]))


def test_a_chain_gives_both_ends() -> None:
    @op
    def f(x, m):
        M = m.shape[0]
        a[i] = x[i], 1 <= i < M
        b[()] += x[i], 1 <= i < M
        c[i] = x[i - 1], 2 <= i <= M
        return a, b, c

    assert_gives(f, x, np.ones(4), wanted=([0, 2, 3, 4], 9.0, [0, 0, 2, 3, 4]))


def test_accesses_never_narrow_an_explicit_range_and_points_out_of_range_are_skipped() -> None:
    @op
    def f(x):
        a[i] = x[i], i < 8
        b[i] += x[i + k], i < 8, k < 2
        c[i] = 1 + sum(x[i + k] for k in range(3))
        d[i] = max(x[j] for j in range(i, i + 3)), i < 7
        return a, b, c, d

    y = np.append(x, [0, 0])
    b = y + np.append(y[1:], 0)
    c = [1 + x[n : n + 3].sum() for n in range(4)]
    d = [*(x[n : n + 3].max() for n in range(6)), -np.inf]
    assert_gives(f, x, wanted=(y, b, c, d))


def test_other_conditions_only_filter_and_imply_no_lower_bound() -> None:
    @op
    def f(x):
        N = x.shape[0]
        a[i] = x[i], 2 * i < 5
        b[i] = x[i], i + 0 * N != 2
        c[i, j] = x[i] * x[j], i < j
        return a, b, c

    kept = np.where(np.arange(6) < 3, x, 0)
    wanted = (kept, np.where(np.arange(6) != 2, x, 0), np.triu(np.outer(x, x), 1))
    assert_gives(f, x, wanted=wanted)


def test_a_bracket_implies_no_lower_bound() -> None:
    @op
    def f(x):
        N = x.shape[0]
        t[()] += x[k + 2] * (k < 2)
        u[()] += x[k + 2], k < 2
        return t, u

    # k runs from -2 under the bracket, from 0 under the condition.
    assert_gives(f, x, wanted=(1.0 + 2 + 3 + 4, 3.0 + 4))


# -- rule 1 ------------------------------------------------------------------------------------------------------


def test_an_index_used_bare_on_several_axes_must_find_equal_extents() -> None:
    @op
    def reads(A, B):
        C[i, j] += A[i, k] * B[k, j]
        return C

    @op
    def target(A, y):
        y[i] += A[i, k]
        return y

    @op
    def diagonal(A):
        d[i] = A[i, i]
        return d

    message = refusal(tc.ShapeError, reads, A, A)
    assert "the index `k` runs over axis 1 of A, which has the extent 4, and over axis 0 of B" in message
    assert "extent 3" in message
    assert "the index `i` runs over axis 0 of y" in refusal(tc.ShapeError, target, A, x)
    assert "axis 0 of A, which has the extent 3, and over axis 1 of A" in refusal(tc.ShapeError, diagonal, A)


def test_an_explicit_range_skips_instead_of_asking_for_equal_extents() -> None:
    @op
    def f(a, b, c):
        y[i] = a[i] + b[i], i < 2
        short[i] = a[i] + c[i], i < 4
        middle[i] = a[i] * b[i], 1 <= i < 3
        one[i] = a[i] + c[i], i == 1
        total[()] += a[k] * b[k], k <= 2
        whole[()] = sum(a[i] + c[i] for i in range(3))
        inside[i] = b[i] * sum(a[k] + c[k] for k in range(4))
        return y, short, middle, one, total, whole, inside

    a, b, c = np.arange(1.0, 6), np.array([10.0, 20, 30]), np.array([100.0, 200])
    wanted = ([11, 22], [101, 202, 0, 0], [0, 40, 90], [0, 202], 140, 303, b * 303)
    assert_gives(f, a, b, c, wanted=wanted)


def test_ends_of_many_cases_are_compared_at_the_call() -> None:
    @op
    def f(A, B, D):
        T[i + 1, j, k] -= where((i + k) % 2 == 0, A[1, 2 - j, k + 2], B[k % 3]) + D[j, i + 1]
        return T

    message = refusal(tc.ShapeError, f, np.ones((2, 3, 4)), np.ones(2), np.ones((3, 4)))
    assert "`k` on axis 2 of T would begin at" in message
    assert "B_0 = 2" in message


def test_only_an_end_from_above_makes_a_range_explicit() -> None:
    @op
    def below(a, b):
        y[i] = a[i] + b[i], i >= 1
        return y

    @op
    def filtered(a, b):
        y[i] = a[i] + b[i], 2 * i < 3
        return y

    for f in (below, filtered):
        message = refusal(tc.ShapeError, f, np.ones(5), np.ones(3))
        assert "which has the extent 5, and over axis 0 of b, which has the extent 3" in message
        assert "skip what is out of range by a condition, `i < n`" in message
    np.testing.assert_array_equal(below.interpret(np.ones(3), np.ones(3)), [0, 2, 2])


def test_a_bare_index_of_an_existing_target_narrows_where_it_is_shifted_elsewhere() -> None:
    @cd
    def differences(out, a):
        out[i] = a[i + 1] - a[i]

    @cd
    def sums(out, a, w):
        out[i] += a[i + k] * w[k] + a[i]

    a = np.array([1.0, 4, 9, 16, 25])
    for extent, wanted in ((4, [3, 5, 7, 9]), (5, [3, 5, 7, 9, -1]), (2, [3, 5]), (7, [3, 5, 7, 9, -1, -1, -1])):
        np.testing.assert_array_equal(changed(differences, np.full(extent, -1.0), a)[0], wanted)
    np.testing.assert_array_equal(sums.interpret(np.zeros(3), a, np.ones(2))[0], [7, 21, 43])

    @cd
    def scaled(out, a):
        out[i] = a[2 * i] - a[i]

    @cd
    def filled(out, a):
        out[i] = get(a[i + 1], 0.0) - a[i]

    @cd
    def two_reads(out, a, b):
        out[i] = a[i + 1] - a[i] + b[i]

    assert "over axis 0 of out, which has the extent 4" in refusal(tc.ShapeError, scaled, np.ones(4), a)
    assert "over axis 0 of out, which has the extent 4" in refusal(tc.ShapeError, filled, np.ones(4), a)
    assert "over axis 0 of b, which has the extent 4" in refusal(tc.ShapeError, two_reads, np.ones(4), a, np.ones(4))


def test_extents_of_1_do_not_stretch_in_statements() -> None:
    @op
    def f(a, b):
        y[i] = a[i] * b[i]
        return y

    assert "which has the extent 1" in refusal(tc.ShapeError, f, x, np.ones(1))


def test_other_uses_of_an_index_do_not_ask_for_equal_extents() -> None:
    @op
    def f(x, w):
        N = x.shape[0]
        y = output(N)
        y[i] = x[i] + w[i + 0 * N - 1]
        z[i] = x[i] * w[2 * i]
        v[i] = x[i] * w[clamp(i)]
        return y, z, v

    w = np.array([10.0, 20.0, 30.0])
    assert_gives(f, x, w, wanted=([0, 12, 23, 34, 0, 0], [10, 60], x * w[[0, 1, 2, 2, 2, 2]]))


# -- rule 2 ------------------------------------------------------------------------------------------------------


def test_a_fresh_target_takes_the_valid_size() -> None:
    @op
    def conv(I, K):
        O[n, x, c] += I[n, x + k, d] * K[k, d, c]
        return O

    I = np.arange(30.0).reshape(2, 5, 3)
    K = np.arange(12.0).reshape(2, 3, 2)
    wanted = np.einsum("nxkd,kdc->nxc", np.lib.stride_tricks.sliding_window_view(I, 2, 1).swapaxes(2, 3), K)
    assert_gives(conv, I, K, wanted=wanted)


def test_ranges_are_solved_in_rounds() -> None:
    @op
    def f(x, w, v):
        # k and l are alone in an access; i waits for them.
        y[i] += x[i + k + l] * w[k] * v[l]
        z[i] = x[2 * i + 1], i >= 0
        return y, z

    w, v = np.array([1.0, 2.0]), np.array([1.0, 0.0, -1.0])
    wanted = np.convolve(np.convolve(x, w[::-1], "valid"), v[::-1], "valid")
    assert_gives(f, x, w, v, wanted=(wanted, x[1::2]))


def test_the_newly_solved_are_substituted_at_the_end_of_the_round() -> None:
    @op
    def f(x, w):
        # In the first round j takes [0, 2) from w and i takes [0, 6) from x[i]; x[i + j] does not narrow either again.
        y = output()
        y[i] += x[i] * w[j]
        z[i] += x[i + j] * w[j] * w[j]
        return y, z

    w = np.array([1.0, 2.0])
    assert_gives(f, x, w, wanted=(3 * x, x[:-1] + 4 * x[1:]))


def test_a_variable_takes_the_largest_interval_that_fits_all_its_accesses() -> None:
    @op
    def f(x, w):
        y[i] = x[2 * i] + w[3 * i]
        z[i] = x[i] * w[5 - i]
        return y, z

    w = np.arange(10.0, 16.0)
    assert_gives(f, x, w, wanted=(x[:4:2] + w[:6:3], x * w[::-1]))


def test_a_variable_that_is_bounded_on_one_side_only_waits_and_then_asks_for_a_range() -> None:
    @op
    def f(x):
        y[i] = x[i + j]
        return y

    @op
    def g(x):
        y[i] += x[i] * j
        return y

    @op
    def h(x):
        y[i] = x[i] + k, k >= 0
        return y

    message = refusal(tc.TcdslError, f, x)
    assert "range" in message
    refusal(tc.TcdslError, g, x)
    refusal(tc.TcdslError, h, x)


def test_the_extent_is_1_plus_the_largest_index() -> None:
    @op
    def f(x, c):
        full[i + k] += x[i] * c[k]
        even[2 * i] = x[i]
        shifted[i + 3] = x[i]
        part[i] = x[i], 2 <= i < 4
        return full, even, shifted, part

    c = np.array([1.0, -1.0, 2.0])
    even = np.zeros(11)
    even[::2] = x
    wanted = (np.convolve(x, c), even, [0, 0, 0, *x], [0, 0, 3, 4])
    assert_gives(f, x, c, wanted=wanted)


def test_the_extent_does_not_depend_on_an_empty_reduction_range() -> None:
    @op
    def f(A):
        y[i] += A[i, k]
        m[i] >>= A[i, k]
        z[i] += A[i, k], k < 0
        return y, m, z

    assert_gives(f, A[:, :0], wanted=(np.zeros(3), np.full(3, -np.inf), np.zeros(3)))


def test_a_negative_index_is_an_error_that_says_what_to_shift() -> None:
    @op
    def target(x):
        y[i - 2] = x[i]
        return y

    @op
    def read(x):
        y[i] = x[i + 2]
        return y

    message = refusal(tc.ShapeError, target, x)
    assert "would begin at -2, below 0" in message
    assert "shift the index" in message
    assert "shift the index: `i + 2`" in refusal(tc.ShapeError, read, x)


# -- rule 3 ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("declaration", ["output", "annotation", "existing"])
def test_a_target_with_a_shape_covers_every_point_in_range_padded_and_truncated(declaration: str) -> None:
    @op
    def by_output(I, K, size):
        (X,) = size.shape
        O = output(X)
        O[x] += I[x + k - 1] * K[k]
        return O

    @op
    def by_annotation(I, K, size):
        (X,) = size.shape
        O: real[X]
        O[x] += I[x + k - 1] * K[k]
        return O

    @op
    def existing(I, K, size):
        size[x] += I[x + k - 1] * K[k]
        return size

    function = {"output": by_output, "annotation": by_annotation, "existing": existing}[declaration]
    K = np.array([1.0, 2.0, 4.0])
    for extent in (0, 1, 3, 6, 9):
        wanted = np.zeros(extent)
        for place in range(extent):
            for k in range(3):
                if 0 <= place + k - 1 < 6:
                    wanted[place] += x[place + k - 1] * K[k]
        assert_gives(function, x, K, np.zeros(extent), wanted=wanted)


def test_even_cells_only() -> None:
    @op
    def f(I):
        M = I.shape[0]
        O: real[M]
        O[2 * i] += I[2 * i, j]
        return O

    assert_gives(f, A, wanted=[A[0].sum(), 0, A[2].sum()])


def test_a_declared_target_stays_declared_after_its_first_write() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N)
        y[i] += x[i + 1]
        y[i] += x[i - 1]
        y[i + 2] = 10.0 * x[i]
        return y

    wanted = np.append(x[1:], 0) + np.insert(x[:-1], 0, 0)
    wanted[2:] = 10 * x[:-2]
    assert_gives(f, x, wanted=wanted)


def test_a_bare_index_on_a_declared_target_of_another_extent_pads_and_truncates() -> None:
    @op
    def f(x, size):
        (X,) = size.shape
        y = output(X)
        y[i] = x[i]
        return y

    assert_gives(f, x, np.ones(8), wanted=[*x, 0, 0])
    assert_gives(f, x, np.ones(2), wanted=x[:2])


# -- rule 4 ------------------------------------------------------------------------------------------------------


def test_cells_that_no_point_writes() -> None:
    @op
    def f(x, held, anew):
        N = x.shape[0]
        stored, product, least = output(N), output(N), output(N)
        stored[2 * i] = x[i]
        product[2 * i] *= x[i]
        least[2 * i] <<= x[i]
        held[2 * i] = x[i]
        anew[2 * i] = prod(x[i + k] for k in range(1))
        return stored, product, least, held, anew

    x = np.array([5.0, 6.0, 7.0, 8.0])
    held = np.full(4, -1.0)
    wanted = ([5, 0, 6, 0], [5, 1, 6, 1], [5, np.inf, 6, np.inf], [5, -1, 6, -1], [5, -1, 6, -1])
    assert_gives(f, x, held, held, wanted=wanted)


def test_the_first_statement_decides_what_unwritten_cells_hold() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N + 1)
        y[i] *= x[i]
        y[i] += x[i]
        return y

    assert_gives(f, x, wanted=[*(2 * x), 1])


# -- extents of 0 ------------------------------------------------------------------------------------------------


def test_targets_declared_with_the_extent_0_are_written_and_read() -> None:
    @op
    def f(x):
        y = output(0)
        y[i] = x[i]
        O: real[0]
        O[i] += y[i] + sum(x[k])
        z[i] = y[i // 2]
        w[i] = O[i - 1] if i > 0 else O[i]
        t[i, j] = y[(i + j) // 2] * x[j]
        s[()] = sum(y[i]) + prod(O[i])
        return y, O, z, w, t, s, y + 1.0

    none = np.zeros(0)
    assert_gives(f, x, wanted=(none, none, none, none, np.zeros((0, 6)), 1.0, none))


def test_views_of_length_0() -> None:
    @op
    def f(x):
        v, w = x[2:2], x[3:1]
        a[i] = v[i // 2]
        b[()] = max(w[i])
        c[i, j] = v[i] * x[j]
        d[i] += w[i] + sum(x[j])
        return v, a, b, c, d, v @ w, v[::-1] + 1.0, x[:0]

    none = np.zeros(0)
    assert_gives(f, x, wanted=(none, none, -np.inf, np.zeros((0, 6)), none, 0.0, none, none))


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0, 0)])
def test_arguments_with_extents_of_0(shape: tuple[int, int]) -> None:
    @op
    def f(A):
        B[i, j] = A[i // 2, j // 3]
        r[j] += A[i, j]
        m[i] = max(A[i, j])
        p[i, j] = A[i, j] / sum(A[i, k])
        return B, r, m, p, A + 1, A[1:], A.T @ A

    rows, columns = shape
    A = np.zeros(shape)
    wanted = (
        np.zeros((2 * rows, 3 * columns)),
        np.zeros(columns),
        np.full(rows, -np.inf),
        A,
        A,
        A[1:],
        np.zeros((columns, columns)),
    )
    assert_gives(f, A, wanted=wanted)


def test_ranges_that_data_alone_bound_need_sizes_too() -> None:
    row = np.array([0, 2, 2, 5])

    @op
    def counted(row):
        y[i] = sum(1 for k in range(row[i], row[i + 1]))
        return y

    @op
    def declared(row):
        y: int64[row.shape[0] - 1]
        y[i] = max(k * k for k in range(row[i], row[i + 1]) if k % 2 == 0)
        return y

    for f in (counted, declared):
        assert "data cannot say how far it may go: write sizes too, `if 0 <= k < n`" in refusal(tc.ShapeError, f, row)

    @op
    def bounded(row, n):
        y[i] = sum(1 for k in range(row[i], row[i + 1]) if 0 <= k < n)
        z[i] = any(k == 3 for k in range(row[i], row[i + 1]) if 0 <= k < n)
        return y, z

    assert_gives(bounded, row, 5, wanted=(np.array([2, 0, 3]), np.array([False, False, True])))
    assert bounded(row, 10**12)[0].tolist() == [2, 0, 3]
