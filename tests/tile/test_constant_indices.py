"""Cells at constant indices count only in range in a statement; everywhere else they are NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op, tile
from tcdsl.tile import *

V = np.array([1.0, 2.0])


def below_the_first(I):
    i = TensorIndex()
    O = TensorOutput(2)
    O[i] = I[-1]
    return O


def beyond_the_last(I):
    i = TensorIndex()
    O = TensorOutput(2)
    O[i] = I[3]
    return O


def below_by_a_size(I):
    N = TensorDim()
    i = TensorIndex()
    I.bind_dims(N)
    O = TensorOutput(N)
    O[i] += I[i] * I[N - 3]
    return O


def first_of_a_product(I):
    i = TensorIndex()
    O = TensorOutput(2)
    O[i] += I[-1] * I[i]
    return O


def largest_of_none(I):
    O = TensorOutput()
    O[()] >= I[2]
    return O


def of_two_axes(I):
    M = reshape(I, (1, 2))
    O = TensorOutput(2)
    O[0] = M[0, 1] + M[0, -1]
    return O


def in_range(I):
    i = TensorIndex()
    O = TensorOutput(2)
    O[i] += cond(I[0], 1.0, I[i] + (I[1] * 2))
    return O


def times_the_first(I):
    i = TensorIndex()
    O = TensorOutput(2)
    O[i] += I[0] * I[i] + 3 * I[1]
    return O


def in_a_list_of_outputs(I):
    outputs = [TensorOutput(2) for _ in range(2)]
    i = TensorIndex()
    for k, _ in enumerate(outputs):
        outputs[k][i] = I[k - 1]
    return outputs[0] + 10 * outputs[1]


def bound_to_a_name(I):
    i = TensorIndex()
    last = I[-1]
    O = TensorOutput(2)
    O[i] = last * I[i]
    return O


def of_whole_tensors(I):
    i = TensorIndex()
    O = TensorOutput(2)
    O[i] += I[i] * (I[-1] - 1)
    return O * I[-1]


CASES: tuple[tuple[Any, Any], ...] = (
    (below_the_first, [0, 0]),
    (beyond_the_last, [0, 0]),
    (below_by_a_size, [0, 0]),
    (first_of_a_product, [0, 0]),
    (largest_of_none, 0),
    (of_two_axes, [0, 0]),
    (in_range, [5, 6]),
    (times_the_first, [7, 8]),
    (in_a_list_of_outputs, [10, 10]),
    (bound_to_a_name, [2, 4]),
    (of_whole_tensors, [2, 4]),
)


@pytest.mark.parametrize(("function", "expected"), CASES, ids=[function.__name__ for function, _ in CASES])
def test_constant_indices(function: Any, expected: Any) -> None:
    np.testing.assert_array_equal(op(function)(V), expected)
    np.testing.assert_array_equal(np.asarray(function(tile.Tensor(V))), expected)


def test_without_cells() -> None:
    assert op(below_by_a_size)(np.ones(0)).shape == (0,)


def test_gradients() -> None:
    tc.check_grads(op(times_the_first), (np.array([1.0, 3.0]),))
    np.testing.assert_array_equal(tc.grad(lambda v: op(beyond_the_last)(v).sum())(V), [0, 0])


def test_numbers_of_the_call() -> None:
    @op
    def chosen(I, k):
        i = TensorIndex()
        O = TensorOutput(2)
        O[i] = I[k]
        return O

    for k, expected in ((-1, 0), (1, 2), (2, 0)):
        np.testing.assert_array_equal(chosen(V, k), [expected, expected])
