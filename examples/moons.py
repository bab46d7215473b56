"""Two half moons, told apart by a network of three layers with a hinge loss.

    python examples/moons.py                 # trains, and draws the decision boundary to moons.png

The network is built of layers that declare their parameters where they use them: `"w" @ x` finds the sizes of `w` from
`x` and from the bias. A training step (a minibatch chosen by its number, forward pass, backward pass, and an update of
every parameter) is one compiled function.
"""

import argparse
from pathlib import Path

import numpy as np
from rich.progress import track

import tcdsl as tc
from tcdsl import cd, op

BATCH = 20


def half_moons(count, noise, generator):
    """Points of the plane, `count` of each class, and their classes 1 and -1, shuffled."""
    angle = generator.uniform(0, np.pi, (2, count))
    upper = np.stack([np.cos(angle[0]), np.sin(angle[0])], axis=1)
    lower = np.stack([1 - np.cos(angle[1]), 0.5 - np.sin(angle[1])], axis=1)
    points = np.concatenate([upper, lower]) + generator.normal(0, noise, (2 * count, 2))
    classes = np.repeat([1.0, -1.0], count)
    order = generator.permutation(2 * count)
    return points[order], classes[order]


@op
def mlp_layer(x, *, label, hid_dim):
    return relu("w" @ x + "b"[hid_dim])


@op
def mlp(x, *, hid_dims):
    for depth, hid_dim in enumerate(hid_dims):
        x = mlp_layer(x, label=f"L{depth + 1}", hid_dim=hid_dim)
    return "w" @ x + "b"[1]


@op
def hinge_loss(scores, classes):
    margins = relu(1 - classes * scores)
    return margins.mean()


@cd
def sgd(p, *, learning_rate, weight_decay=1e-4):
    p -= learning_rate * (p.grad + weight_decay * p)


def train(model, points, classes, epochs, learning_rate=0.1):
    """Train in place; returns the mean loss of every epoch."""
    batches = len(points) // BATCH
    batch_n = tc.static_index("batch_n", batches)
    # Two batch axes: which minibatch, and which point of it. `batch_n` picks one of the first.
    x = tc.tensor(points.reshape(batches, BATCH, 2), batch=2, label="points")
    y = tc.tensor(classes.reshape(batches, BATCH, 1), batch=2, label="classes")
    loss = hinge_loss(model(x[batch_n]), y[batch_n])
    step = tc.compile(tc.train.grad_update(loss), tc.train.update(loss, sgd, learning_rate=learning_rate))

    losses = []
    for epoch in track(range(epochs), description="training"):
        total = 0.0
        for n in range(batches):
            done = (epoch * batches + n) / (epochs * batches)
            step.run(batch_n=n, learning_rate=learning_rate * (1 - done))
            total += loss.item()
        losses.append(total / batches)
    return losses


def draw(model, points, classes, path):
    """Draw the points, and on which side of the boundary the model sees each point of the plane."""
    from matplotlib.figure import Figure

    left, right = points.min(axis=0) - 0.3, points.max(axis=0) + 0.3
    columns, rows = np.meshgrid(np.linspace(left[0], right[0], 200), np.linspace(left[1], right[1], 150))
    scores = model(tc.tensor(np.stack([columns, rows], axis=-1), batch=2)).value[..., 0]

    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    axes.contourf(columns, rows, scores.clip(-1.5, 1.5), levels=np.linspace(-1.5, 1.5, 13), cmap="RdBu", alpha=0.6)
    axes.contour(columns, rows, scores, levels=[0], colors="black")
    for number, colour in ((1, "tab:blue"), (-1, "tab:red")):
        axes.scatter(*points[classes == number].T, s=14, c=colour, edgecolors="white", linewidths=0.5)
    axes.set(title="Half moons and the boundary between them", aspect="equal", xlabel="x", ylabel="y")
    figure.savefig(path, dpi=120)


def main(epochs=50, output="moons.png"):
    points, classes = half_moons(count=200, noise=0.1, generator=np.random.default_rng(1))
    tc.seed(1)
    model = mlp(hid_dims=(16, 16))
    losses = train(model, points, classes, epochs)
    scores = model(tc.tensor(points, batch=1)).value[:, 0]
    accuracy = float((np.sign(scores) == classes).mean())
    print(f"loss of the first epoch {losses[0]:.3f}, of the last {losses[-1]:.4f}, accuracy {accuracy:.1%}")
    draw(model, points, classes, output)
    print(f"the boundary is drawn in {Path(output).resolve()}")
    return {"losses": losses, "accuracy": accuracy, "parameters": list(model.parameters)}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epochs", type=int, default=50)
    parser.add_argument("--output", default="moons.png", help="where to draw the decision boundary")
    main(**vars(parser.parse_args()))
