"""Statements share outer loops only where no iteration needs what another one writes, and only if they share data."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower
from tcdsl.lowering.program_passes import merging
from tests.lowering.test_plausible_faults import check, staged

X = np.arange(12.0).reshape(4, 3) - 5
W = np.array([[2.0, -1, 0.5], [1, 3, -2], [0, 1, 4], [-3, 2, 1]])


def count_of_nests(function: object, *arrays: np.ndarray) -> int:
    return len(lower(staged(function, *arrays)).nests)


def test_cells_of_other_inner_iterations_are_awaited() -> None:
    @op
    def f(x):
        M = x.shape[1]
        s[i, j] >>= x[i, j, k]
        t[i, j] >>= x[i, j, k] * s[i, M - 1 - j]
        return s, t

    x = np.arange(24.0).reshape(2, 3, 4)
    s = x.max(axis=2)
    check(f, x, wanted=(s, (x * s[:, ::-1, None]).max(axis=2)))
    assert count_of_nests(f, x) == 1


def test_letters_of_one_statement_are_not_mixed_up_in_another() -> None:
    @op
    def f(x: real[N, N]):
        s[i] += x[i, j]
        t[j] += x[j, i] * s[j]
        return s, t

    s = X[:3].sum(axis=1)
    check(f, X[:3], wanted=(s, s * s))
    assert count_of_nests(f, X[:3]) == 1


def test_a_statement_joins_no_loop_before_what_it_needs() -> None:
    @op
    def f(x: real[N, K], w: real[N, K]):
        p[i] += w[i, k]
        a[i] += x[i, k]
        b[i] += x[i, k] * 2
        c[i] += w[i, k] + a[N - 1 - i]
        return p, a, b, c

    @op
    def g(x: real[N, K], w: real[N, K]):
        p[i] += w[i, k]
        a[i] += x[i, k]
        b[i] += x[i, k] * 2
        c[i] += w[i, k] + b[N - 1 - i]
        return p, a, b, c

    p, a = W.sum(axis=1), X.sum(axis=1)
    check(f, X, W, wanted=(p, a, 2 * a, p + 3 * a[::-1]))
    check(g, X, W, wanted=(p, a, 2 * a, p + 6 * a[::-1]))
    # p and a have nothing in common; a and b have.
    assert count_of_nests(f, X, W) == count_of_nests(g, X, W) == 3


def test_a_statement_updates_nothing_before_it_is_read() -> None:
    @cd
    def f(p: real[N], a: real[N], b: real[N], x: real[N], y: real[N, K], w: real[N, K]):
        p[i] += w[i, k]
        a[i] += y[i, k] * x[N - 1 - i]
        b[i] += y[i, k]
        x[i] += w[i, k]

    @cd
    def g(p: real[N], a: real[N], b: real[N], x: real[N], y: real[N, K], w: real[N, K]):
        p[i] += w[i, k]
        a[i] += y[i, k]
        b[i] += y[i, k] * x[N - 1 - i]
        x[i] += w[i, k]

    start = np.arange(1.0, 5.0)
    sums, more = start + X.sum(axis=1), start + W.sum(axis=1)
    turned = start + X.sum(axis=1) * start[::-1]
    check(f, *(start.copy() for _ in range(4)), X, W, wanted=(more, turned, sums, more))
    check(g, *(start.copy() for _ in range(4)), X, W, wanted=(more, sums, turned, more))


def test_a_statement_joins_none_of_several_that_it_waits_for() -> None:
    @op
    def f(x: real[N, K]):
        a[i] += x[i, k]
        b[i] += x[i, k] * 2
        c[i] += x[i, k] + a[N - 1 - i]
        return a, b, c

    @op
    def g(x: real[N, K]):
        a[i] += x[i, k]
        b[i] += x[i, k] * 2
        c[i] += x[i, k] + b[N - 1 - i]
        return a, b, c

    a = X.sum(axis=1)
    check(f, X, wanted=(a, 2 * a, a + 3 * a[::-1]))
    check(g, X, wanted=(a, 2 * a, a + 6 * a[::-1]))


def test_what_merging_asks_grows_as_the_statements_do(monkeypatch: pytest.MonkeyPatch) -> None:
    @op
    def halved(x, *, rounds):
        y[i] = x[i] * 1.0
        for _ in range(rounds):
            y[i] = y[i] * 0.5 + 1
        return y

    asked = []
    plain = merging._axes_of
    monkeypatch.setattr(merging, "_axes_of", lambda *given: asked.append(given) or plain(*given))
    counts = []
    for rounds in (20, 40, 80):
        asked.clear()
        with tc.config(check="nan"):
            halved.explain("loops", np.ones(3), rounds=rounds)
        counts.append(len(asked))
    assert 0 < counts[1] <= 2.2 * counts[0]
    assert counts[2] <= 2.2 * counts[1]


def test_nests_of_many_statements_are_cut_so_that_their_number_alone_grows() -> None:
    # What LLVM takes for a statement grows with what stands beside it; equal parts are compiled once.
    @op
    def many(x):
        for _ in range(60):
            x = 0.5 * x + sin(x)
        return x

    @op
    def f(x, *, times):
        for _ in range(times):
            x = many(x)
        return x

    x = np.linspace(-2, 3, 12)
    nests = {times: lower(f.program(x, times=times)).nests for times in (1, 5)}
    sizes = {times: [sum(1 for _ in walk_nodes(nest.body)) for nest in found] for times, found in nests.items()}
    assert len(sizes[1]) == 1
    assert max(sizes[5]) < 2 * sizes[1][0]
    assert len(set(sizes[5])) <= 2 < len(sizes[5])
    wanted = x
    for _ in range(300):
        wanted = 0.5 * wanted + np.sin(wanted)
    np.testing.assert_allclose(f(x, times=5), wanted, rtol=1e-12)
