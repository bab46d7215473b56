"""What lies under the ground: a field of wave speeds, from what receivers hear, by gradient descent.

    python examples/loops/wave.py                # and draws both fields to wave.png

Shots on one side of a field send waves through it, and receivers on the other side write down what arrives. The misfit
between what was heard and what a guessed field gives is differentiated through all time steps: one loop, and its
gradient the same loop backwards. This is full waveform inversion (Tarantola, 1984).
"""

import argparse
from pathlib import Path

import numpy as np

import tcdsl as tc
from tcdsl import op


def laplace(u, s, i, j):
    """Of wave s; outside of the field there is nothing."""
    beside = at(u, s, i - 1, j) + at(u, s, i + 1, j) + at(u, s, i, j - 1) + at(u, s, i, j + 1)
    return beside - 4 * u[s, i, j]


def at(u, s, i, j):
    return get(u[s, i, j], 0.0)


@op
def seismograms(speed: "real[H, W]", pulse: "real[T]", rows: "int64[S]"):
    """What the last column hears; shots in the first column, in each of the rows, are one wave each."""
    before: real[S, H, W]
    now: real[S, H, W]
    heard: real[T, S, H]
    for t in range(T):
        after[s, i, j] = 2 * now[s, i, j] - before[s, i, j] + speed[i, j] ** 2 * laplace(now, s, i, j)
        after[s, rows[s], 0] += pulse[t]
        heard[t, s, i] = after[s, i, W - 1]
        before, now = now, after
    return heard


@op
def misfit(speed, pulse, rows, heard):
    again = seismograms(speed, pulse, rows)
    total[()] = sum(square(again[t, s, i] - heard[t, s, i]))
    return total


def ricker(steps, centre, width):
    """The pulse of a shot: the second derivative of a bell."""
    t = (np.arange(steps) - centre) / width
    return (1 - t**2) * np.exp(-(t**2) / 2)


def ground(size):
    """Speeds, in cells for each time step: a fast lens in a slow field."""
    row, column = np.mgrid[:size, :size] / size
    return 0.4 + 0.08 * np.exp(-(((row - 0.4) / 0.15) ** 2) - ((column - 0.5) / 0.2) ** 2)


def invert(speed, pulse, rows, heard, rounds):
    """Gradient descent with momentum, from the guess `speed`; the misfits, and the field that was found."""
    gradient = tc.value_and_grad(misfit)
    velocity, values = np.zeros_like(speed), []
    for _ in range(rounds):
        value, slope = gradient(speed, pulse, rows, heard)
        values.append(float(value))
        velocity = 0.9 * velocity - 2e-5 * slope
        speed = speed + velocity
    return values, speed


def draw(fields, path):
    """The fields beside each other."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for axes, (title, field) in zip(figure.subplots(1, len(fields)), fields.items(), strict=True):
        image = axes.imshow(field, vmin=0.38, vmax=0.5)
        axes.set(title=title, xticks=[], yticks=[])
    figure.colorbar(image, ax=figure.axes, label="speed")
    figure.savefig(path, dpi=120)


def main(size=32, rounds=150, output="wave.png"):
    speed, guess = ground(size), np.full((size, size), 0.4)
    pulse, rows = ricker(4 * size, 12, 4.0), np.arange(2, size, 4)
    values, found = invert(guess, pulse, rows, seismograms(speed, pulse, rows), rounds)
    errors = [float(np.sqrt(np.mean((field - speed) ** 2))) for field in (guess, found)]
    print(f"misfit {values[0]:.3f}, then {values[-1]:.2e}; speeds were {errors[0]:.4f} off, now {errors[1]:.4f}")
    draw({"true": speed, "found": found}, output)
    print(f"both fields are drawn in {Path(output).resolve()}")
    return {"values": values, "errors": errors, "found": found}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=32, help="cells on each side of the field")
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--output", default="wave.png", help="where to draw the fields")
    main(**vars(parser.parse_args()))
