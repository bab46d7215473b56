"""Results of specs that inference finds larger than their operands say: other cells are neutral, nothing stretches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import tcdsl as tc
from tcdsl import cd
from tests.tensors.interpreting import run, value

X = np.array([1.0, 2.0, 3.0])

# A spec, an accumulator, an expression that is there for its constraints, and the indices at which X stands.
GROWN: list[tuple[str, str, Callable[[Any], Any], tuple[int, ...], Any]] = [
    ("i => i0", "add", lambda s: tc.einsum("i2 => i", s), (3, 3), np.s_[:, 0]),
    ("i => i1", "max", lambda s: tc.einsum("i4 => i", s), (3, 5), np.s_[:, 1]),
    ("i => 0i", "prod", lambda s: tc.einsum("2i => i", s), (3, 3), np.s_[0, :]),
    ("i => 2*i", "add", lambda s: tc.einsum("7 =>", s), (8,), np.s_[:6:2]),
    ("i => 2*i + 1", "min", lambda s: tc.einsum("i; i => i", s, np.ones(9)), (9,), np.s_[1:6:2]),
    ("i => i, i + 1", "add", lambda s: tc.einsum("i, 5 => i", s), (3, 6), (range(3), range(1, 4))),
    ("i => i_", "add", lambda s: tc.einsum("i2 => i", s), (3, 3), (slice(None), [0, 1, 2])),
    ("...|i => ...|2 -> i", "add", lambda s: tc.einsum("3 -> o => o", s), (3, 4), np.s_[:, 2]),
]
NEUTRAL = {"add": 0.0, "prod": 1.0, "max": -np.inf, "min": np.inf}


@pytest.mark.parametrize(("spec", "accumulate", "constraint", "sizes", "places"), GROWN, ids=[row[0] for row in GROWN])
def test_cells_that_nothing_writes_are_neutral(
    spec: str, accumulate: str, constraint: Callable[[Any], Any], sizes: tuple[int, ...], places: Any
) -> None:
    s = tc.einsum(spec, tc.tensor(X), accumulate=accumulate)
    doubled = s * 2
    with tc.constraints_only():
        constraint(s)
    expected = np.full(sizes, NEUTRAL[accumulate])
    expected[places] = X[:, None] if spec == "i => i_" else X
    assert_allclose(value(s), expected)
    # Another consumer, that was there before.
    assert_allclose(value(doubled), expected * 2)
    assert s.shape == doubled.shape == sizes


def test_gradients_of_results_that_have_grown() -> None:
    matrix = np.arange(12.0).reshape(3, 4)
    x, w = tc.tensor(X, grad=True), tc.tensor(matrix, input=1)
    y = w @ tc.einsum("ij => j", tc.einsum("i => i1", x))
    run(tc.train.grad_update((y * y).sum()))
    assert_allclose(value(y), matrix[:, 1] * X.sum())
    assert_allclose(x.grad, np.full(3, 2 * matrix[:, 1] @ matrix[:, 1] * X.sum()))


@cd
def moved(v, v1, *, projections):
    v += v1


def test_a_primitive_of_ones_own_fills_the_larger_result() -> None:
    place = tc.primitive("place", moved, logic="i => 2*i")
    s = place(tc.tensor(X))
    with tc.constraints_only():
        tc.einsum("6 =>", s)
    assert_allclose(value(s), [1, 0, 2, 0, 3, 0, 0])
