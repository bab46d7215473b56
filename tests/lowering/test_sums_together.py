"""Sums several at a time, four rows by four cells, or eight terms of a row: what is done together, what comes out."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.loops import Accumulate, Kernel, Loop
from tcdsl.lowering.loopir.machine import Machine
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute

RNG = np.random.default_rng(8)
INPUTS = "program p\ninput a: float64[M, K]\ninput b: float64[N, K_1]\nassert K == K_1\n"
ALL = "for [i, j, k]: 0 <= i < M and 0 <= j < N and 0 <= k < K"
TOGETHER = {
    "product": f"tensor c: float64[M, N]\nc[i, j] += a[i, k] * b[j, k]  {ALL}\nreturn c\n",
    "weighted": f"tensor c: float64[M, N]\nc[i, j] -= a[i, k] * b[j, k] * a[0, k]  {ALL}\nreturn c\n",
    "vector": "tensor c: float64[M]\nc[i] += a[i, k] * b[0, k]"
    "  for [i, k]: 0 <= i < M and 0 <= k < K and N > 0\nreturn c\n",
    "triangle": f"tensor c: float64[M, N]\nc[i, j] += a[i, k] * b[j, k]  {ALL} and k <= i\nreturn c\n",
}
APART = {
    "sums": "tensor c: float64[M]\nc[i] += a[i, k]  for [i, k]: 0 <= i < M and 0 <= k < K\nreturn c\n",
    "exponentials": f"tensor c: float64[M, N]\nc[i, j] += exp(a[i, k] * b[j, k])  {ALL}\nreturn c\n",
    "masked": f"tensor c: float64[M, N]\nc[i, j] += a[i, k] * b[j, k]  {ALL}  if b[j, k] > a[i, k]\nreturn c\n",
}
SHAPES = [(4, 4, 4), (3, 9, 2), (5, 4, 7), (9, 13, 6), (1, 1, 1), (8, 0, 3), (0, 5, 5), (6, 2, 0)]


def program(name: str) -> Program:
    return parse_program(INPUTS + {**TOGETHER, **APART}[name])


def plain_loops(made: Program, without: str = "") -> Kernel:
    """The loops that run for few rows."""
    return lower(made, optimize=f"-panels{without}")


def tiles(kernel: Kernel) -> int:
    nodes = (node for nest in kernel.nests for node in walk_nodes(nest.body))
    return sum(isinstance(node, Loop) and node.variable.startswith("tile") for node in nodes)


@pytest.mark.parametrize("name", [*TOGETHER, *APART])
def test_what_comes_out(name: str) -> None:
    made = program(name)
    kernel = plain_loops(made)
    assert (tiles(kernel) > 0) == (name in TOGETHER)
    assert tiles(plain_loops(made, " -dots")) == 0
    for m, k, n in SHAPES:
        if (name, m) != ("weighted", 0):
            arrays = [RNG.integers(-8, 9, shape) / 4 for shape in ((m, k), (n, k))]
            (found,), (wanted,) = execute(kernel, arrays).outputs, interpret(made, arrays).outputs
            np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("name", TOGETHER)
def test_each_term_is_computed_once(name: str) -> None:
    made = program(name)
    for m, k, n in SHAPES[3:5]:
        sizes = bind_sizes(made, [(m, k), (n, k)])
        assert executed_points(plain_loops(made), sizes) == executed_points(plain_loops(made, " -dots"), sizes)


def test_bits_do_not_depend_on_threads() -> None:
    @op
    def both(a, b, d):
        return a @ b, a @ d.T, a @ d[0], a[:5] @ d.T

    a, b, d = RNG.normal(size=(203, 91)), RNG.normal(size=(91, 77)), RNG.normal(size=(61, 91))
    results = []
    for threads in (1, 2, 4):
        with tc.config(threads=threads):
            results.append(both(a, b, d))
    for found, want in zip(results[0], (a @ b, a @ d.T, a @ d[0], a[:5] @ d.T), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-10)
    for result in results[1:]:
        for found, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(found, first)


@op
def states(W, h, n: int):
    for _ in range(n):
        z = h @ W
        h = z * 0.5 - z * z * h * 0.01
    return h


@op
def largest(W, h, n: int):
    for _ in range(n):
        z = output()
        z[j] >>= h[k] * W[k, j]
        h = z * 0.5
    return h


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_in_rounds_take_several_terms_at_a_time(dtype: str) -> None:
    for size in (1, 7, 8, 9, 40):
        W, h = (RNG.normal(size=shape).astype(dtype) for shape in ((size, size), size))
        found = states(W, h, 5)
        with tc.config(optimize="-terms"):
            np.testing.assert_array_equal(states(W, h, 5), found)
    assert "by 8:" in states.explain("loops", W, h, 5)
    assert "by 8:" not in largest.explain("loops", W, h, 5)
    whole = np.ones((3, 3), np.int64)
    assert "by 8:" not in states.explain("loops", whole, np.ones(3, np.int64), 0)


@op
def of_columns(x, w):
    s[j] += x[i, j] * w[i]
    return s


@op
def rows_and_columns(x, w):
    r[i] += x[i, j] * x[0, j]
    s[j] += x[i, j] * w[i]
    return r, s


@op
def of_two_factors(x, y):
    s[j] += x[i, j] * y[i, j]
    return s


def test_partial_rows_take_several_terms_at_a_time() -> None:
    for m, n in ((0, 3), (1, 1), (8, 2), (9, 5), (1100, 70)):
        x, w = RNG.normal(size=(m, n)).astype("float32"), RNG.normal(size=m).astype("float32")
        found = of_columns(x, w)
        np.testing.assert_allclose(found, w.astype("float64") @ x, rtol=1e-4, atol=1e-4)
        with tc.config(optimize="-terms"):
            np.testing.assert_array_equal(of_columns(x, w), found)
    assert "by 8:" in of_columns.explain("loops", x, w)
    assert "by 8:" not in of_two_factors.explain("loops", x, x)
    # Rows that another statement has just read are near too.
    np.testing.assert_allclose(rows_and_columns(x, w)[1], found, rtol=1e-4, atol=1e-4)
    assert "by 8:" in rows_and_columns.explain("loops", x, w)


IMAGES = "program p\ninput x: float64[M, N]\ninput w: float64[K, L]\n"
WINDOWS = {
    "valid": "tensor c: float64[M - K + 1, N - L + 1]\nc[i, j] += x[i + r, j + s] * w[r, s]"
    "  for [i, j, r, s]: 0 <= i <= M - K and 0 <= j <= N - L and 0 <= r < K and 0 <= s < L\nreturn c\n",
    "padded": "tensor c: float64[M, N]\nc[i, j] -= x[i + r - 1, j + s - 1] * w[r, s]  for [i, j, r, s]: 0 <= i < M"
    " and 0 <= j < N and 0 <= r < K and 0 <= s < L and 1 <= i + r <= M and 1 <= j + s <= N\nreturn c\n",
    "spread": "tensor c: float64[M + K, N + L]\nc[i, j] += x[i - r, j - s] * w[r, s]  for [i, j, r, s]:"
    " r <= i < M + r and s <= j < N + s and 0 <= r < K and 0 <= s < L\nreturn c\n",
    "columns": "tensor c: float64[M, N]\nc[i, j] += x[i + r - 1, j] * w[r, j]"
    "  for [i, j, r]: 0 <= i < M and 0 <= j < N and 0 <= r < K and 1 <= i + r <= M and j < L\nreturn c\n",
}


@pytest.mark.parametrize("masks", [False, True])
@pytest.mark.parametrize("name", WINDOWS)
def test_each_cell_takes_all_terms_of_its_window_at_once(name: str, masks: bool) -> None:
    made = parse_program(IMAGES + WINDOWS[name])
    machine = Machine(64, 32, masks=masks)
    kernel, plain = (lower(made, optimize=f"-panels{each}", machine=machine) for each in ("", " -windows"))
    shift = name in ("padded", "spread")
    assert sums_in_cells(kernel) == (masks or not shift)
    assert not sums_in_cells(plain)
    for m, n, k, q in [
        (5, 6, 3, 3),
        (4, 9, 3, 1),
        (3, 2, 3, 5),
        (1, 1, 1, 1),
        (4, 5, 0, 2),
        (3, 4, 2, 0),
        (0, 3, 2, 2),
    ]:
        if name != "valid" or (m >= k - 1 and n >= q - 1):
            arrays = [RNG.integers(-8, 9, shape) / 4 for shape in ((m, n), (k, q))]
            (found,), (wanted,) = execute(kernel, arrays).outputs, interpret(made, arrays).outputs
            np.testing.assert_allclose(found, wanted, rtol=1e-10)


def sums_in_cells(kernel: Kernel) -> bool:
    """Whether terms are added in scalars."""
    return any(isinstance(node, Accumulate) for nest in kernel.nests for node in walk_nodes(nest.body))
