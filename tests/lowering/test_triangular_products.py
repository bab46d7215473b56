"""Sums of products with conditions: tiles that leave out what they exclude, and test it along its edge alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, output
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.lower import lower
from tests.long_variants import few
from tests.lowering.loop_interpreter import execute
from tests.lowering.test_plausible_faults import staged

RNG = np.random.default_rng(4)

Arrays = list[np.ndarray]


@op
def lower_half(A):
    C = output(A.shape[0], A.shape[0])
    C[i, j] += A[i, k] * A[j, k], j <= i
    return C


@op
def covariance(X):
    m[a] += X[i, a] / X.shape[0]
    C = output(X.shape[1], X.shape[1])
    C[a, b] += (X[i, a] - m[a]) * (X[i, b] - m[b]), b < a
    return C


@op
def triangular(A, B):
    C[i, j] += A[i, k] * B[k, j], k <= i
    return C


@op
def on_the_right(A, B):
    C[b, i, j] -= A[b, i, k] * B[k, j], k > j
    return C


@op
def banded(A, B):
    C[j, i] += A[k, i] * B[k, j], k <= i + 2, i <= k + 3
    return C


@op
def backwards(A: float64[N, K], B: float64[K, M]):
    C[i, j] += A[i, K - 1 - k] * B[k, j] * B[k, j], i + k < K
    return C


@op
def far_ones(X, Y):
    D[i, j] += (X[i, k] - Y[j, k]) ** 2, j <= i, k >= i - 3
    return D


@op
def of_windows(A, B):
    C[i, j] += A[i, k, r] * B[r, k, j], k < i
    return C


@op
def of_few_cells(A, B):
    C = output(A.shape[0] + 2, B.shape[1] + 3)
    C[i + 1, j] += A[i, k] * B[k, j], i <= k, j > i - 3
    return C


@op
def of_even_ones(A, B):
    C[i, j] += A[i, k] * B[k, j], 2 * k <= i
    return C


def whole(*shape: int) -> np.ndarray:
    return RNG.integers(-9, 9, shape).astype(np.float64)


SQUARES = [[whole(n, n), whole(n, m)] for n, m in ((1, 1), (7, 4), (13, 16), (61, 70), (270, 9))]
CASES: dict[str, tuple[Any, list[Arrays]]] = {
    "lower half": (lower_half, [[whole(n, m)] for n, m in ((1, 1), (8, 0), (13, 5), (70, 9), (131, 3), (17, 300))]),
    "covariance": (covariance, [[whole(m, n)] for n, m in ((1, 2), (16, 4), (70, 8))]),
    "triangular": (triangular, SQUARES),
    "on the right": (on_the_right, [[whole(2, m, n), whole(n, n)] for n, m in ((1, 1), (16, 13), (70, 9))]),
    "banded": (banded, SQUARES),
    "backwards": (backwards, SQUARES),
    "far ones": (far_ones, [[whole(n, m), whole(n, m)] for n, m in ((1, 1), (18, 20), (70, 9))]),
    "of windows": (of_windows, [[whole(n, n, 2), whole(2, n, m)] for n, m in ((1, 1), (18, 20), (61, 9))]),
    "of few cells": (of_few_cells, [[whole(m, k), whole(k, n)] for m, k, n in ((1, 1, 1), (50, 3, 17), (9, 70, 40))]),
    "of even ones": (of_even_ones, SQUARES[:4]),
}


@pytest.mark.parametrize("name", few(CASES, {"covariance", "on the right", "banded", "of windows", "of even ones"}))
def test_what_a_condition_leaves_out_is_no_term(name: str) -> None:
    function, given = CASES[name]
    for arrays in given:
        wanted = np.asarray(function.interpret(*arrays))
        np.testing.assert_allclose(function(*arrays), wanted, rtol=1e-12, atol=1e-12)
        if sum(array.size for array in arrays) < 300:
            kernel = lower(staged(function, *arrays), machine=Machine())
            np.testing.assert_allclose(execute(kernel, arrays).outputs[0], wanted, rtol=1e-12, atol=1e-12)
    tiled = [line for line in str(function.explain("schedule", *arrays)).splitlines() if "    tile " in line]
    assert [" where " in line for line in tiled] == ([True] if name != "of even ones" else [])


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("name", ["triangular", "banded", "backwards"])
def test_numbers_that_are_left_out_may_be_infinite(name: str, value: float) -> None:
    function, given = CASES[name]
    for k in range(3):
        A, B = (array.copy() for array in given[3])
        (A if k else B)[12 * k + 3, 7 * k + 2] = value
        np.testing.assert_array_equal(function(A, B), function.interpret(A, B))


@pytest.mark.parametrize("name", ["lower half", "triangular", "far ones"])
def test_gradients_are_triangular_too(name: str) -> None:
    function, given = CASES[name]
    tc.check_grads(function, [array / 9 for array in given[2]])


def test_threads_change_no_bit() -> None:
    A = RNG.normal(size=(150, 300)).astype(np.float32)
    found = []
    for count in (1, 2):
        with tc.config(threads=count):
            found.append(np.asarray(lower_half(A)))
    np.testing.assert_array_equal(*found)
