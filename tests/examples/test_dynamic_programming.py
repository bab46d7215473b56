"""Shortest paths and hidden Markov models, beside loops of Python over all there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose


def test_distances_are_those_of_python_and_the_gradient_is_the_way(example):
    shortest_paths = example("loops.shortest_paths")
    found = shortest_paths.main()
    expected = found["roads"].copy()
    for k in range(len(expected)):
        for i in range(len(expected)):
            for j in range(len(expected)):
                expected[i, j] = min(expected[i, j], expected[i, k] + expected[k, j])
    assert_allclose(found["distances"], expected, rtol=1e-14)
    way = found["way"]
    assert len(way) > 3
    assert sum(itertools.starmap(lambda a, b: found["roads"][a, b], itertools.pairwise(way))) == pytest.approx(
        expected[way[0], way[-1]]
    )
    # Other towns, the same program.
    assert_allclose(shortest_paths.distances(np.array([[0.0, 7.0], [2.0, 0.0]])), [[0.0, 7.0], [2.0, 0.0]])


def test_hidden_states_are_the_best_of_all_and_the_gradient_is_their_probability(example):
    hidden_markov = example("loops.hidden_markov")
    generator = np.random.default_rng(0)
    length, states = 5, 3
    emitted, first, step = (np.log(generator.random(shape)) for shape in ((length, states), states, (states, states)))
    weights = {}
    for path in itertools.product(range(states), repeat=length):
        steps = sum(step[a, b] for a, b in itertools.pairwise(path))
        weights[path] = first[path[0]] + steps + sum(emitted[t, s] for t, s in enumerate(path))
    total = np.log(np.sum(np.exp(list(weights.values()))))
    assert_allclose(hidden_markov.log_likelihood(emitted, first, step), total, rtol=1e-12)
    assert tuple(hidden_markov.viterbi(emitted, first, step)) == max(weights, key=weights.get)
    posterior = np.zeros((length, states))
    for path, weight in weights.items():
        posterior[np.arange(length), path] += np.exp(weight - total)
    assert_allclose(hidden_markov.posterior(emitted, first, step), posterior, rtol=1e-12)


def test_a_loaded_die_is_told(example):
    found = example("loops.hidden_markov").main()
    assert min(found["right"].values()) > 0.7
