"""Which points count: integers in range, as constraints say; what cells hold that none writes; who may write twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, tile
from tcdsl.tile import *

V = np.array([-0.5, -1.5, -2.5])
W = np.array([0.25, -0.75, 1.25, 2.0, -3.0, 0.5])
M = np.arange(6.0).reshape(2, 3) / 4 - 0.9


def divided(V, W, M):
    i = TensorIndex()
    O = TensorOutput(6)
    O[i] = V[(i - 1) // 2]
    return O


def divided_by_less_than_zero(V, W, M):
    i = TensorIndex()
    O = TensorOutput(5)
    O[i] = V[(4 - i) // -2 + 2]
    return O


def divided_in_the_target(V, W, M):
    i = TensorIndex()
    O = TensorOutput(3)
    O[i // 2] += W[i]
    return O


def divided_in_a_constraint(V, W, M):
    i = TensorIndex()
    O = TensorOutput(6)
    O[i] += W[i]
    O.add_constraint((i + 1) // 3 < 9)
    return O


def bounded_together(V, W, M):
    x, y = TensorIndexes(2)
    O = TensorOutput(6)
    O[x + y] += V[x - y]
    return O


def negative_variables(V, W, M):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[i] += W[2 * i + j]
    O.add_constraint(j + 1 < 3)
    return O


def too_large(V, W, M):
    i, j = TensorIndexes(2)
    O = TensorOutput(5)
    O[j] += M[i, j]
    return O


def truncated(V, W, M):
    i, j = TensorIndexes(2)
    O = TensorOutput(2)
    O[j] += M[i, j]
    return O


def largest_of_nothing(V, W, M):
    i = TensorIndex()
    O = TensorOutput(7)
    O[2 * i] >= V[i]
    return O


def smallest_of_nothing(V, W, M):
    i = TensorIndex()
    O = TensorOutput(5)
    O[i + 1] <= V[i] * V[i]
    return O


def product_of_nothing(V, W, M):
    i, j = TensorIndexes(2)
    O = TensorOutput(5)
    O[j] *= M[i, j]
    return O


def default_of_a_sum(V, W, M):
    i = TensorIndex()
    O = TensorOutput(6)
    O[2 * i] += V[i]
    O.use_default(W)
    return O


def default_of_a_maximum(V, W, M):
    i = TensorIndex()
    O = TensorOutput(6)
    O[i + 2] >= V[i]
    O.use_default(W)
    return O


def default_that_nothing_needs(V, W, M):
    i = TensorIndex()
    O = TensorOutput(3)
    O[i] = W[i]
    O.use_default(V)
    return O


def last_row(V, W, M):
    I, J = TensorDims(2)
    j = TensorIndex()
    M.bind_dims(I, J)
    O = TensorOutput(J)
    O[j] += M[I - 1, j]
    return O


def fixed_out_of_range(V, W, M):
    I, J = TensorDims(2)
    j = TensorIndex()
    M.bind_dims(I, J)
    O = TensorOutput(J)
    O[j] += M[I, j] + M[-1, j]
    return O


def both_in_range(V, W, M):
    i, j = TensorIndexes(2)
    O = TensorOutput(6)
    O[i] += W[i] + V[i - j]
    O.add_constraint(j < 2)
    return O


def combined_by_equality(V, W, M):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[i] += V[i] == W[j]
    return O


def conditional(V, W, M):
    i, j = TensorIndexes(2)
    O = TensorOutput(3)
    O[i] += cond(V[i], V[j], W[i + j + 2])
    return O


def three_factors_and_a_number(V, W, M):
    i, j = TensorIndexes(2)
    O = TensorOutput(2)
    O[i] += 2 * M[i, j] * V[j] * W[i + j]
    return O


def sizes_at_work(V, W, M):
    N, K = TensorDims(2)
    i, j = TensorIndexes(2)
    M.bind_dims(N, K)
    O = TensorOutput(N * K + 1)
    O[K * i + j] >= M[i, j]
    O.add_constraint(j < K)
    return O


def once_although_collapsed(V, W, M):
    i, j = TensorIndexes(2)
    O = TensorOutput(2)
    O[i] = M[i, j]
    O.add_constraint(j - 1 < 1)
    return O


def _filled(size: int, cells: dict[int, float]) -> np.ndarray:
    return np.array([cells.get(k, 0.0) for k in range(size)])


CASES: tuple[tuple[Callable[..., Any], Any], ...] = (
    (divided, _filled(6, {1: V[0], 3: V[1], 5: V[2]})),
    (divided_by_less_than_zero, _filled(5, {0: V[0], 2: V[1], 4: V[2]})),
    (divided_in_the_target, W[::2]),
    (divided_in_a_constraint, _filled(6, {2: W[2], 5: W[5]})),
    (bounded_together, np.tile([V[0] + V[2], V[1]], 3)),
    (negative_variables, np.array([W[0] + W[1], W[1:4].sum(), W[3:6].sum()])),
    (too_large, np.append(M.sum(0), [0, 0])),
    (truncated, M.sum(0)[:2]),
    (largest_of_nothing, _filled(7, {0: V[0], 2: V[1], 4: V[2]})),
    (smallest_of_nothing, _filled(5, {1: V[0] ** 2, 2: V[1] ** 2, 3: V[2] ** 2})),
    (product_of_nothing, np.append(M.prod(0), [0, 0])),
    (default_of_a_sum, np.array([V[0], W[1], V[1], W[3], V[2], W[5]])),
    (default_of_a_maximum, np.array([*W[:2], *V, W[5]])),
    (default_that_nothing_needs, W[:3]),
    (last_row, M[1]),
    (fixed_out_of_range, np.zeros(3)),
    (
        both_in_range,
        np.array(
            [
                W[i] * n + s
                for i, (n, s) in enumerate([(1, V[0]), (2, V[0] + V[1]), (2, V[1] + V[2]), (1, V[2]), (0, 0), (0, 0)])
            ]
        ),
    ),
    (combined_by_equality, np.zeros(3)),
    (conditional, np.array([W[2], W[4], 0.0])),
    (three_factors_and_a_number, np.array([2 * (M[i] * V * W[i : i + 3]).sum() for i in range(2)])),
    (sizes_at_work, np.append(M.ravel(), 0.0)),
    (once_although_collapsed, M[:, 1]),
)


@op
def everything(V, W, M):
    return [function(V, W, M) for function, _ in CASES]


@pytest.fixture(scope="module")
def on_arrays() -> list[np.ndarray]:
    with tc.config(check="ir"):
        return everything(V, W, M)


@pytest.fixture(scope="module")
def on_tensors() -> list[Any]:
    return [function(*map(tile.Tensor, (V, W, M))) for function, _ in CASES]


@pytest.mark.parametrize("place", range(len(CASES)), ids=[function.__name__ for function, _ in CASES])
def test_points_that_count(place: int, on_arrays: list[np.ndarray], on_tensors: list[Any]) -> None:
    expected = CASES[place][1]
    np.testing.assert_allclose(on_arrays[place], expected, atol=1e-12)
    np.testing.assert_allclose(np.asarray(on_tensors[place]), expected, atol=1e-12)


def test_gradients() -> None:
    tc.check_grads(everything, (V, W, M))


def test_the_interpreter_agrees() -> None:
    for found, (_, expected) in zip(everything.interpret(V, W, M), CASES, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-12)


@op
def first_column(I):
    i, j = TensorIndexes(2)
    N, M = TensorDims(2)
    I.bind_dims(N, M)
    O = TensorOutput(N)
    O[i] = I[i, j]
    return O


def test_sizes_decide_at_the_call_whether_cells_are_written_twice() -> None:
    np.testing.assert_allclose(first_column(np.ones((3, 1))), np.ones(3))
    np.testing.assert_allclose(first_column(np.ones((0, 2))), np.ones(0))
    with pytest.raises(tc.ShapeError, match=r"`=` writes each cell once, but O\[i\] is the same for different points"):
        first_column(np.ones((3, 2)))
    tc.check_grads(first_column, (np.ones((3, 1)),))


@op
def padded(I):
    N = TensorDim()
    i = TensorIndex()
    I.bind_dims(N)
    O = TensorOutput(N + 2)
    O[i + 1] = I[i]
    return O


def test_one_program_serves_all_sizes() -> None:
    for size in (0, 1, 4):
        np.testing.assert_allclose(padded(np.ones(size)), np.pad(np.ones(size), 1))
    assert padded.cache_info().programs == 1
    assert "O[i + 1] = I[i]" in padded.explain("ir", np.ones(3))
