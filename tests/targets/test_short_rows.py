"""Rows of a few cells: loops along several axes are one where rows lie behind each other, and sums stay in lanes."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.lowering.loopir.loops import Loop
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.targets.cpu.emission.module_emission import emitted_nests
from tcdsl.targets.cpu.emission.vector_loops import flat_rows
from tcdsl.targets.cpu.intrinsics.frame_memory import BufferKind
from tests.targets.nest_text import nest_kernel

SHAPES = {"x": "float32[m, n]", "y": "float32[m, n]", "z": "float32[m, n]"}


def rows(statement: str) -> Loop:
    (nest,) = nest_kernel(f"for i in range(m):\n    for j in range(n):\n        {statement}", SHAPES).nests
    (loop,) = nest.body
    assert isinstance(loop, Loop)
    return loop


def kind_of(buffer: str) -> BufferKind:
    return BufferKind(-1 - "xyz".index(buffer), "float32", 2, contiguous=True)


@pytest.mark.parametrize(
    ("statement", "cells"),
    [
        ("z[i, j] = x[i, j] * y[0, 0] + z[i, j]", {"x", "z"}),
        ("z[i, j] = x[i, j] if y[i, j] > float32(0.0) else float32(1.0)", {"x", "y", "z"}),
        ("z[i, j] = x[j, i]", None),
        ("z[i, j] = x[i, j + 1]", None),
        ("z[i, j] = x[i, j] + y[0, j]", None),
        ("z[i, j] = x[i, j] + z[i - 1, j]", None),
        ("z[i, j] = x[i, j] * float32(i)", None),
        ("z[0, 0] += x[i, j] * float32(2.0) + z[0, 1]", None),
    ],
)
def test_which_loops_are_one(statement: str, cells: set[str] | None) -> None:
    found = flat_rows(rows(statement), kind_of)
    assert (None if found is None else {buffer for buffer, _ in found[1]}) == cells


def test_sums_of_short_rows_are_joined_once() -> None:
    text = "total = float32(0.0)\nfor i in range(m):\n    for j in range(n):\n        total += x[i, j]\nz[0, 0] = total"
    ((_, code),) = emitted_nests(nest_kernel(text, SHAPES), (True, True), {0: "nest"}, Machine(32, masks=False))
    assert sum("call" in line and "llvm.vector.reduce" in line for line in code.splitlines()) == 1


def test_few_terms_are_added_up_one_by_one() -> None:
    text = (
        "for i in range(m):\n    total = float32(0.0)\n    for j in range(n):\n        total += x[i, j]\n"
        "    z[i, 0] = total"
    )
    ((_, code),) = emitted_nests(nest_kernel(text, SHAPES), (True, True), {0: "nest"}, Machine(64, masks=True))
    assert re.search(r"icmp slt i64 %v\d+, 7\n", code)


@op
def nearest(X, C):
    label, distance = np.zeros(X.shape[0], np.int64), np.zeros(X.shape[0], X.dtype)
    for i in range(X.shape[0]):
        best = np.inf
        for c in range(C.shape[0]):
            s = 0.0
            for k in range(X.shape[1]):
                s += (X[i, k] - C[c, k]) ** 2
            if s < best:
                best = s
                label[i] = c
        distance[i] = best
    return label, distance


@pytest.mark.parametrize("terms", [0, 1, 6, 7, 8, 33])
def test_sums_of_few_and_many_terms(terms: int) -> None:
    X, C = (np.random.default_rng(terms).random((n, terms)) for n in (9, 4))
    squares = ((X[:, None] - C) ** 2).sum(2)
    label, distance = nearest(X, C)
    np.testing.assert_array_equal(label, squares.argmin(1))
    np.testing.assert_allclose(distance, squares.min(1), rtol=1e-12)


@op
def normalized(X):
    mu[n, c] = mean(X[n, c, y, x])
    var[n, c] = mean((X[n, c, y, x] - mu[n, c]) ** 2)
    Y[n, c, y, x] = (X[n, c, y, x] - mu[n, c]) / sqrt(var[n, c] + 1e-5)
    return Y


@op
def extremes(X):
    top[n] = max(X[n, i, j, k])
    total[n] += X[n, i, j, k]
    return top, total


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_any_strides(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for shape in ((3, 2, 7, 5), (2, 3, 40, 33), (2, 1, 1, 9), (1, 2, 0, 4), (2, 2, 3, 1)):
        whole = rng.standard_normal((*shape[:2], shape[2] + 2, shape[3] + 3)).astype(dtype)
        part = whole[:, :, 1 : shape[2] + 1, : shape[3]]
        for X in (part.copy(), part, np.asfortranarray(part), part[:, :, ::-1]):
            with np.errstate(all="ignore"):
                count = np.array(X[0, 0].size, dtype)
                mean = X.sum((2, 3), keepdims=True) / count
                variance = ((X - mean) ** 2).sum((2, 3), keepdims=True) / count
                expected = (X - mean) / np.sqrt(variance + 1e-5)
            np.testing.assert_allclose(normalized(X), expected, rtol=1e-4, atol=1e-4)
            top, total = extremes(X)
            np.testing.assert_array_equal(top, X.max((1, 2, 3), initial=-np.inf))
            np.testing.assert_allclose(total, X.sum((1, 2, 3)), rtol=1e-4, atol=1e-4)


def test_bits_do_not_depend_on_threads() -> None:
    X = np.random.default_rng(1).standard_normal((5, 3, 50, 37)).astype("float32")
    with tc.config(threads=1):
        alone = normalized(X)
    np.testing.assert_array_equal(normalized(X), alone)


@op
def extremes_of_rows(X):
    top[i] = max(X[i, j])
    least[i] = min(X[i, j])
    Z[i, j] = min(max(X[i, j], -X[i, 0]), 1)
    return top, least, Z


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_extremes_of_signed_zeros_and_nan(dtype: str) -> None:
    rng = np.random.default_rng(2)
    for length in (1, 7, 16, 61, 200):
        X = rng.choice(np.array([0.0, -0.0], dtype), (40, length))
        X[0], X[1], X[2, -1], X[3, length // 2] = 0.0, -0.0, np.nan, -np.inf
        top, least, Z = extremes_of_rows(X)
        np.testing.assert_array_equal(top, X.max(1))
        np.testing.assert_array_equal(least, X.min(1))
        np.testing.assert_array_equal(Z, np.minimum(np.maximum(X, -X[:, :1]), 1))
        zeros = [row for row in range(40) if row not in (2, 3)]
        np.testing.assert_array_equal(np.signbit(top[zeros]), np.signbit(X[zeros]).all(1))
        np.testing.assert_array_equal(np.signbit(least[zeros]), np.signbit(X[zeros]).any(1))
