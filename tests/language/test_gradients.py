"""Gradients of the forms of statements, against differences and by hand."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op

A = np.array([[0.5, 1.2, 0.9], [1.5, 0.7, 1.1]])
HELD = np.array([1.3, 0.8])
x = np.array([0.6, 1.4, 0.8, 1.1])


def test_every_accumulator_onto_fresh_targets() -> None:
    @op
    def f(A):
        a[i] += A[i, k]
        b[i] -= A[i, k] * A[i, k]
        c[i] *= A[i, k]
        d[i] /= A[i, k]
        e[i] **= A[i, k] * 2
        g[i] >>= A[i, k]
        h[i] <<= A[i, k]
        return a, b, c, d, e, g, h

    tc.check_grads(f, (A,))


def test_every_accumulator_onto_existing_targets() -> None:
    @op
    def f(A, a, b, c, d, e, g, h):
        a[i] += A[i, k]
        b[i] -= A[i, k] * A[i, k]
        c[i] *= A[i, k]
        d[i] /= A[i, k]
        e[i] **= A[i, k]
        g[i] >>= A[i, k]
        h[i] <<= A[i, k]
        return a, b, c, d, e, g, h

    tc.check_grads(f, (A, *(HELD + 0.05 * number for number in range(7))))


def test_the_gates() -> None:
    @op
    def f(A, held):
        assign(a[i], "=:?/", A[i, k])
        assign(b[i], "=:?^", A[i, k])
        c[i] = held[i] * 0.5
        assign(c[i], "=?^", A[i, k] * 0.5)
        return a, b, c

    tc.check_grads(f, (A - 0.8, HELD))
    tc.check_grads(f, (np.array([[0.5, 0.7], [0.2, 0.9]]), HELD))


def test_reset_forms_forget_what_the_target_held() -> None:
    @op
    def f(A, held):
        held[i] = sum(A[i, k] * A[i, k])
        t[()] += held[i]
        held[i] = prod(A[i, k])
        t[()] += held[i] * held[i]
        return t

    tc.check_grads(f, (A, HELD))
    np.testing.assert_array_equal(tc.grad(f, argnums=1)(A, HELD), 0)


def test_plain_stores_into_existing_targets_keep_the_gradient_of_the_other_cells() -> None:
    @op
    def f(x, held):
        held[2 * i] = x[i] * x[i]
        t[()] += held[i] * held[i] * (i + 1)
        return t

    held = np.array([2.0, 3.0, 4.0, 5.0])
    dx, dheld = tc.grad(f, argnums=(0, 1))(x, held)
    np.testing.assert_allclose(dx, [4 * x[0] ** 3, 12 * x[1] ** 3, 0, 0])
    np.testing.assert_allclose(dheld, [0, 12, 0, 40])


def test_snapshots_and_versions() -> None:
    @op
    def f(x):
        y[i] = x[i] * x[i]
        y[i] += y[i + 1]
        y[i] = y[3 - i] * x[i]
        y[i] *= y[k] * x[k]
        return y

    tc.check_grads(f, (x,))


def test_local_definitions_and_reductions_side_by_side() -> None:
    @op
    def f(A, w):
        z = exp(A[i, k] * w[k])
        y[i] = sum(z) / sum(z * z) + max(z) * mean(z)
        v[i, j] = A[i, j] / sum(A[i, l] for l in range(A.shape[1]) if l <= j)
        return y, v

    tc.check_grads(f, (A, np.array([0.3, -0.2, 0.7])))


def test_conditions_and_brackets() -> None:
    @op
    def f(x, A):
        N = x.shape[0]
        s = output(N)
        s[i] += x[k] * x[i] * (k <= i)
        p = output(N)
        p[i] *= x[k], k <= i
        b = output(N)
        b[i] *= x[k] * (k != i)
        m = output(N)
        m[i] >>= x[k] * x[k], k < i, x[k] > 0.7
        t[()] += sqrt(x[i] - 0.7) * (x[i] > 0.7)
        u[i, j] = A[i, j] * A[i, j], j <= i or A[i, j] > 1
        return s, p, b, t, u

    tc.check_grads(f, (x, A))


def test_ties_of_max_share_the_gradient() -> None:
    @op
    def f(x):
        m[()] >>= x[i]
        return m

    @op
    def g(x):
        y[()] = max(x[i]) + min(x[i])
        return y

    np.testing.assert_allclose(tc.grad(f)(np.array([1.0, 3.0, 3.0, 2.0])), [0, 0.5, 0.5, 0])
    np.testing.assert_allclose(tc.grad(g)(np.array([1.0, 3.0, 3.0, 1.0])), [0.5] * 4)


def test_a_product_with_zeros_among_its_factors() -> None:
    @op
    def f(x):
        p[()] *= x[i]
        return p

    @op
    def g(x):
        p[()] = 1 + prod(x[i] for i in range(4))
        return p

    for function in (f, g):
        np.testing.assert_allclose(tc.grad(function)(np.array([2.0, 0.0, 3.0, 4.0])), [0, 24, 0, 0])
        np.testing.assert_allclose(tc.grad(function)(np.array([2.0, 0.0, 0.0, 4.0])), [0, 0, 0, 0])


def test_affine_indices_floors_and_remainders() -> None:
    @op
    def f(A, x):
        P = A.shape[1]
        C[i * P + p] = A[i, p] * x[i + p]
        up[i] = x[i // 2] * x[i // 2]
        M = x.shape[0]
        periodic = output(M)
        periodic[i] = x[i % 3] * x[3 - i]
        even = output(M)
        even[2 * i] += A[i, j] * x[2 * i]
        return C, up, periodic, even

    tc.check_grads(f, (A, x))


@pytest.mark.parametrize("extent", [0, 1])
def test_gradients_of_small_extents(extent: int) -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N)
        y[i] = x[clamp(i - 1)] * x[wrap(i + 1)] + get(x[i - 1], 2.0)
        t[()] += y[i] * y[i]
        m[()] *= x[i]
        return t, m

    tc.check_grads(f, (x[:extent],))


def test_an_operand_that_is_only_summed_over_a_range_keeps_that_range() -> None:
    @op
    def f(a, b, dy):
        O[i] += a[i] + b[k]
        s[()] += O[i] * dy[i]
        return s

    dy = np.array([1.0, 10.0])
    da, db = tc.grad(f, argnums=(0, 1))(np.ones(2), np.ones(3), dy)
    np.testing.assert_allclose(da, 3 * dy)
    np.testing.assert_allclose(db, [11, 11, 11])


def test_integers_and_bools_have_no_gradient() -> None:
    @op
    def f(x, n, b):
        t[()] += x[i] * n[i] * b[i]
        return t

    _, pullback = tc.vjp(f, x, np.arange(4), np.array([True, False, True, True]))
    dx, dn, db = pullback(2.0)
    np.testing.assert_allclose(dx, [0, 0, 4, 6])
    assert dn is None
    assert db is None


def test_a_declared_target_of_another_extent() -> None:
    @op
    def f(x):
        N = x.shape[0]
        y = output(N + 1)
        y[i] *= x[i]
        y[i] += x[i] * x[i]
        y[i + 2] *= x[i]
        return y

    tc.check_grads(f, (x,))
