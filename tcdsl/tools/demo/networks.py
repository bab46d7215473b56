"""The network twice, with one interface: as tcdsl programs, and as a careful NumPy programmer writes it."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

import tcdsl as tc
from tcdsl.tools.demo.index_notation import cross_entropy, predictions, update

__all__ = ["CompiledNetwork", "Network", "NumpyNetwork", "Parameters", "initial_parameters"]

FloatArray = npt.NDArray[np.float32]
IntArray = npt.NDArray[np.int64]
Parameters = list[FloatArray]  # W1 [64, 128], b1 [128], W2 [128, 10], b2 [10]

PIXELS, HIDDEN, CLASSES = 64, 128, 10
MOMENTUM, WEIGHT_DECAY = 0.9, 1e-4


def initial_parameters(seed: int) -> Parameters:
    """Normal weights scaled by fan-in (He et al., 2015), zero biases."""
    generator = np.random.default_rng(seed)

    def weights(inputs: int, outputs: int) -> FloatArray:
        scale = np.float32(np.sqrt(2 / inputs))
        return generator.standard_normal((inputs, outputs), dtype=np.float32) * scale

    W1, W2 = weights(PIXELS, HIDDEN), weights(HIDDEN, CLASSES)
    return [W1, np.zeros(HIDDEN, np.float32), W2, np.zeros(CLASSES, np.float32)]


class Network(Protocol):
    """What the training loop needs."""

    def step(self, images: FloatArray, labels: IntArray, learning_rate: float) -> float:
        """Improve the parameters on one minibatch; the loss before that."""

    def predict(self, images: FloatArray) -> IntArray:
        """The most likely class of each image."""


class CompiledNetwork:
    """The programs of `tcdsl.tools.demo.index_notation`, with gradients that tcdsl generates."""

    gradient: Any = staticmethod(tc.value_and_grad(cross_entropy, argnums=(0, 1, 2, 3)))

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = [parameter.copy() for parameter in parameters]
        self.velocities = [np.zeros_like(parameter) for parameter in parameters]

    def step(self, images: FloatArray, labels: IntArray, learning_rate: float) -> float:
        """One step of gradient descent."""
        loss, gradients = self.gradient(*self.parameters, images, labels)
        arrays = (*self.parameters, *gradients, *self.velocities)
        update(learning_rate, *arrays, momentum=MOMENTUM, weight_decay=WEIGHT_DECAY)
        return float(loss)

    def predict(self, images: FloatArray) -> IntArray:
        """The most likely class of each image."""
        W1, b1, W2, b2 = self.parameters
        classes: IntArray = predictions(W1, b1, W2, b2, images)
        return classes


class NumpyNetwork:
    """The same steps in NumPy, with the gradient derived by hand and temporaries reused."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = [parameter.copy() for parameter in parameters]
        self.velocities = [np.zeros_like(parameter) for parameter in parameters]

    def step(self, images: FloatArray, labels: IntArray, learning_rate: float) -> float:
        """One step of gradient descent."""
        W1, b1, W2, b2 = self.parameters
        count = len(labels)
        rows = np.arange(count)
        hidden = images @ W1
        hidden += b1
        np.maximum(hidden, 0, out=hidden)
        scores = hidden @ W2
        scores += b2
        scores -= scores.max(axis=1, keepdims=True)
        right = scores[rows, labels]
        np.exp(scores, out=scores)
        mass = scores.sum(axis=1, keepdims=True)
        loss = np.mean(np.log(mass[:, 0]) - right)
        scores /= mass  # from here on, the derivative by the scores
        scores[rows, labels] -= 1
        scores /= count
        slope = scores @ W2.T
        slope *= hidden > 0
        gradients = [images.T @ slope, slope.sum(axis=0), hidden.T @ scores, scores.sum(axis=0)]
        for parameter, gradient, velocity in zip(self.parameters, gradients, self.velocities, strict=True):
            velocity *= MOMENTUM
            gradient += WEIGHT_DECAY * parameter
            velocity += gradient
            parameter -= learning_rate * velocity
        return float(loss)

    def predict(self, images: FloatArray) -> IntArray:
        """The most likely class of each image."""
        W1, b1, W2, b2 = self.parameters
        classes: IntArray = np.argmax(np.maximum(images @ W1 + b1, 0) @ W2 + b2, axis=1)
        return classes
