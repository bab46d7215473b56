"""Phases: adjoints of strided convolutions and of pooling, without divisions in inner loops, each cell written once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op
from tcdsl.autodiff import adjoint
from tcdsl.ir.expressions import Apply, walk
from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.program import Program
from tcdsl.ir.text.parser import parse_program
from tcdsl.lowering.loopir.loops import Branch, Kernel, Loop, Node
from tcdsl.lowering.loopir.traversal import expressions, walk_nodes
from tcdsl.lowering.lower import lower
from tests.lowering.loop_interpreter import execute

RNG = np.random.default_rng(3)

Shapes = Callable[[int, int], list[tuple[int, ...]]]

# The shape of y, its statement, and the shapes of x and of the weights, if there are any. Windows are constant.
PROGRAMS: dict[str, tuple[str, str, Shapes]] = {
    "line": (
        "max((N - 1) // 2, 0)",
        "y[i] += x[2 * i + k] * w[k]  for [i, k]: 0 <= i and 2 * i + 2 < N and 0 <= k < 3 and P = 3",
        lambda n, _: [(n,), (3,)],
    ),
    "line_by_three": (
        "max((N - 2) // 3, 0)",
        "y[i] += x[3 * i + k] * w[k]  for [i, k]: 0 <= i and 3 * i + 4 < N and 0 <= k < 5 and P = 5",
        lambda n, _: [(n,), (5,)],
    ),
    "gaps": (
        "max((N + 2) // 4, 0)",
        "y[i] += x[4 * i + k] * w[k]  for [i, k]: 0 <= i and 4 * i + 1 < N and 0 <= k < 2 and P = 2",
        lambda n, _: [(n,), (2,)],
    ),
    "padded": (
        "(N + 1) // 2",
        (
            "y[i] += x[2 * i + k - 1] * w[k]"
            "  for [i, k]: 0 <= i and 2 * i < N and 0 <= k < 3 and 1 <= 2 * i + k <= N and P = 3"
        ),
        lambda n, _: [(n,), (3,)],
    ),
    "plane": (
        "max((N - 1) // 2, 0), max((M - 1) // 2, 0)",
        (
            "y[i, j] += x[2 * i + k, 2 * j + l] * w[k, l]  for [i, j, k, l]: 0 <= i and 2 * i + 2 < N and 0 <= j"
            " and 2 * j + 2 < M and 0 <= k < 3 and 0 <= l < 3 and P = 3 and Q = 3"
        ),
        lambda n, m: [(n, m), (3, 3)],
    ),
    "channels": (
        "P, max((M - 1) // 2, 0)",
        (
            "y[c, i] += x[n, 2 * i + k] * w[c, k, n]  for [c, i, n, k]: 0 <= c < P and 0 <= i and 2 * i + 2 < M"
            " and 0 <= n < N and n < R and 0 <= k < 3 and Q = 3"
        ),
        lambda n, m: [(n, m), (2, 3, n)],
    ),
    "sums_of_blocks": (
        "N // 2, M // 3",
        (
            "y[i, j] += x[2 * i + k, 3 * j + l]  for [i, j, k, l]: 0 <= i and 2 * i + 1 < N and 0 <= j"
            " and 3 * j + 2 < M and 0 <= k < 2 and 0 <= l < 3"
        ),
        lambda n, m: [(n, m)],
    ),
    "every_second_row": (
        "(N + 1) // 2, M",
        "y[i, j] = exp(x[2 * i, j])  for [i, j]: 0 <= 2 * i < N and 0 <= j < M",
        lambda n, m: [(n, m)],
    ),
    "every_second_column": (
        "N, M // 2",
        "y[i, j] = exp(x[i, 2 * j + 1])  for [i, j]: 0 <= i < N and 0 <= j and 2 * j + 1 < M",
        lambda n, m: [(n, m)],
    ),
}
SIZES = [(12, 13), (5, 5), (4, 7), (3, 2), (1, 3), (1, 1), (0, 4), (6, 0)]


def primal(name: str) -> Program:
    shape, statement, shapes = PROGRAMS[name]
    ranks = [len(each) for each in shapes(1, 1)]
    lines = [f"input x: float64[{', '.join('NM'[: ranks[0]])}]"]
    if len(ranks) > 1:
        lines.append(f"input w: float64[{', '.join('PQR'[: ranks[1]])}]")
    return parse_program("\n".join(["program p", *lines, f"tensor y: float64[{shape}]", statement, "return y", ""]))


def arrays(name: str, n: int, m: int) -> list[np.ndarray]:
    return [RNG.normal(size=shape) for shape in PROGRAMS[name][2](n, m)]


def innermost(made: Kernel) -> Iterator[Loop]:
    for nest in made.nests:
        for node in walk_nodes(nest.body):
            if isinstance(node, Loop) and not any(isinstance(inner, Loop) for inner in walk_nodes(node.body)):
                yield node


def divides(nodes: tuple[Node, ...]) -> bool:
    parts = (part for expr in expressions(nodes) for part in walk(expr))
    return any(isinstance(part, Apply) and part.primitive in ("floor_div", "mod") for part in parts)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_inner_loop_divides_and_no_cell_is_written_twice(name: str) -> None:
    # Tiles, which need no phases of their own, are left out.
    made = lower(adjoint(primal(name), ["x"], keep_outputs=False), optimize="-panels -padding")
    for loop in innermost(made):
        assert not divides(loop.body)
    n, m = 41, 37
    given = arrays(name, n, m)
    y = execute(lower(primal(name)), given).outputs[0]
    done = execute(made, [*given, RNG.normal(size=y.shape)])
    cells = done.outputs[0].size
    # With channels a row accumulates in memory.
    terms = 2 if name == "channels" else 0
    assert done.writes[made.outputs[0]] == cells + terms * 3 * n * ((m - 1) // 2)
    assert sum(count for buffer, count in done.writes.items() if buffer != made.outputs[0]) == 0


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values(name: str, sizes: tuple[int, int]) -> None:
    derived = adjoint(primal(name), ["x"], keep_outputs=False)
    given = arrays(name, *sizes)
    y = execute(lower(primal(name)), given).outputs[0]
    seed = RNG.normal(size=y.shape)
    expected = interpret(derived, [*given, seed]).outputs[0]
    for optimize in (True, False):
        found = execute(lower(derived, optimize=optimize), [*given, seed]).outputs[0]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", PROGRAMS)
def test_rows_that_are_clean_have_no_tests(name: str) -> None:
    made = lower(adjoint(primal(name), ["x"], keep_outputs=False))
    clean = [loop for loop in innermost(made) if not any(isinstance(node, Branch) for node in walk_nodes(loop.body))]
    assert clean


@op
def pooled(I):
    O[n, x, y] = max(I[n, 2 * x + p, 2 * y + q] for p in range(3) for q in range(3))
    A[n, x, y] = sum(I[n, 2 * x + p, 2 * y + q] for p in range(2) for q in range(2)) / 4
    return O, A


@op
def convolved(I, K):
    O[n, c, x, y] += I[n, d, 2 * x + p, 2 * y + q] * K[c, d, p, q], p < 3, q < 3
    return O


def test_pooling_against_finite_differences() -> None:
    for shape in ((2, 7, 8), (1, 3, 3), (1, 4, 5)):
        I = RNG.permutation(int(np.prod(shape))).reshape(shape) / 7.0
        tc.check_grads(pooled, (I,))


def test_compiled_convolution_has_the_same_bits_for_any_number_of_threads() -> None:
    I, K = RNG.normal(size=(4, 3, 129, 130)), RNG.normal(size=(5, 3, 3, 3))
    seed = RNG.normal(size=(4, 5, 64, 64))
    results = []
    for threads in (1, 2):
        with tc.config(threads=threads):
            _, pull = tc.vjp(convolved, I, K)
            results.append(pull(seed))
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)
    # <seed | O> is linear in I and in K.
    inner = np.vdot(seed, convolved(I, K))
    np.testing.assert_allclose([np.vdot(results[0][0], I), np.vdot(results[0][1], K)], inner, rtol=1e-10)
