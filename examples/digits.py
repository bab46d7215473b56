"""A small convolutional network reads scikit-learn's handwritten digits: five splits, more than 98 % right on average.

    python examples/digits.py

Two layers of convolution and pooling in index notation, and a dense layer that finds its sizes from what it is applied
to. A training step is one compiled function: it gathers a minibatch of shuffled rows, runs forward and backward, and
updates all parameters. It is compiled once, and trains on all five splits.
"""

import math
import time
from types import SimpleNamespace

import numpy as np
from rich.progress import track
from sklearn.datasets import load_digits

import tcdsl as tc
from tcdsl import op

BATCH = 32


def split(seed):
    """The 1,797 images of 8 x 8 pixels and their labels, shuffled; a fifth is held out."""
    source = load_digits()
    images = source.images.astype(np.float32)[..., None]
    held_out, kept = np.split(np.random.default_rng(seed).permutation(len(images)), [len(images) // 5])
    images = (images - images[kept].mean()) / images[kept].std()
    return (images[kept], source.target[kept]), (images[held_out], source.target[held_out])


def scaled(generator, sizes):
    """First values of weights whose last axis alone is not summed over: the more cells are summed, the smaller."""
    bound = 1 / math.sqrt(math.prod(sizes[:-1]))
    return generator.uniform(-bound, bound, sizes)


@op
def convolution(x, *, label, channels, size=3):
    N, H, W, D = x.shape
    K = param("K", o=(size, size, D, channels), init=scaled)
    Y: real[N, H, W, channels]  # as large as x: cells beyond its border count as 0
    Y[n, i, j, c] += x[n, i + k - size // 2, j + l - size // 2, d] * K[k, l, d, c]
    return relu(Y + "b"[channels])


@op
def pool(x):
    Y[n, i, j, c] = max(x[n, 2 * i + k, 2 * j + l, c] for k in range(2) for l in range(2))
    return Y


@op
def network(x, *, widths, classes):
    for depth, width in enumerate(widths):
        x = pool(convolution(x, label=f"L{depth + 1}", channels=width))
    return "w" @ x + "b"[classes]


@op
def cross_entropy(scores, labels):
    top[n] = max(scores[n, c])  # without it `exp` could overflow
    mass[n] = sum(exp(scores[n, c] - top[n]))
    loss[()] = mean(log(mass[n]) + top[n] - scores[n, labels[n]])
    return loss


@op
def accuracy(scores, labels):
    best[n] = argmax(scores[n, c])
    share[()] = mean(best[n] == labels[n])
    return share


def build(training, held_out, widths=(16, 32), learning_rate=0.03):
    """The graph of a training step and of the accuracy, on data that later splits replace."""
    count = len(training[0]) // BATCH
    data = [tc.tensor(array, batch=1) for array in (*training, *held_out)]
    images, labels, test_images, test_labels = data
    # Each row of `order` is a minibatch: the rows of the images that take part.
    order = tc.tensor(np.arange(count * BATCH).reshape(count, BATCH), batch=2, label="order")
    rows = order[tc.static_index("batch_n", count)]

    model = network(widths=widths, classes=10)
    loss = cross_entropy(model(images[rows]), labels[rows])
    step = tc.compile(
        tc.train.grad_update(loss),
        tc.train.sgd_update(loss, learning_rate=learning_rate, momentum=0.9, weight_decay=3e-3),
    )
    score = accuracy(model(test_images), test_labels)
    first = {label: np.array(parameter.value) for label, parameter in model.parameters.items()}
    return SimpleNamespace(
        data=data, order=order, step=step, accuracy=score, parameters=model.parameters, first_values=first
    )


def train(built, training, held_out, epochs, generator, learning_rate=0.03):
    """Start anew on these images; returns the share of those held out that the network reads right."""
    for tensor, array in zip(built.data, (*training, *held_out), strict=True):
        tensor.value = array
    for label, parameter in built.parameters.items():
        parameter.value = built.first_values[label]
    for momentum in built.step.state.values():
        momentum.value = 0.0

    count, size = built.order.shape
    for epoch in range(epochs):
        # What does not fill a minibatch has its turn in another epoch.
        built.order.value = generator.permutation(len(training[0]))[: count * size].reshape(count, size)
        for batch_n in range(count):
            done = (epoch * count + batch_n) / (epochs * count)
            built.step.run(batch_n=batch_n, learning_rate=learning_rate * (1 + math.cos(math.pi * done)) / 2)
    return built.accuracy.item()


def main(splits=5, epochs=60):
    started = time.perf_counter()
    built = build(*split(0))
    built.step.compile()
    print(f"compiled in {time.perf_counter() - started:.1f} s")
    reached = []
    for seed in track(range(splits), "training"):
        reached.append(train(built, *split(seed), epochs, np.random.default_rng(seed)))
        print(f"split {seed}: {reached[-1]:.2%} of the images held out are read right")
    print(f"mean: {np.mean(reached):.2%}")
    return {"accuracies": reached, "built": built}


if __name__ == "__main__":
    main()
