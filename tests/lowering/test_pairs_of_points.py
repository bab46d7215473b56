"""Sums over pairs of points, one point a row: the loop along memory is one over points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.indices import b, c, i, j
from tcdsl.primitives import recip_sqrt, sqrt, square
from tests.lowering.cases import real


@tc.op
def distances(x: Any) -> Any:
    d = tc.output()
    d[i, j] = sqrt(sum(square(x[i, c] - x[j, c])) + 1)
    return d


@tc.op
def attraction(x: Any, r: Any) -> Any:
    f = tc.output()
    f[j, c] += r[i, j] * (x[j, c] - x[i, c])
    return f


@tc.op
def in_batches(x: Any) -> Any:
    d = tc.output()
    d[b, i, j] += abs(x[b, i, c] - x[b, j, c])
    return d


@tc.op
def all_together(x: Any) -> Any:
    total = tc.output()
    total[()] += square(x[i, c] - x[j, c])
    return total


@tc.op
def bodies(x: Any) -> Any:
    r, f = tc.output(), tc.output()
    r[i, j] = recip_sqrt(sum(square(x[j, c] - x[i, c])) + 0.5)
    f[i, c] += (x[j, c] - x[i, c]) * r[i, j] ** 3
    return f


@tc.op
def gram(x: Any) -> Any:
    g = tc.output()
    g[i, j] += x[i, c] * x[j, c]
    return g


@tc.op
def of_each_pair(g: Any, x: Any) -> Any:
    d = tc.output()
    d[i, j] += square(g[i, j, c] - x[j, c])
    return d


def numpy_bodies(x: np.ndarray) -> np.ndarray:
    apart = x[None] - x[:, None]
    return (apart / ((apart**2).sum(2) + 0.5)[..., None] ** 1.5).sum(1)


SIZES = ((0, 3), (1, 0), (1, 1), (2, 3), (17, 20), (65, 3))


@pytest.mark.parametrize("size", SIZES)
def test_results(size: tuple[int, int]) -> None:
    n, m = size
    x, r = real(n, m), real(n, n)
    apart = x[:, None] - x[None]
    for found, expected in (
        (distances(x), np.sqrt((apart**2).sum(2) + 1)),
        (attraction(x, r), (r[..., None] * -apart).sum(0)),
        (in_batches(x[None]), abs(apart).sum(2)[None]),
        (all_together(x), (apart**2).sum(dtype="float64").astype("float32")),
        (bodies(x), numpy_bodies(x)),
    ):
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_gradient() -> None:
    x, w = np.random.default_rng(0).standard_normal((2, 9, 3))

    @tc.op
    def loss(x: Any, w: Any) -> Any:
        f, total = bodies(x), tc.output()
        total[()] += f[i, c] * w[i, c]
        return total

    found = tc.grad(loss)(x, w)
    assert "x_rows" in tc.grad(loss).explain("loops", x, w)
    for cell in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[cell] = 1e-6
        slope = ((numpy_bodies(x + step) - numpy_bodies(x - step)) * w).sum() / 2e-6
        np.testing.assert_allclose(found[cell], slope, rtol=1e-6, atol=1e-7)


def test_what_is_transposed() -> None:
    x = real(20, 3)
    assert "x_rows[c, j]" in distances.explain("loops", x)
    attracted = attraction.explain("loops", x, real(20, 20))
    assert "f_rows[c, j] += r[i, j] * (x_rows[c, j] - x[i, c])" in attracted
    # Products have loops of their own; a copy as large as the pairs would be as much work as the sum.
    assert "_rows" not in gram.explain("loops", x)
    assert "_rows" not in of_each_pair.explain("loops", real(20, 20, 3), x)


def test_one_sum_over_all_pairs() -> None:
    @tc.op
    def energy(x: Any) -> Any:
        total = tc.output()
        total[()] += square(x[i, c] - x[j, c])
        return total

    x = real(7, 3)
    np.testing.assert_allclose(energy(x), ((x[:, None] - x) ** 2).sum(), rtol=1e-4)
