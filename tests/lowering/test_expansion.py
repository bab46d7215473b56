"""Values of pairs of cells are computed where they are read, so that memory grows with the inputs only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcdsl as tc
from tcdsl import op


@op
def kernel_sum(x, z, w):
    y[i] += w[j] * exp(-((x[i] - z[j]) ** 2))
    return y


@op
def energy(x, m):
    U[()] += m[i] * m[j] / sqrt((x[i, 0] - x[j, 0]) ** 2 + (x[i, 1] - x[j, 1]) ** 2 + (x[i, 2] - x[j, 2]) ** 2 + 0.1)
    return U


@pytest.mark.parametrize(("function", "ranks"), [(kernel_sum, (1, 1, 1)), (energy, (2, 1))], ids=["kernel", "energy"])
def test_memory_of_adjoints_of_pairs_is_linear(function: Any, ranks: tuple[int, ...]) -> None:
    allocated = []
    for extent in (1000, 10_000):
        cost = function.cost(*(np.broadcast_to(0.0, (extent, 3)[:rank]) for rank in ranks))
        assert cost.adjoint is not None
        assert cost.within_bounds
        allocated.append(cost.adjoint.allocated)
    assert allocated[1] <= 11 * allocated[0]
    assert allocated[1] < 8 * 40 * 10_000


def test_gradients_of_pairs() -> None:
    random = np.random.default_rng(3)
    tc.check_grads(kernel_sum, (random.random(5), random.random(4), random.random(4)))
    tc.check_grads(energy, (random.random((4, 3)), random.random(4)))


def test_values_that_are_read_twice_over_a_third_index_are_stored() -> None:
    @op
    def transformed(x, z, V):
        K[i, j] = exp(x[i] - z[j])
        y[i, c] += K[i, j] * V[j, c]
        return y

    arrays = np.ones(4), np.ones(3), np.ones((3, 2))
    assert "temporary K" in transformed.explain("loops", *arrays)
    np.testing.assert_allclose(transformed(*arrays), 3)
