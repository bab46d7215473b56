"""Sums, several rows and terms at a time: what is done together, and what comes out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import cd, op
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.sizes.size_binding import bind_sizes
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.loops import Kernel, Loop
from tcdsl.lowering.loopir.point_counts import executed_points
from tcdsl.lowering.loopir.traversal import walk_nodes
from tcdsl.lowering.lower import lower
from tcdsl.targets.cpu.registers.register_tiles import in_register_tiles
from tests.lowering.loop_interpreter import execute

RNG = np.random.default_rng(8)


def parse(text: str) -> Program:
    return parse_program(f"program p\n{text}")


def shuffled(steps: list[int]) -> list[int]:
    return list(RNG.permutation(list(steps)))


MATRICES = "input a: {dtype}[M, K]\ninput b: {dtype}[K_1, N]\nassert K == K_1\ntensor c: {dtype}[M, N]\n"
TRANSPOSED = "input a: {dtype}[M, K]\ninput b: {dtype}[N, K_1]\nassert K == K_1\ntensor c: {dtype}[M, N]\n"
ALL = "for [i, j, k]: 0 <= i < M and 0 <= j < N and 0 <= k < K"
# What comes in, what is computed, and whether rows of it are together.
TOGETHER = {
    "product": (MATRICES, f"c[i, j] += a[i, k] * b[k, j]  {ALL}\nreturn c\n"),
    "difference": (MATRICES, f"c[i, j] -= a[i, k] * b[k, j]  {ALL}\nreturn c\n"),
    "shortest": (MATRICES, f"c[i, j] <<= a[i, k] + b[k, j]  {ALL}\nreturn c\n"),
    "transposed": (TRANSPOSED, f"c[i, j] += a[i, k] * b[j, k]  {ALL}\nreturn c\n"),
    "weighted": (TRANSPOSED, f"c[i, j] -= a[i, k] * b[j, k] * a[0, k]  {ALL}\nreturn c\n"),
    "layer": (
        MATRICES + "tensor d: {dtype}[M, N]\n",
        (
            f"c[i, j] += a[i, k] * b[k, j]  {ALL}\n"
            "d[i, j] = max(c[i, j], 0.0)  for [i, j]: 0 <= i < M and 0 <= j < N\nreturn d\n"
        ),
    ),
    "two": (
        MATRICES + "tensor d: {dtype}[M, N]\n",
        f"c[i, j] += a[i, k] * b[k, j]  {ALL}\nd[i, j] += a[i, k] * b[k, j] * b[k, 0]  {ALL}\nreturn c, d\n",
    ),
    "masked": (
        MATRICES,
        f"c[i, j] += a[i, k] * b[k, j]  {ALL}  if b[k, j] > a[i, k]\nreturn c\n",
    ),
    "vector": (
        "input a: {dtype}[M, K]\ninput b: {dtype}[K_1]\nassert K == K_1\ntensor c: {dtype}[M]\n",
        "c[i] += a[i, k] * b[k]  for [i, k]: 0 <= i < M and 0 <= k < K\nreturn c\n",
    ),
    "batches": (
        "input a: {dtype}[N, M, K]\ninput b: {dtype}[N_1, K_1, K]\nassert N == N_1\ntensor c: {dtype}[N, M, K_1]\n",
        (
            "c[n, i, j] += a[n, i, k] * b[n, j, k]"
            "  for [n, i, j, k]: 0 <= n < N and 0 <= i < M and 0 <= j < K_1 and 0 <= k < K\nreturn c\n"
        ),
    ),
}
APART = {
    "row": (
        "input a: {dtype}[K]\ninput b: {dtype}[K_1, N]\nassert K == K_1\ntensor c: {dtype}[N]\n",
        "c[j] += a[k] * b[k, j]  for [j, k]: 0 <= j < N and 0 <= k < K\nreturn c\n",
    ),
    "first": (
        "input a: {dtype}[K]\ninput b: {dtype}[K_1, N]\nassert K == K_1\ntensor c: int64[N]\n",
        "c[j] <<= k  for [j, k]: 0 <= j < N and 0 <= k < K  if b[k, j] > a[k]\nreturn c\n",
    ),
    "triangle": (MATRICES, f"c[i, j] += a[i, k] * b[k, j]  {ALL} and k <= i\nreturn c\n"),
    "sums": (
        "input a: {dtype}[M, K]\ntensor c: {dtype}[M]\n",
        "c[i] += a[i, k]  for [i, k]: 0 <= i < M and 0 <= k < K\nreturn c\n",
    ),
    "exponentials": (MATRICES, f"c[i, j] += exp(a[i, k] * b[k, j])  {ALL}\nreturn c\n"),
    "checked": (
        MATRICES + "input at: int64[K_2]\nassert K == K_2\n",
        f"c[i, j] += a[i, k] * b[at[k], j]  {ALL}\nreturn c\n",
    ),
}
LONG = [(9, 3, 70), (2, 3, 34), (5, 66, 6), (4, 0, 3), (0, 5, 5), (6, 2, 0)]
SHAPES = [(4, 4, 4), (3, 9, 2), (5, 4, 7), (9, 13, 6), (1, 1, 1), (8, 0, 3), (0, 5, 5), (6, 2, 0)]


def program(name: str, dtype: str = "float64") -> Program:
    inputs, text = {**TOGETHER, **APART}[name]
    return parse(inputs.format(dtype=dtype) + text)


def arrays_of(made: Program, sizes: dict[str, int]) -> list[np.ndarray]:
    found = []
    for tensor in made.inputs:
        shape = [sizes[getattr(extent, "name", "")] for extent in tensor.shape]
        whole = (
            RNG.integers(0, max(sizes["K"], 1), shape) if tensor.dtype == "int64" else RNG.integers(-8, 9, shape) / 4
        )
        found.append(np.asarray(whole, tensor.dtype))
    return found


def sizes_of(made: Program, shape: tuple[int, int, int]) -> dict[str, int]:
    m, k, n = shape
    known = {"M": m, "K": k, "N": n, "N_1": n, "K_2": k}
    same = next((True for tensor in made.inputs if len(tensor.shape) == 3), False)
    return {**known, "K_1": m if same else k}


def loops_of(kernel: Kernel) -> list[Loop]:
    return [node for nest in kernel.nests for node in walk_nodes(nest.body) if isinstance(node, Loop)]


def tiles(kernel: Kernel) -> int:
    return sum(loop.variable.startswith("tile") for loop in loops_of(kernel))


def lanes(kernel: Kernel) -> int:
    return sum(loop.kind == "vector" for loop in loops_of(kernel))


def loops(made: Program) -> Kernel:
    """The plain loops of sums of products, as they run for few rows."""
    return lower(made, optimize="-panels -padding")


def in_lanes(kernel: Kernel) -> Kernel:
    return in_register_tiles(kernel, {buffer.name for buffer in kernel.buffers})


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", [*TOGETHER, *APART])
@pytest.mark.parametrize("tiled", [in_register_tiles, in_lanes])
def test_what_comes_out(tiled: Callable[[Kernel], Kernel], name: str, dtype: str) -> None:
    made = program(name, dtype)
    kernel = tiled(loops(made))
    for shape in SHAPES if tiled is in_register_tiles or lanes(kernel) == 0 else LONG:
        if name == "weighted" and shape[0] == 0:
            continue
        arrays = arrays_of(made, sizes_of(made, shape))
        wanted = interpret(made, arrays).outputs
        for found, want in zip(execute(kernel, arrays, shuffled).outputs, wanted, strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-4 if dtype == "float32" else 1e-10)


@pytest.mark.parametrize("name", TOGETHER)
def test_rows_that_read_the_same_are_together(name: str) -> None:
    assert tiles(in_register_tiles(loops(program(name)))) > 0


@pytest.mark.parametrize("name", APART)
def test_others_are_not(name: str) -> None:
    assert tiles(in_register_tiles(loops(program(name)))) == 0


@pytest.mark.parametrize("name", ["product", "transposed", "vector", "row"])
def test_each_term_is_computed_once(name: str) -> None:
    made = program(name)
    for shape in [(9, 13, 6), (4, 8, 4)]:
        sizes = bind_sizes(made, [array.shape for array in arrays_of(made, sizes_of(made, shape))])
        kernel = loops(made)
        points = executed_points(kernel, sizes)
        assert executed_points(in_register_tiles(kernel), sizes) == points
        # There the sum of each cell is stored beside its terms.
        stored = executed_points(in_lanes(kernel), sizes) - points
        assert 0 <= stored <= shape[0] * shape[2]


@pytest.mark.parametrize("name", ["product", "difference", "layer", "two", "row"])
def test_cells_side_by_side_are_lanes(name: str) -> None:
    assert lanes(in_lanes(loops(program(name)))) > 0


@pytest.mark.parametrize("name", ["shortest", "transposed", "masked", "exponentials", "first", "checked"])
def test_other_cells_are_not(name: str) -> None:
    assert lanes(in_lanes(loops(program(name)))) == 0
    assert lanes(in_register_tiles(loops(program("product")))) == 0
    # What is computed with is not what memory holds.
    assert lanes(in_lanes(loops(program("product", "float16")))) == 0


def test_the_bounds_of_a_round_are_those_of_its_tiles() -> None:
    @cd
    def triangle(A: real[N, K], B: real[K, M], C: real[N, M]):
        for k in tc.loop(N):
            part = A[k:] @ B
            C[i + k, j] += part[i, j]

    A, B = RNG.normal(size=(70, 9)), RNG.normal(size=(9, 5))
    found = np.zeros((70, 5))
    triangle(A, B, found)
    np.testing.assert_allclose(found, np.arange(1, 71)[:, None] * (A @ B), rtol=1e-10)
    parts = str(triangle.explain("python", A, B, found)).split("def ")
    bounds = next(part for part in parts if part.startswith("bounds_of_nest"))
    assert "[1] = 0" in bounds
    assert "//" in bounds or "floor_div" in bounds


def test_bits_do_not_depend_on_threads() -> None:
    @op
    def both(a, b, d):
        return a @ b, a @ d.T, a @ d[0]

    a, b, d = RNG.normal(size=(203, 91)), RNG.normal(size=(91, 77)), RNG.normal(size=(61, 91))
    results = []
    for threads in (1, 2, 3, 5):
        with tc.config(threads=threads):
            results.append(both(a, b, d))
    for found, want in zip(results[0], (a @ b, a @ d.T, a @ d[0]), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-10)
    for result in results[1:]:
        for found, first in zip(result, results[0], strict=True):
            np.testing.assert_array_equal(found, first)
