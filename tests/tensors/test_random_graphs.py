"""Random graphs against NumPy: values, shapes in rows, and gradients by differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcdsl as tc
from tests.tensors.interpreting import run, value
from tests.tensors.random_graphs import Graph, random_graph

STEP = 1e-6


def differences(graph: Graph, weights: np.ndarray) -> list[np.ndarray]:
    """The gradients of the weighted sum of the result by central differences."""
    arrays = [leaf.array.copy() for leaf in graph.leaves]
    found = []
    for array in arrays:
        gradient = np.zeros_like(array)
        for cell in np.ndindex(array.shape):
            middle = array[cell]
            sums = []
            for moved in (middle + STEP, middle - STEP):
                array[cell] = moved
                sums.append((graph.numpys(arrays).array * weights).sum())
            array[cell] = middle
            gradient[cell] = (sums[0] - sums[1]) / (2 * STEP)
        found.append(gradient)
    return found


def check(graph: Graph) -> None:
    leaves = graph.tensors()
    made, expected = graph.ours(leaves), graph.numpys([leaf.array for leaf in graph.leaves])
    ranks = made.row_ranks
    assert (ranks.batch, ranks.output, ranks.input) == expected.ranks, graph
    assert made.shape == expected.array.shape, graph
    np.testing.assert_allclose(value(made), expected.array, rtol=1e-9, atol=1e-12, err_msg=str(graph))
    weights = np.random.default_rng(1).uniform(-1, 1, expected.array.shape)
    weighted = made * tc.tensor(weights, batch=expected.ranks[0], input=expected.ranks[2])
    used = _used(graph)
    run(tc.train.grad_update(weighted.sum()))
    for k, (leaf, gradient) in enumerate(zip(leaves, differences(graph, weights), strict=True)):
        if k in used:
            scale = 1 + np.abs(gradient).max(initial=0)
            np.testing.assert_allclose(leaf.grad, gradient, rtol=1e-4, atol=1e-5 * scale, err_msg=f"{k} of\n{graph}")


def _used(graph: Graph) -> set[int]:
    used = {len(graph.leaves) + len(graph.steps) - 1}
    for k in reversed(range(len(graph.steps))):
        if k + len(graph.leaves) in used:
            used.update(graph.steps[k].sources)
    return used


@pytest.mark.parametrize("seed", range(60))
def test_graphs(seed: int) -> None:
    graph = random_graph(seed)
    if graph.steps:
        check(graph)


@given(st.integers(min_value=1000))
@settings(max_examples=40, deadline=None)
def test_any_graph(seed: int) -> None:
    graph = random_graph(seed)
    if graph.steps:
        check(graph)


def test_the_graphs_are_of_all_kinds() -> None:
    texts = [step.text for seed in range(300) for step in random_graph(seed).steps]
    for kind in ("@", "T", "stacked in row 0", "stacked in row 1", "stacked in row 2", "where", "exp"):
        assert kind in texts
    for start in ("sum", "mean", "max over", "prod", "[(", "[[", "|"):
        assert any(text.startswith(start) for text in texts), start
