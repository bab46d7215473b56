"""Indices that are data: gather, scatter, nested ones, checks, ``oob``, ``get``, determinism."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tests.language.outcomes import assert_gives, changed, refusal

table = np.arange(12.0).reshape(4, 3)
ids = np.array([3, 0, 3, 1, 2])
w = np.array([1.0, 2.0, 4.0, 8.0, 16.0])


@op
def gather(table, ids):
    E[i, d] = table[ids[i], d]
    return E


@op
def histogram(bins, w, size):
    H = output(size.shape[0])
    H[bins[i]] += w[i]
    return H


def test_gather() -> None:
    assert_gives(gather, table, ids, wanted=table[ids])
    assert_gives(gather, table, ids[:0], wanted=table[:0])


def test_scatter() -> None:
    assert_gives(histogram, ids, w, np.ones(5), wanted=np.bincount(ids, w, 5))

    @op
    def others(bins, w, held):
        N = held.shape[0]
        largest, product = output(N), output(N)
        largest[bins[i]] >>= w[i]
        product[bins[i]] *= w[i]
        held[bins[i]] -= w[i]
        return largest, product, held

    largest, product = np.full(4, -np.inf), np.ones(4)
    np.maximum.at(largest, ids, w)
    np.multiply.at(product, ids, w)
    assert_gives(others, ids, w, np.ones(4), wanted=(largest, product, 1 - np.bincount(ids, w)))


def test_nested_indirection() -> None:
    @op
    def f(x, p, q):
        y[i] = x[p[q[i]]]
        z = output(4)
        z[p[q[i]]] += x[i]
        m[i, j] = x[p[i] + q[j] * 0]
        v[i] = x[p[i + 1] - 1], i >= 0
        return y, z, m, v

    x, p, q = w[:4], np.array([2, 3, 1, 1]), np.array([3, 0, 0, 2])
    z = np.zeros(4)
    np.add.at(z, p[q], x)
    assert_gives(f, x, p, q, wanted=(x[p[q]], z, np.tile(x[p][:, None], 4), x[p[1:] - 1]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint64"])
def test_every_integer_type_indexes(dtype: str) -> None:
    assert_gives(gather, table, ids.astype(dtype), wanted=table[ids])


@pytest.mark.parametrize("value", [4, -1, 2**40])
def test_an_index_out_of_range_names_tensor_axis_position_and_value(value: int) -> None:
    wrong = ids.copy()
    wrong[3] = value
    message = refusal(IndexError, gather, table, wrong)
    assert f"index {value} is out of range for axis 0 of `table`, which has extent 4" in message
    assert "i = 3" in message
    message = refusal(tc.DataIndexError, histogram, wrong, w, np.ones(4))
    assert f"index {value} is out of range for axis 0 of `H`, which has extent 4" in message
    assert "i = 3" in message


def test_a_failed_call_changes_no_argument() -> None:
    @cd
    def f(held, bins, w):
        held[i] += 1.0
        held[bins[i]] += w[i]

    held = np.ones(4)
    with pytest.raises(tc.DataIndexError, match=r"index 7 is out of range for axis 0 of `held`"):
        f(held, np.array([0, 7]), w[:2])
    np.testing.assert_array_equal(held, 1)
    np.testing.assert_array_equal(changed(f, held, np.array([0, 3]), w[:2])[0], [3, 2, 2, 4])


def test_skip_leaves_points_out_of_range_out() -> None:
    @op(oob="skip")
    def f(x, ids, size):
        y = output(size.shape[0])
        y[i] = 1 + x[ids[i]]
        z = output(3)
        z[ids[i]] += x[i]
        s[()] += sum(x[ids[i]])
        m[()] = mean(x[ids[i]])
        return y, z, s, m

    x, places = w[:4], np.array([2, -1, 3, 9])
    z = np.array([0, 0, 1.0])
    assert_gives(f, x, places, np.ones(4), wanted=([5, 0, 9, 0], z, 12.0, 6.0))


def test_clamp_moves_to_the_nearest_end() -> None:
    @op(oob="clamp")
    def f(x, ids):
        y[i] = x[ids[i]]
        z = output(3)
        z[ids[i]] += x[i]
        filled[i] = get(x[ids[i]], 7.0) + get(x[wrap(ids[i])], 7.0)
        return y, z, filled

    x, places = w[:4], np.array([2, -1, 3, 9])
    assert_gives(f, x, places, wanted=([4, 1, 8, 8], [2, 0, 13], [8, 15, 16, 9]))


@pytest.mark.parametrize("oob", ["check", "clamp"])
def test_an_axis_without_cells_has_none_to_take(oob: str) -> None:
    @op(oob=oob)
    def f(x, ids):
        y[i] = x[clamp(ids[i])], x.shape[0] > 0
        z[i] = get(x[ids[i]], 7.0)
        return y, z

    assert_gives(f, w[:0], np.array([0, 2]), wanted=([0, 0], [7, 7]))

    @op(oob=oob)
    def nearest(x, ids):
        y[i] = x[clamp(ids[i])]
        return y

    with pytest.raises(tc.DataIndexError, match="an axis without cells has none to take: write a condition on its"):
        nearest(w[:0], np.array([0, 2]))


def test_other_values_of_oob_are_refused() -> None:
    with pytest.raises(tc.ConfigurationError, match=r"oob='ignore'.*'check', 'skip', 'clamp'"):

        @op(oob="ignore")
        def f(x):
            return x


def test_get_fills() -> None:
    @op
    def f(table, ids):
        y = output(ids.shape[0], table.shape[1])
        y[i, d] = get(table[ids[i], d], -1.0)
        z[i] = get(table[ids[i], 0], i * 10)
        return y, z

    places = np.array([3, -1, 4])
    assert_gives(f, table, places, wanted=([table[3], [-1] * 3, [-1] * 3], [9, 10, 20]))


def test_brackets_and_branches_guard_data_indices() -> None:
    @op
    def f(x, ids):
        y[i] = x[ids[i]] if ids[i] >= 0 else 0.5
        z[i] = (ids[i] >= 0) * x[ids[i]]
        s[()] += x[ids[i]], ids[i] >= 0
        return y, z, s

    assert_gives(f, w, np.array([2, -1, 0]), wanted=([4, 0.5, 1], [4, 0, 1], 5.0))


def test_scatters_are_the_same_for_any_number_of_threads() -> None:
    random = np.random.default_rng(3)
    bins = random.integers(0, 50, 20_000)
    values = (random.standard_normal(20_000) * 10.0 ** random.integers(-6, 6, 20_000)).astype(np.float32)
    results = []
    for threads in (1, 2, 3):
        with tc.config(threads=threads):
            results.append(histogram(bins, values, np.ones(50)))
    assert (results[0] == results[1]).all()
    assert (results[0] == results[2]).all()
    exact = np.bincount(bins, values.astype(float), 50)
    np.testing.assert_allclose(results[0], exact, rtol=1e-3, atol=1e-3 * np.abs(exact).max())


def test_gradients_of_gathers_and_scatters() -> None:
    E = np.arange(15.0).reshape(5, 3)
    _, pullback = tc.vjp(gather, table, ids)
    dtable, dids = pullback(E)
    wanted = np.zeros_like(table)
    np.add.at(wanted, ids, E)
    np.testing.assert_array_equal(dtable, wanted)
    assert dids is None
    _, pullback = tc.vjp(histogram, ids, w, np.ones(4))
    np.testing.assert_array_equal(pullback(np.array([1.0, 10.0, 100.0, 1000.0]))[1], [1000, 1, 1000, 10, 100])


def test_gradients_of_nested_indices_skips_clamps_and_fills() -> None:
    @op
    def nested(x, v, p, q):
        y[i] = x[p[q[i]]] ** 2 + get(x[p[i]], v[i])
        z = output(3)
        z[p[q[i]]] += sin(x[i]) * v[i]
        t[()] += y[i]
        t[()] += z[i] * z[i]
        return t

    @op(oob="skip")
    def skipping(x, p):
        y = output(3)
        y[p[i]] += x[i] * x[p[i]]
        return y

    @op(oob="clamp")
    def clamping(x, p):
        y = output(3)
        y[p[i]] += x[i] * x[p[i]]
        return y

    x = np.array([0.3, 0.7, -0.4])
    tc.check_grads(nested, (x, x + 1, np.array([2, 5, 1]), np.array([0, 0, 2])))
    for function in (skipping, clamping):
        tc.check_grads(function, (x, np.array([-1, 2, 7])), order=2)


def test_the_gradient_of_a_permuted_store() -> None:
    @op
    def f(x, held, p):
        assign(held[p[i]], "=:", x[i] * x[i], unique=True)
        return held

    arguments = (w[:3], np.ones(5), np.array([4, 0, 2]))
    assert_gives(f, *arguments, wanted=[4, 1, 16, 1, 1])
    _, pullback = tc.vjp(f, *arguments)
    dx, dheld, _ = pullback(np.arange(5.0))
    np.testing.assert_array_equal(dx, 2 * w[:3] * [4, 0, 2])
    np.testing.assert_array_equal(dheld, [0, 1, 0, 3, 0])


def test_a_check_in_a_branch_does_not_count_outside_of_it() -> None:
    @op
    def f(t, ids, c):
        p = ids[i] * ids[i] - 1
        y[i] = (t[p, 0] if c[i] else 0.0) + t[p, 1]
        return y

    t = np.arange(6.0).reshape(3, 2)
    ids, c = np.array([1, -1, 1]), np.array([True, False, True])
    assert_gives(f, t, ids, c, wanted=[1.0, 1.0, 1.0])
    assert "index 3 is out of range for axis 0 of `t`" in refusal(tc.DataIndexError, f, t, np.array([1, 2, 1]), c)


# -- values that nothing uses ------------------------------------------------------------------------------------------


@op
def left_alone(x, p):
    unused = x[p[0]]
    return x[0]


@op
def written_over(x, p):
    s = 0.0
    for t in range(p.shape[0]):
        s = s + x[p[t]]
        s = x[0]
    return s


@op
def left_alone_in_rounds(x, p):
    s, u = 0.0, 0.0
    for t in range(p.shape[0]):
        if p[t] != 1:
            u = u + x[p[t]]
        y[i] = x[i]
        y[0] = x[p[t] // 2]
        s = s + x[0]
    return s


@cd
def beside_memory(x, p):
    for t in range(p.shape[0]):
        unused = 2 * x[p[t]]
        x[0] += 1.0


@pytest.mark.parametrize("f", [left_alone, written_over, left_alone_in_rounds, beside_memory])
def test_indices_of_values_that_nothing_uses_are_checked(f: Any) -> None:
    x = np.arange(1.0, 5.0)
    for run in (f, f.interpret):
        run(x.copy(), np.array([3, 1, 0]))
        for wrong in (4, -1, -2):
            given = x.copy()
            with pytest.raises(tc.DataIndexError, match="out of range for axis 0 of `x`"):
                run(given, np.array([wrong, 1, 0]))
            np.testing.assert_array_equal(given, x)


def test_derivatives_check_indices_of_values_that_nothing_uses() -> None:
    x = np.arange(1.0, 5.0)
    for f in (left_alone, written_over, left_alone_in_rounds):
        for derived in (tc.grad(f), lambda x, p, f=f: tc.jvp(lambda x: f(x, p), (x,), (x,))):
            derived(x, np.array([3, 1, 0]))
            with pytest.raises(tc.DataIndexError, match="out of range for axis 0 of `x`"):
                derived(x, np.array([4, 1, 0]))
