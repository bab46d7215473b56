"""Columns that all rows of a statement read, copied before it."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op


@cd
def downdated(A: real[N, N], k):
    A[i, j] -= A[i, k] * A[j, k], i > k, j > k, j <= i


@op
def scaled(x: real[N, M], t: real[M, 2, K], k):
    y[i, j] = x[i, j] * t[j, 1, k] + t[j, 0, k] * t[j, 1, k]
    return y


@op
def guarded(x: real[N, M], w: real[M, K], k):
    y[i, j] = w[j, k] if x[i, j] > 0 else x[i, j]
    return y


@op
def alone(x: real[N], w: real[N, K]):
    y[i] = x[i] * w[i, 1]
    return y


def test_rows_in_place_read_what_the_column_was() -> None:
    for extent in (1, 2, 3, 9, 70):
        for k in {0, extent // 2, extent - 1}:
            a = np.random.default_rng(extent).normal(size=(extent, extent))
            expected = a.copy()
            below = slice(k + 1, None)
            expected[below, below] -= np.tril(np.outer(a[below, k], a[below, k]))
            found = a.copy()
            downdated(found, k)
            np.testing.assert_allclose(found, expected, rtol=1e-12)
    text = downdated.explain("loops", a, 3)
    assert "_column[j]" in text


@pytest.mark.parametrize("extents", [(0, 0, 1), (1, 0, 3), (0, 5, 2), (1, 1, 1), (2, 3, 4), (17, 33, 5)])
def test_values(extents: tuple[int, int, int]) -> None:
    rows, columns, depth = extents
    generator = np.random.default_rng(rows)
    x, t = generator.normal(size=(rows, columns)), generator.normal(size=(columns, 2, depth))
    for k in range(depth):
        for run in (scaled, scaled.interpret):
            np.testing.assert_allclose(run(x, t, k), x * t[:, 1, k] + t[:, 0, k] * t[:, 1, k], rtol=1e-12)
        for run in (guarded, guarded.interpret):
            np.testing.assert_array_equal(run(x, t[:, 0], k), np.where(x > 0, t[:, 0, k], x))
    results = []
    for threads in (1, 2):
        with tc.config(threads=threads):
            results.append(scaled(x, t, 0))
    np.testing.assert_array_equal(*results)


def test_only_columns_that_several_rows_read_are_copied() -> None:
    x, w = np.ones((20, 30)), np.ones((30, 4))
    text = scaled.explain("loops", x, np.ones((30, 2, 4)), 1)
    assert "x[i, j] * t_column[j] + t_column1[j] * t_column[j]" in text
    assert "_column" not in alone.explain("loops", np.ones(30), w)
    with tc.config(optimize="-columns"):
        assert "_column" not in scaled.explain("loops", x, np.ones((30, 2, 4)), 1)


@op
def spread(x: real[N, M], v: real[M]):
    y[i, j] = x[i, j] / sqrt(square(v[j]) + 1)
    s[j] += x[i, j] * exp(v[j])
    z[i, j] = x[i, j] * (v[j] + 1)
    return y, s, z


def test_what_rows_have_in_common_is_computed_once() -> None:
    x, v = np.random.default_rng(5).normal(size=(20, 30)), np.linspace(-1, 2, 30)
    wanted = x / np.sqrt(v**2 + 1), x.sum(0) * np.exp(v), x * (v + 1)
    for rows in (20, 1, 0):
        for one, two in zip(spread(x[:rows], v), wanted, strict=True):
            np.testing.assert_allclose(one, two[:rows] if two.ndim > 1 else x[:rows].sum(0) * np.exp(v), rtol=1e-12)
    text = spread.explain("loops", x, v)
    assert all(part in text for part in ("x[i, j] / y_row[j]", "x[i, j] * s_row[j]", "x[i, j] * (v[j] + 1.0)"))
    with tc.config(optimize="-columns"):
        assert "_row" not in spread.explain("loops", x, v)
