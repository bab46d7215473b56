"""The demonstration's network: it learns, it agrees with NumPy step by step, and its gradient is right."""

from __future__ import annotations

import numpy as np
import pytest

import tcdsl as tc
from tcdsl.tools.demo.index_notation import cross_entropy, logits
from tcdsl.tools.demo.networks import CompiledNetwork, NumpyNetwork, initial_parameters
from tcdsl.tools.demo.training import accuracy, load, minibatches, race, train


def test_the_split_is_a_fifth_and_standardized() -> None:
    digits = load(seed=0)
    assert (len(digits.train_labels), len(digits.test_labels)) == (1438, 359)
    assert digits.train_images.dtype == np.float32
    assert abs(float(digits.train_images.mean())) < 1e-4
    assert float(digits.train_images.std()) == pytest.approx(1, abs=1e-4)
    assert not np.array_equal(load(seed=1).test_labels, digits.test_labels)


def test_minibatches_deal_every_image_once() -> None:
    images = np.arange(10, dtype=np.float32)[:, None]
    batches = list(minibatches(images, np.arange(10), 4, np.random.default_rng(0)))
    assert [len(labels) for _, labels in batches] == [4, 4, 2]
    assert sorted(np.concatenate([labels for _, labels in batches])) == list(range(10))
    assert all(np.array_equal(part[:, 0], labels) for part, labels in batches)


def test_five_splits_reach_96_percent() -> None:
    reached = []
    for seed in range(5):
        digits = load(seed)
        network = CompiledNetwork(initial_parameters(seed))
        train(network, digits, epochs=20, seed=seed)
        reached.append(accuracy(network, digits))
    assert np.mean(reached) >= 0.96, reached


def test_training_agrees_with_numpy() -> None:
    digits = load(seed=3)
    ours, theirs = CompiledNetwork(initial_parameters(3)), NumpyNetwork(initial_parameters(3))
    our_history = train(ours, digits, epochs=2, seed=3)
    their_history = train(theirs, digits, epochs=2, seed=3)
    assert our_history.losses == pytest.approx(their_history.losses, rel=1e-3)
    for mine, other in zip(ours.parameters, theirs.parameters, strict=True):
        np.testing.assert_allclose(mine, other, atol=2e-4)
    assert np.mean(ours.predict(digits.test_images) == theirs.predict(digits.test_images)) > 0.99


def test_the_loss_has_the_right_gradient() -> None:
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal(shape) for shape in ((5, 4), (4,), (4, 3), (3,), (6, 5))]
    labels = np.array([0, 1, 2, 2, 1, 0])
    tc.check_grads(lambda *parameters: cross_entropy(*parameters, arguments[4], labels), tuple(arguments[:4]), order=1)


def test_the_loss_survives_large_scores() -> None:
    scores = np.array([[1000.0, 0.0], [0.0, -1000.0]])
    identity, zeros = np.eye(2), np.zeros(2)
    # relu(x @ I) @ I: the negative score becomes 0, the large one stays.
    loss = cross_entropy(identity, zeros, identity, zeros, scores, np.array([0, 1]))
    np.testing.assert_allclose(loss, np.log(2) / 2)


def test_logits_are_those_of_numpy() -> None:
    generator = np.random.default_rng(1)
    W1, b1, W2, b2, images = (generator.standard_normal(s) for s in ((5, 4), (4,), (4, 3), (3,), (6, 5)))
    np.testing.assert_allclose(logits(W1, b1, W2, b2, images), np.maximum(images @ W1 + b1, 0) @ W2 + b2)


def test_a_schedule_and_a_short_last_batch_compile_nothing_new() -> None:
    digits = load(seed=0)
    network = CompiledNetwork(initial_parameters(0))
    network.step(digits.train_images[:32], digits.train_labels[:32], 0.1)
    before = network.gradient.cache_info()
    network.step(digits.train_images[:30], digits.train_labels[:30], 0.05)
    after = network.gradient.cache_info()
    assert after.misses == before.misses
    assert after.hits > before.hits


def test_the_race_times_both() -> None:
    digits = load(seed=0)
    networks = [CompiledNetwork(initial_parameters(0)), NumpyNetwork(initial_parameters(0))]
    timings = race(networks, digits, rounds=2, seed=0)
    assert len(timings) == 2
    assert all(0 < timing.minimum <= timing.median for timing in timings)
