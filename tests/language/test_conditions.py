"""Conditions after the value, Iverson's brackets, ``if`` in generators, branches that are not taken."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tests.language.outcomes import assert_gives

A = np.arange(12.0).reshape(3, 4) + 1
B = np.arange(8.0).reshape(4, 2) - 3
x = np.array([1.0, 0.0, 4.0, -1.0, 9.0])


def test_conditions_follow_the_value() -> None:
    @op
    def f(A, B, m, n, k):
        M, N, K = m.shape[0], n.shape[0], k.shape[0]
        C[i, j] += A[i, l] * B[l, j], i < M, j < N, l < K
        return C

    assert_gives(f, A, B, np.ones(2), np.ones(1), np.ones(3), wanted=A[:2, :3] @ B[:3, :1])


def test_a_cumulative_sum() -> None:
    @op
    def f(I):
        N = I.shape[0]
        O[i] += I[k], k <= i, i < N
        return O

    assert_gives(f, x, wanted=x.cumsum())


def test_a_comparison_as_a_factor_is_iversons_bracket() -> None:
    @op
    def f(I):
        N = I.shape[0]
        O = output(N)
        O[i] += I[k] * (k <= i)
        P = output(N)
        P[i] -= (k > i) * I[k] * 2.0
        return O, P

    assert_gives(f, x, wanted=(x.cumsum(), -2 * (x.sum() - x.cumsum())))


def test_a_bool_tensor_as_a_factor_is_a_bracket_too() -> None:
    @op
    def f(x, b):
        y[i] = b[i] * log(x[i])
        s[()] += log(x[i]) * b[i]
        positive = x[i] > 0
        z[i] = positive * log(x[i])
        return y, s, z

    logs = np.array([0.0, 0.0, np.log(4), 0.0, np.log(9)])
    with np.errstate(all="raise"):
        assert_gives(f, x, x > 0, wanted=(logs, logs.sum(), logs))


def test_behind_a_false_bracket_nothing_is_evaluated() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N)
        y[i] = (x[i] > 0) * log(x[i])
        z = output(N + 2)
        z[i] = (i >= 1) * (i <= N) * x[i - 1] + 5.0
        w = output(N)
        w[i] = (x[i] != 0) * (1.0 / x[i])
        return y, z, w

    logs = np.array([0.0, 0.0, np.log(4), 0.0, np.log(9)])
    recip = np.array([1.0, 0.0, 0.25, -1.0, 1 / 9])
    assert_gives(f, x, wanted=(logs, [5, *(x + 5), 5], recip))


def masked_quotient(c, a, b):
    return (c * a) / b


def test_brackets_in_a_numerator_guard_the_quotient_and_its_derivative() -> None:
    @op
    def f(x):
        kept = (x[i] > 0) * 2.0
        a[i] = (x[i] > 0) * 2.0 / x[i]
        b[i] = -((x[i] > 0) * 1.0) / x[i] * 3.0
        c[i] = kept / x[i]
        d[i] = masked_quotient(x[i] > 0, 2.0, x[i])
        e[i] = 3.0 * kept // x[i] + kept % x[i]
        g = -masked_quotient(x > 0, 2.0, x)
        return a, b, c, d, e, g

    y = np.array([0.0, 2.0, np.nan, -4.0, 8.0])
    half, whole = [0, 1, 0, 0, 0.25], [0, -1.5, 0, 0, -0.375]
    assert_gives(f, y, wanted=(half, whole, half, half, [0, 3, 0, 0, 2], -np.array(half)))

    @op
    def attraction(x):
        s[()] += (i != k) * 1.0 / (x[i] - x[k]) ** 2
        return s

    z = np.array([0.0, 1.0, 3.0])
    assert_gives(attraction, z, wanted=2 * (1 + 1 / 4 + 1 / 9))
    np.testing.assert_allclose(tc.grad(attraction)(z), [4 + 4 / 27, -4 + 4 / 8, -4 / 8 - 4 / 27])

    @op
    def total(x):
        t[()] += (x[i] != 0) * x[i] / x[i] / x[i] + masked_quotient(x[i] > 0, x[i], x[i])
        return t

    w = np.array([0.0, 2.0, -4.0])
    np.testing.assert_array_equal(tc.grad(total)(w), [0, -1 / 4, -1 / 16])


def test_quotients_of_integers_behind_brackets_keep_their_types() -> None:
    @op
    def f(b):
        q[i] = (b[i] != 0) * 7 // b[i]
        r[i] = (b[i] != 0) * 7 % b[i]
        h[i] = (b[i] != 0) // b[i]
        s[i] = (b[i] != 0) / b[i]
        return q, r, h, s

    given = np.array([0, 3, -4], np.int8)
    found = f(given)
    assert [str(each.dtype) for each in found] == ["int8", "int8", "int8", "float64"]
    assert_gives(f, given, wanted=([0, 2, -2], [0, 1, -1], [0, 0, -1], [0, 1 / 3, -1 / 4]))


def test_a_bracket_equals_a_condition_for_sums_only() -> None:
    @op
    def f(x):
        a[()] += x[i] * (i > 1)
        b[()] += x[i], i > 1
        c[()] -= x[i] * (i > 1)
        d[()] *= x[i] * (i != 1)
        e[()] *= x[i], i != 1
        g[()] <<= x[i] * (i > 3)
        h[()] <<= x[i], i > 3
        p[()] >>= -x[i] * (x[i] > 3)
        q[()] >>= -x[i], x[i] > 3
        return a, b, c, d, e, g, h, p, q

    assert_gives(f, x, wanted=(12.0, 12.0, -12.0, 0.0, -36.0, 0.0, 9.0, 0.0, -4.0))


def test_an_if_in_a_generator_is_a_condition() -> None:
    @op
    def f(x):
        a[()] = sum(x[i] for i in range(5) if x[i] > 0)
        b[()] = 0 + min(x[i] for i in range(5) if i > 1 if i != 3)
        c[()] = prod(x[i] for i in range(5) if x[i] != 0 and i < 4)
        return a, b, c

    assert_gives(f, x, wanted=(14.0, 4.0, -4.0))


def test_conjunctions_of_affine_conditions_become_bounds_of_loops() -> None:
    @op
    def f(A):
        L[i, j] = A[i, j], j <= i, j + 1 > i - 1
        s[i] += A[i, j], i <= j and j <= i + 1
        return L, s

    banded = np.array([[A[i, j] if i - 2 < j <= i else 0 for j in range(4)] for i in range(3)])
    sums = np.array([sum(A[i, j] for j in range(4) if i <= j <= i + 1) for i in range(3)])
    assert_gives(f, A, wanted=(banded, sums))


def test_the_largest_piece_of_a_nest_runs_without_tests() -> None:
    @op
    def sums(x):
        s[i] += x[k] * exp(0.1 * (i + 2 * k)), k <= i, i < 5
        return s

    @op
    def previous(x):
        N = x.shape[0]
        y = output(N)
        y[i] = x[i - 1] if i > 0 else 7.0
        return y

    assert_gives(sums, x, wanted=np.tril(np.exp(0.1 * np.add.outer(np.arange(5), 2 * np.arange(5)))) @ x)
    assert not any(line.strip().startswith("if ") for line in sums.explain("loops", x).splitlines())
    # One loop reads the previous cell as it is; the branch is decided by its bounds.
    assert "y[i] = x[i - 1]" in [line.strip() for line in previous.explain("loops", x).splitlines()]


def test_disjunctions_and_negations_are_conditions_too() -> None:
    @op
    def f(A):
        a[i, j] = A[i, j], i == j or j == 3
        b[i, j] = A[i, j], not (i < j)
        c[i, j] = A[i, j], (i + j) % 2 == 0
        return a, b, c

    n, m = np.indices(A.shape)
    wanted = tuple(np.where(keep, A, 0) for keep in ((n == m) | (m == 3), n >= m, (n + m) % 2 == 0))
    assert_gives(f, A, wanted=wanted)


def test_conditions_on_data_are_tests() -> None:
    @op
    def f(A, b):
        y[i] += A[i, j], A[i, j] > 3, b[j]
        z[i] >>= A[i, j], A[i, j] < 2 * j + 5
        w = output(3)
        w[i] = A[i, 0], A[i, 0] > 4
        return y, z, w

    b = np.array([True, False, True, True])
    m = np.arange(4)
    wanted = (
        np.where((A > 3) & b, A, 0).sum(1),
        np.where(2 * m + 5 > A, A, -np.inf).max(1),
        np.where(A[:, 0] > 4, A[:, 0], 0),
    )
    assert_gives(f, A, b, wanted=wanted)


def test_reads_in_a_branch_that_is_not_taken_need_not_be_in_range_and_the_point_stays() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N)
        y[i] = x[i - 1] if i > 0 else 7.0
        z = output(N + 2)
        z[i] = x[i] if i < N else -x[i - N]
        w = output(N)
        w[i] = where(i + 1 < N, x[i + 1], 0.5)
        v = output(N)
        v[i] = 1.0 if i < 2 or x[i - 2] > 0 else 2.0
        return y, z, w, v

    wanted = ([7, *x[:-1]], [*x, *-x[:2]], [*x[1:], 0.5], [1, 1, 1, 2, 1])
    assert_gives(f, x, wanted=wanted)


def test_reads_in_both_branches_bound_a_variable_of_an_existing_target() -> None:
    @op
    def f(T, A, B, D):
        T[i] = sum(A[j - 1] if D[i] > 0 else B[j])
        return T

    A, B, D = np.array([1.0, 2.0, 4.0]), np.array([10.0, 20.0]), np.array([1.0, -1.0, 0.0])
    assert_gives(f, np.zeros(3), A, B, D, wanted=[7.0, 30.0, 30.0])
    assert_gives(f, np.zeros(3), A[:0], B, D, wanted=[0.0, 30.0, 30.0])
    np.testing.assert_allclose(tc.grad(lambda A: f(np.zeros(3), A, B, D)[0])(A), [1, 1, 1])


def test_a_fresh_target_with_branches_covers_all_points() -> None:
    @op
    def f(x):
        y[i] = x[i] + (x[i - 1] if i > 0 else 7.0)
        return y

    assert_gives(f, x, wanted=x + np.insert(x[:-1], 0, 7))


def test_gradients_behind_false_brackets_and_in_branches_not_taken_are_0_and_never_nan() -> None:
    @op
    def f(x):
        s[()] += (x[i] > 0) * sqrt(x[i])
        return s

    @op
    def g(x):
        N = x.shape[0]
        y = output(N)
        y[i] = log(x[i]) if x[i] > 0 else 0.0
        z = output(N)
        z[i] = x[i - 1] * 3 if i > 0 else 7.0
        s[()] += y[i] + z[i]
        return s

    x = np.array([4.0, 0.0, -1.0, 1.0])
    np.testing.assert_allclose(tc.grad(f)(x), [0.25, 0, 0, 0.5])
    np.testing.assert_allclose(tc.grad(g)(x), [3.25, 3, 3, 1])


def test_a_condition_is_a_truth_value() -> None:
    @op
    def f(x):
        y[i] = x[i], x[i]
        return y

    with pytest.raises(tc.DtypeError, match="a condition of type float64") as caught:
        f(x)
    assert "compare it, as in `x[i] != 0`" in str(caught.value)


def test_conditions_on_configuration_are_decided_while_staging() -> None:
    @op
    def f(x, *, causal: bool):
        y[i] = x[i] if causal else x[i] / 0
        z[i] = x[i], causal or i < 2
        return y, z

    assert_gives(f, x, causal=True, wanted=(x, x))
