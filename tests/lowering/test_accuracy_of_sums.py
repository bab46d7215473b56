"""Sums of many terms in single precision: the error grows with blocks and their number, for any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.ir.sizes.size_binding import evaluate_size
from tcdsl.lowering.loopir.loops import Accumulate, Loop
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower

N = 3_000_000


@op
def columns(x):
    y[j] += x[i, j]
    return y


@op
def rows(x):
    y[i] += exp(x[i, j])
    return y


@op
def total(x):
    t[()] += x[i, j]
    return t


@op
def planes(x):
    y[i] -= x[i, j, k]
    return y


@op
def product(a, b):
    t[()] += a[i] * b[i]
    return t


@op
def average(x):
    y[j] = mean(x[i, j])
    return y


@op
def with_bias(x, b):
    y[n, h, c] = x[n, h, c] + b[c]
    return y


@op
def histogram(ids, w, cells):
    N = cells.shape[0]
    h: float32[N]
    h[ids[i]] += w[i]
    return h


@op
def histogram_of_rows(ids, w, cells):
    N = cells.shape[0]
    _, D = w.shape
    h: float32[N, D]
    h[ids[i], d] -= w[i, d]
    return h


@op
def halves(ids, w):
    h: float16[3]
    h[ids[i]] += w[i]
    return h


@op
def contraction(a, b):
    c[i, j] += a[i, k] * b[k, j]
    return c


@op
def contraction_of_columns(a, b):
    c[i, j] -= a[k, i] * b[k, j]
    return c


@op
def over_two(a, b):
    c[n, i, j] += a[n, i, k, l] * b[k, l, j]
    return c


@op
def triangle(a, b):
    c[i, j] += a[k, i] * b[l, j], l <= k
    return c


@op
def stepping(x, w):
    y[j, 2 * q + k] += x[c, q] * w[c, j, k]
    return y


@op
def contraction_of_columns_of(a, b):
    c[i, j] += a[k // 3, i] * b[k, j]
    return c


@op
def dense(x, w, b):
    y[n, o] = relu(sum(x[n, i] * w[i, o]) + b[o])
    return y


@cd
def accumulated(c, a, b):
    c[i, j] += a[i, k] * b[k, j]


@cd
def own_rows(c, b):
    c[i, j] += c[i, k] * b[k, j]


def constant(*shape: int) -> np.ndarray:
    # Sums of equal terms round in one direction.
    return np.full(shape, 0.1, np.float32)


def agrees(function: Any, arguments: tuple[np.ndarray, ...], want: Any, tolerance: float = 1e-5) -> None:
    results = []
    for threads in (1, 2):
        with tc.config(threads=threads):
            results.append(np.asarray(function(*arguments)))
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_allclose(results[0].astype(float), want, rtol=tolerance)


def test_columns() -> None:
    for shape in ((N, 1), (N // 4, 4), (1000, 7), (513, 2), (64 * 512 * 2 + 1, 2)):
        x = constant(*shape)
        agrees(columns, (x,), x.astype(float).sum(0))
    x = constant(N // 2, 2)
    agrees(average, (x,), x.astype(float).mean(0))


def test_rows() -> None:
    for shape in ((2, N // 2), (3, 8192), (3, 8193), (5, 3), (1, 16385)):
        x = constant(*shape)
        agrees(rows, (x,), np.exp(x.astype(float)).sum(1), 5e-5)


def test_numbers() -> None:
    # Whichever of the loops is long.
    for shape in ((N, 1), (1, N), (1700, 1700), (3, 5), (0, 3), (3, 0), (513, 1), (1, 8193), (2, 300)):
        x = constant(*shape)
        agrees(total, (x,), x.astype(float).sum(), 7e-6)
    for shape in ((2, 1, N // 2), (1, N // 3, 3), (3, 1000, 1000), (2, 5, 5), (2, 3, 700)):
        x = constant(*shape)
        agrees(planes, (x,), -x.astype(float).sum((1, 2)), 7e-6)
    x = constant(N)
    agrees(product, (x, x), (x.astype(float) ** 2).sum())


def test_rows_of_long_sums() -> None:
    for rows, terms, columns in ((3, 200_000, 20), (2, 1025, 5), (2, 512, 5), (2, 513, 5), (0, 600, 3), (2, 600, 0)):
        a, b = constant(rows, terms), constant(terms, columns)
        want = a.astype(float) @ b.astype(float)
        agrees(contraction, (a, b), want, 2e-5)
        agrees(contraction_of_columns, (a.T.copy(), b), -want, 2e-5)


@pytest.mark.parametrize("middle", [(1, 60_000), (60_000, 1), (300, 200), (7, 9), (0, 700), (700, 0), (20_000, 3)])
def test_rows_of_sums_over_two(middle: tuple[int, int]) -> None:
    a, b = constant(2, 3, *middle), constant(*middle, 20)
    agrees(over_two, (a, b), np.einsum("nikl,klj->nij", a.astype(float), b.astype(float)), 1e-5)


def test_rows_of_other_long_sums() -> None:
    a, b = constant(2000, 2), constant(2000, 20)
    terms = 2000 * 2001 / 2
    agrees(triangle, (a, b), np.full((2, 20), terms * float(a[0, 0]) ** 2), 3e-5)
    x, w = constant(40_000, 21), constant(40_000, 2, 2)
    agrees(stepping, (x, w), np.full((2, 42), 40_000 * float(x[0, 0]) ** 2))
    # More steps than any axis has cells.
    few, many = constant(400, 2), constant(1200, 20)
    agrees(contraction_of_columns_of, (few, many), np.full((2, 20), 1200 * float(x[0, 0]) ** 2))
    x, w, b = constant(2, 100_000), constant(100_000, 20), constant(20)
    agrees(dense, (x, w, b), np.full((2, 20), 100_000 * float(b[0]) ** 2 + float(b[0])), 5e-6)


def test_rows_that_hold_values() -> None:
    a, b = constant(3, 100_000), constant(100_000, 20)
    c = constant(3, 20)
    accumulated(c, a, b)
    np.testing.assert_allclose(c.astype(float), 0.1 + 1e5 * 0.1 * 0.1, rtol=5e-6)
    square, b = np.full((2, 700), 1.0, np.float32), np.full((700, 700), 1.0, np.float32)
    own_rows(square, b)
    np.testing.assert_array_equal(square, np.full((2, 700), 701.0))


def test_long_sums_of_constant_extent_into_short_rows() -> None:
    @op
    def fixed(a: real[100000, 3], b: real[100000, 4]):
        c[i, j] += a[k, i] * b[k, j]
        return c

    a, b = constant(100_000, 3), constant(100_000, 4)
    agrees(fixed, (a, b), np.full((3, 4), 1e5 * float(a[0, 0]) ** 2), 5e-6)


def test_few_terms_need_no_memory_for_sums() -> None:
    kernel = lower(contraction.program(constant(3, 4), constant(4, 3)))
    (sums,) = (buffer for buffer in kernel.buffers if buffer.name.startswith("sums"))
    for terms, cells in ((512, 0), (513, 6)):
        sizes = {"a_0": 2, "a_1": terms, "b_1": 3}
        assert np.prod([evaluate_size(extent, sizes) for extent in sums.shape]) == cells


def test_the_gradient_of_a_bias() -> None:
    x, b = constant(40, 30_000, 3), constant(3)
    _, pullback = tc.vjp(with_bias, x, b)
    _, d_b = pullback(constant(40, 30_000, 3))
    np.testing.assert_allclose(d_b.astype(float), 1_200_000 * float(np.float32(0.1)), rtol=1e-5)


def test_scatters() -> None:
    for terms, cells in ((20_000_000, 1), (400_000, 3), (10, 100_000), (65_537, 1)):
        ids = np.arange(terms) % 3 if cells == 3 else np.zeros(terms, np.int64)
        want = np.bincount(ids, minlength=cells).astype(float)
        agrees(histogram, (ids, np.ones(terms, np.float32), np.zeros(cells)), want, 0)
    ids = np.arange(300_000) % 2
    w = constant(300_000, 2)
    agrees(histogram_of_rows, (ids, w, np.zeros(3)), [[-150_000 * float(w[0, 0])] * 2] * 2 + [[0, 0]], 5e-5)
    agrees(halves, (np.zeros(5000, np.int64), np.ones(5000, np.float32)), [5000, 0, 0], 1e-3)


@pytest.mark.parametrize("function", [rows, total], ids=lambda function: function.__name__)
def test_the_inner_loop_is_what_it_was(function: Any) -> None:
    # One accumulation over contiguous cells, so that it is vectorized.
    kernel = lower(function.program(constant(3, 4)))
    loops = [node for nest in kernel.nests for node in walk_nodes(nest.body) if isinstance(node, Loop)]
    inner = [loop for loop in loops if loop.variable == "j"]
    assert len(inner) == (2 if function is total else 1)  # for few terms, and in tiles
    assert all([type(node) for node in loop.body] == [Accumulate] for loop in inner)


def test_scatters_of_rows_that_threads_share_need_no_memory() -> None:
    @op
    def counts(ids, w):
        y: float32[w.shape[0], 3]
        y[j, ids[i]] += w[j, i]
        return y

    kernel = lower(counts.program(np.zeros(9, np.int64), constant(4, 9)))
    assert not any(buffer.kind == "temporary" for buffer in kernel.buffers)
