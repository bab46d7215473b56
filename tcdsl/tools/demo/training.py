"""Handwritten digits, the training loop, and a fair race between two networks.

scikit-learn has 1,797 digits; they are split, standardized, and dealt in minibatches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from tcdsl.tools.demo.networks import Network

__all__ = ["BATCH", "LEARNING_RATE", "Digits", "History", "Timing", "load", "minibatches", "race", "train"]

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Digits:
    """Images are float32 rows of 64 pixels, with mean 0 and deviation 1 over the training set; labels are int64."""

    train_images: FloatArray
    train_labels: IntArray
    test_images: FloatArray
    test_labels: IntArray


def load(seed: int) -> Digits:
    """Shuffle the images by ``seed`` and hold a fifth of them out."""
    from sklearn.datasets import load_digits

    source: Any = load_digits()
    images = source.data.astype(np.float32)
    labels = source.target.astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(images))
    held_out, kept = np.split(order, [len(images) // 5])
    # One mean and one deviation for all pixels: those at the rim are constant, and would be divided by zero.
    mean, deviation = images[kept].mean(), images[kept].std()
    images = (images - mean) / deviation
    return Digits(images[kept], labels[kept], images[held_out], labels[held_out])


def minibatches(
    images: FloatArray, labels: IntArray, size: int, generator: np.random.Generator
) -> Iterator[tuple[FloatArray, IntArray]]:
    """All images once, in a new order, ``size`` at a time; the last batch holds what is left."""
    order = generator.permutation(len(images))
    for start in range(0, len(order), size):
        chosen = order[start : start + size]
        yield images[chosen], labels[chosen]


BATCH = 32
LEARNING_RATE = 0.1


@dataclass(slots=True)
class History:
    """What happened in each epoch: the mean loss, and the accuracy on the held-out images."""

    losses: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)


def learning_rate_at(done: float) -> float:
    """Half a cosine from `LEARNING_RATE` to 0, ``done`` being the part behind us (Loshchilov, Hutter, 2017)."""
    return LEARNING_RATE * 0.5 * (1 + math.cos(math.pi * done))


def accuracy(network: Network, digits: Digits) -> float:
    """The part of the held-out images that ``network`` names right."""
    return float(np.mean(network.predict(digits.test_images) == digits.test_labels))


def train(
    network: Network,
    digits: Digits,
    epochs: int,
    seed: int,
    progress: Callable[[float, float, float], None] = lambda done, loss, right: None,
) -> History:
    """Train ``network`` and return what happened.

    After each minibatch ``progress`` gets the part done, the loss, and the latest accuracy (NaN until there is one).
    """
    generator = np.random.default_rng(seed)
    history = History()
    batches = math.ceil(len(digits.train_labels) / BATCH)
    latest = math.nan
    for epoch in range(epochs):
        losses = []
        for number, batch in enumerate(minibatches(digits.train_images, digits.train_labels, BATCH, generator)):
            done = (epoch + number / batches) / epochs
            losses.append(network.step(*batch, learning_rate_at(done)))
            progress((epoch + (number + 1) / batches) / epochs, losses[-1], latest)
        latest = accuracy(network, digits)
        history.losses.append(float(np.mean(losses)))
        history.accuracies.append(latest)
        progress((epoch + 1) / epochs, history.losses[-1], latest)
    return history


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds per epoch."""

    median: float
    minimum: float


def race(networks: Sequence[Network], digits: Digits, rounds: int, seed: int) -> list[Timing]:
    """Time one epoch of each network in turn, ``rounds`` times after one that does not count, on equal minibatches."""
    seconds: list[list[float]] = [[] for _ in networks]
    for number in range(rounds + 1):
        for network, times in zip(networks, seconds, strict=True):
            generator = np.random.default_rng(seed + number)
            begin = time.perf_counter()
            for batch in minibatches(digits.train_images, digits.train_labels, BATCH, generator):
                network.step(*batch, LEARNING_RATE / 100)
            if number > 0:
                times.append(time.perf_counter() - begin)
    return [Timing(float(np.median(times)), min(times)) for times in seconds]
