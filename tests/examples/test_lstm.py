"""The LSTM: scores and gradients beside NumPy, and names that obey the rules more often than those of pairs do."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def mean_loss(embedding, W, U, b, V, a, letters, following, known):
    h = c = np.zeros((letters.shape[1], U.shape[1]))
    total = 0.0
    for now, after, counts in zip(letters, following, known, strict=True):
        let_in, kept, let_out, new = (embedding[now] @ W[g] + h @ U[g] + b[g] for g in range(4))
        c = sigmoid(kept) * c + sigmoid(let_in) * np.tanh(new)
        h = sigmoid(let_out) * np.tanh(c)
        scores = h @ V + a
        likelihood = scores[np.arange(len(after)), after] - np.log(np.exp(scores).sum(axis=1))
        total -= counts @ likelihood
    return total / known.sum()


def test_the_loss_and_its_gradients(example):
    lstm = example("loops.lstm")
    generator = np.random.default_rng(0)
    letters, size, rounds, names = 5, 4, 6, 3
    parameters = [p + generator.normal(0, 0.1, p.shape) for p in lstm.start(letters, size, generator)]
    given = generator.integers(0, letters, (2, rounds, names))
    known = np.ones((rounds, names))
    known[4:, 1] = 0
    value, slopes = lstm.gradients(*parameters, *given, known)
    assert_allclose(value, mean_loss(*parameters, *given, known), rtol=1e-12)
    for k, slope in enumerate(slopes):
        direction = generator.normal(size=slope.shape)
        high, low = (
            mean_loss(*parameters[:k], parameters[k] + s * direction, *parameters[k + 1 :], *given, known)
            for s in (1e-6, -1e-6)
        )
        assert_allclose(np.sum(slope * direction), (high - low) / 2e-6, rtol=1e-6, err_msg=str(k))


def test_names_are_spelled(example):
    lstm, names = example("loops.lstm"), example("invent_names")
    letters, alphabet = lstm.spelled(["ab", "b"])
    assert (letters.T.tolist(), alphabet) == ([[0, 1, 2, 0], [0, 2, 0, 0]], ".ab")
    found = lstm.main(steps=150, size=32, count=200)
    assert np.mean(found["losses"][-20:]) < 2.1 < 2.9 < found["losses"][0]
    assert np.mean(list(map(names.follows_the_rules, found["samples"]))) > 0.75
