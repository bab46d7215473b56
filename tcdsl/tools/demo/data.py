"""scikit-learn's 1,797 handwritten digits: split, standardized, and dealt in minibatches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Digits", "load", "minibatches"]

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
