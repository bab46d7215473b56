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
from tcdsl.lowering.loopir.loop_printer import format_kernel
from tcdsl.lowering.loopir.loops import Kernel, Loop
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


ROWS = """program p
input a: {0}[M, K]
input b: {0}[K_1, N]
assert K == K_1
tensor c: {0}[M, N]
c[i, j] {1} a[i, k] * b[k, j]  for [i, k, j]: 0 <= i < M and 0 <= k < K and 0 <= j < N{2}
return c
"""


@pytest.mark.parametrize("condition", ["", " and k <= i + 9"])
@pytest.mark.parametrize("symbol", ["+=", "-="])
def test_rows_take_several_terms_at_a_time(symbol: str, condition: str) -> None:
    kernels = [plain_loops(parse_program(ROWS.format("float32", symbol, condition)), off) for off in ("", " -terms")]
    steps = [
        {node.step for nest in each.nests for node in walk_nodes(nest.body) if isinstance(node, Loop)} - {1, 512}
        for each in kernels
    ]
    assert steps == [{8}, set()]
    for m, k, n in [(1, 8, 3), (2, 7, 5), (2, 17, 1), (3, 0, 4), (1, 40, 0), (2, 530, 3)]:
        arrays = [RNG.normal(size=shape).astype("float32") for shape in ((m, k), (k, n))]
        np.testing.assert_array_equal(*(execute(each, arrays).outputs[0] for each in kernels))


@pytest.mark.parametrize(
    ("dtype", "symbol", "value"),
    [
        ("float64", ">>=", "a[i, k] * b[k, j]"),  # no sum
        ("int64", "+=", "a[i, k] * b[k, j]"),
        ("float64", "+=", "exp(a[i, k] * b[k, j])"),
    ],
)
def test_rows_that_are_added_term_by_term(dtype: str, symbol: str, value: str) -> None:
    text = ROWS.format(dtype, symbol, "").replace("a[i, k] * b[k, j]", value)
    assert format_kernel(plain_loops(parse_program(text))) == format_kernel(plain_loops(parse_program(text), " -terms"))
