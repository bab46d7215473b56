"""Indices: affine ones, floor and remainder by constants, sizes, literal negative integers, views."""

from __future__ import annotations

import itertools

import numpy as np

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, refusal

x = np.arange(1.0, 8.0)
A = np.arange(12.0).reshape(3, 4)


def test_a_subexpression_without_index_variables_is_a_size_and_its_division_is_floor() -> None:
    @op
    def f(I, K):
        N = I.shape[0]
        KX = K.shape[0]
        O = output(N)
        O[x] += I[x + k - KX // 2] * K[k]
        P = output(N)
        P[x] = I[x + (KX - 2 * KX) // 2 + 1]
        Q = output(N)
        Q[x] = I[x - KX % 2]
        return O, P, Q

    def wanted(I, K):
        N, W = len(I), len(K)

        def at(n):
            return I[n] if 0 <= n < N else 0.0

        O = [sum(at(n + k - W // 2) * K[k] for k in range(W)) for n in range(N)]
        return O, [at(n + (-W) // 2 + 1) for n in range(N)], [at(n - W % 2) for n in range(N)]

    for extent in (1, 2, 3, 4):
        K = np.arange(1.0, extent + 1)
        assert_gives(f, x, K, wanted=wanted(x, K))


def test_index_variables_take_integer_and_size_coefficients() -> None:
    @op
    def f(A, x):
        N, P = A.shape
        C[i * P + p] = A[i, p]
        D[i, p] = C[P * i + p], p < P, i < N
        E[i] = x[2 * i + 1], i >= 0
        F[3 * i] = x[i]
        G[i, j] += A[i, j] * x[2 * i + j]
        H[i] = x[7 - 1 - i], i < 7
        return C, D, E, F, G, H

    spread = np.zeros(19)
    spread[::3] = x
    products = A * np.append(x, 0)[2 * np.arange(3)[:, None] + np.arange(4)]
    assert_gives(f, A, x, wanted=(A.ravel(), A, x[1::2], spread, products, x[::-1]))


def test_several_quotients_and_mirrored_axes_in_one_statement() -> None:
    @op
    def f(a, w, e):
        (N,) = a.shape
        (M,) = w.shape
        o: real[N, N]
        o[j // 3, N - 1 - i] += a[2 * j // 3]
        p: real[2 * N]
        p[(i + j) // 2] += a[N - 1 - i] * w[2 * j % 3]
        e[(2 * i + 1) % 3, N - j // 2 - 1] += a[i] * w[j]
        q: real[N * M, 4]
        q[i * M + (M - 1 - j) // 2, 3 - i // 2] += a[(3 * i + j) // 4], i < N, j < M
        return o, p, e, q

    a, w = x[:5], np.array([2.0, -1.0, 3.0])
    o, p, e, q = np.zeros((5, 5)), np.zeros(10), np.full((3, 5), 0.5), np.zeros((15, 4))
    for j, i in itertools.product(range(8), range(5)):
        o[j // 3, 4 - i] += a[2 * j // 3]
    for i, j in itertools.product(range(5), range(-4, 20)):
        if 0 <= (i + j) // 2 < 10:
            p[(i + j) // 2] += a[4 - i] * w[2 * j % 3]
    for i, j in itertools.product(range(5), range(3)):
        e[(2 * i + 1) % 3, 5 - j // 2 - 1] += a[i] * w[j]
        if (3 * i + j) // 4 < 5:
            q[i * 3 + (2 - j) // 2, 3 - i // 2] += a[(3 * i + j) // 4]
    assert_gives(f, a, w, np.full((3, 5), 0.5), wanted=(o, p, e, q))


def test_floor_and_remainder_by_positive_constants() -> None:
    @op
    def f(x):
        N = x.shape[0]
        up[i] = x[i // 2]
        periodic = output(N)
        periodic[i] = x[i % 3]
        shifted = output(N)
        shifted[i] = x[(i - 3) // 2]
        counted = output(N)
        counted[i] = x[i] * (i // 2) + i % 3
        positive = output(N)
        positive[i] = x[(i - 2) % 3]
        blocks = output(4, 2)
        blocks[i // 2, i % 2] = x[i]
        return up, periodic, shifted, counted, positive, blocks

    n = np.arange(7)
    floor = (n - 3) // 2
    shifted = np.where(floor >= 0, x[floor], 0)
    wanted = (
        np.repeat(x, 2),
        x[n % 3],
        shifted,
        x * (n // 2) + n % 3,
        x[(n - 2) % 3],
        np.append(x, 0).reshape(4, 2),
    )
    assert_gives(f, x, wanted=wanted)


def test_anything_else_is_data_and_checked() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N)
        y[i] = x[i * i], i < 3
        z[i] = x[min(i * i, 6)], i < N
        w[i] = x[(i + 2) * i], i < 3
        return y, z, w

    n = np.arange(7)
    message = refusal(tc.DataIndexError, f, x)
    assert "index 8 is out of range for axis 0 of `x`, which has extent 7" in message
    longer = np.arange(1.0, 10.0)
    n = np.arange(9)
    y = np.zeros(9)
    y[:3] = longer[[0, 1, 4]]
    assert_gives(f, longer, wanted=(y, longer[np.minimum(n * n, 6)], longer[[0, 3, 8]]))


def test_a_literal_negative_integer_counts_from_the_end() -> None:
    @op
    def f(A, x):
        last[i] = A[i, -1]
        t[()] = x[-1] - x[-2]
        x[-1] = 100.0
        x[-2] += 50.0
        return last, t, x

    changed_x = np.append(x[:5], [56.0, 100.0])
    assert_gives(f, A, x, wanted=(A[:, -1], 1.0, changed_x))

    @op
    def fresh(x):
        y[-1] = x[0]
        return y

    assert "counts from the end of an axis whose extent is not known" in refusal(tc.ShapeError, fresh, x)

    @op
    def declared(x):
        y = output(3)
        y[-1] = x[0]
        return y

    assert_gives(declared, x, wanted=[0, 0, 1])


def test_a_negative_index_made_of_index_variables_does_not_count_from_the_end() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N)
        y[i] = x[i - 1]
        return y

    assert_gives(f, x, wanted=[0, *x[:-1]])


def test_slices_new_axes_and_dots_outside_statements_give_views() -> None:
    @op
    def f(A, x):
        N = x.shape[0]
        rows = A[1:]
        y[i, j] = rows[i, j] * 2
        return y, A[:, ::2], A[-1], A[..., 0], x[:, None] * A[0, :], x[::-1], A[:2, 1:-1].T, x[: N // 2]

    wanted = (
        2 * A[1:],
        A[:, ::2],
        A[-1],
        A[..., 0],
        x[:, None] * A[0, :],
        x[::-1],
        A[:2, 1:-1].T,
        x[:3],
    )
    assert_gives(f, A, x, wanted=wanted)


def test_bounds_of_slices_beyond_all_extents() -> None:
    @op
    def f(x):
        return x[2**70 :], x[: 2**70], x[-(2**70) :], x[:: 2**70], x[:: -(2**70)], x[: -(2**70)]

    wanted = (x[:0], x, x, x[:1], x[-1:], x[:0])
    assert_gives(f, x, wanted=wanted)


def test_the_negative_of_a_size_counts_from_the_end() -> None:
    @op
    def f(x, k):
        K = k.shape[0]
        return x[-K:], x[:-K], x[::-1][-2 * K :], x[-K - 1], x[1 : K - 1]

    for K in (0, 1, 2, 5):
        assert_gives(f, x, np.ones(K), wanted=(x[-K:], x[:-K], x[::-1][-2 * K :], x[-K - 1], x[1 : max(K - 1, 0)]))


def test_the_step_of_a_slice_is_a_number() -> None:
    @op
    def by_size(x, k):
        return x[:: k.shape[0]]

    @op
    def fractional(x):
        return x[::1.5]

    message = refusal(tc.DslSyntaxError, by_size, x, x)
    assert "the step of a slice has to be a number while staging" in message
    assert "write a statement: `y[i] = x[i * step]`" in message
    assert "a float as an index" in refusal(tc.DslSyntaxError, fractional, x)


def test_an_index_array_beside_numbers_and_slices_places_its_axes_as_numpy_does() -> None:
    @op
    def f(T, n):
        return T[0, :, n], T[:, 0, n], T[0, ..., n], T[n, :, 1], T[0, n], T[:, n, 1], T[1, None, n], T[..., n]

    T, n = np.arange(24.0).reshape(2, 3, 4), np.array([[1, 0, 1], [1, 1, 0]])
    wanted = (T[0, :, n], T[:, 0, n], T[0, ..., n], T[n, :, 1], T[0, n], T[:, n, 1], T[1, None, n], T[..., n])
    assert_gives(f, T, n, wanted=wanted)


def test_slices_in_statements_say_what_to_write() -> None:
    @op
    def f(A):
        y[i] += A[i, 1:]
        return y

    message = refusal(tc.DslSyntaxError, f, A)
    assert "`1:` as an index in a tensor statement" in message
    assert "condition" in message


def test_code_stores_into_parts_through_conditions_and_fixed_indices() -> None:
    @cd
    def f(A):
        A[0, j] = 7.0
        A[i, -1] += 100.0
        A[i, j] *= 2.0, i == 1, j < 2

    B = A.copy()
    B[0] = 7
    B[:, -1] += 100
    B[1, :2] *= 2
    np.testing.assert_array_equal(changed(f, A)[0], B)


def test_the_number_of_indices_is_the_rank() -> None:
    @op
    def f(A):
        y[i] = A[i]
        return y

    message = refusal(tc.ShapeError, f, A)
    assert "`A` has rank 2 and is given 1 index" in message
    assert "A has the shape (A_0, A_1)" in message


def test_an_index_is_an_integer() -> None:
    @op
    def f(x):
        y[i] = x[i / 2]
        return y

    message = refusal(tc.DtypeError, f, x)
    assert "an index of type float64" in message
    assert "//" in message
