"""Bend a picture as if it were rubber: as-rigid-as-possible deformation of a grid, by Gauss-Newton.

Every node has a place and an angle. Each edge wants to be what it was at rest, turned by the angle of its node; some
nodes are handles, which want to be where they are put. That is all that is written down: residuals in index notation.
Products with their Jacobian, forward and transposed, are derived, and the grid of 100 x 100 nodes has 30,000 unknowns
of which no matrix is ever made.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.applications.deconvolution import scene
from benchmarks.applications.gauss_newton import gauss_newton, iterate, start
from benchmarks.applications.presentation import BLUE, Outcome, Report, present, silent
from benchmarks.timing import alternate
from tcdsl import op, output
from tcdsl.indices import d, i, j
from tcdsl.primitives import cos, sin

__all__ = ["Deformation", "areas", "at_rest", "bend", "deform", "rigidity", "run"]

Array = np.ndarray[Any, np.dtype[Any]]


@op
def rigidity(state: Any, target: Any, weight: Any) -> Any:
    """Residuals (5, H, W, 2) of the state (H, W, 3), which holds x, y and the angle of each node.

    The first four belong to the edges to the right, to the left, down and up; the last to the handles, of which
    ``target`` (H, W, 2) says the places, and ``weight`` (H, W) how much they matter, 0 at nodes that are free.
    """
    H, W, _ = state.shape
    place, right, down, residuals = output(), output(), output(), output(5, H, W, 2)
    place[i, j, d] = state[i, j, d], d < 2
    # What a step to the right, and one down, become when they are turned.
    right[i, j, d] = cos(state[i, j, 2]) if d == 0 else sin(state[i, j, 2]), d < 2
    down[i, j, d] = -sin(state[i, j, 2]) if d == 0 else cos(state[i, j, 2]), d < 2
    residuals[0, i, j, d] = place[i, j + 1, d] - place[i, j, d] - right[i, j, d]
    residuals[1, i, j, d] = place[i, j - 1, d] - place[i, j, d] + right[i, j, d]
    residuals[2, i, j, d] = place[i + 1, j, d] - place[i, j, d] - down[i, j, d]
    residuals[3, i, j, d] = place[i - 1, j, d] - place[i, j, d] + down[i, j, d]
    residuals[4, i, j, d] = weight[i, j] * (place[i, j, d] - target[i, j, d])
    return residuals


@dataclass(frozen=True, slots=True)
class Deformation:
    """The state (H, W, 3) after the last step; energies before the first and after each; conjugate gradients."""

    state: Array
    energies: list[float]
    iterations: list[int]
    seconds: float


def at_rest(height: int, width: int) -> Array:
    """The state (H, W, 3) in which edges have length 1 and no angle."""
    rows, columns = np.mgrid[0.0:height, 0.0:width]
    return np.stack([columns, rows, np.zeros_like(rows)], axis=2)


def bend(height: int, width: int, angle: float) -> tuple[Array, Array]:
    """Handles: the left edge stays; a patch near the right edge goes round a circle by ``angle``, and turns with it."""
    rest = at_rest(height, width)[:, :, :2]
    target, weight = rest.copy(), np.zeros((height, width))
    patch = np.s_[2 * height // 5 : 3 * height // 5 + 1, 4 * width // 5 : 9 * width // 10 + 1]
    weight[:, 0] = weight[patch] = 10.0
    middle = rest[patch].mean(axis=(0, 1))
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    reach = middle[0] * np.array([np.sinc(angle / np.pi), np.sin(angle / 2) * np.sinc(angle / 2 / np.pi)])
    target[patch] = (rest[patch] - middle) @ turn + [reach[0], middle[1] + reach[1]]
    return target, weight


def deform(
    state: Array, target: Array, weight: Array, *, steps: int, iterations: int, report: Report = silent
) -> Deformation:
    """From ``state`` to where the handles are."""
    begin = time.perf_counter()
    found = gauss_newton(
        rigidity,
        state,
        (target, weight),
        steps=steps,
        iterations=iterations,
        tolerance=1e-3,
        small=1e-20 * state.size,
        report=lambda step, energy: report((step + 1) / steps, f"energy {energy:.4g}"),
    )
    return Deformation(found.state, found.energies, found.iterations, time.perf_counter() - begin)


def areas(state: Array) -> Array:
    """The signed area (H - 1, W - 1) of each quadrilateral of the grid, 1 at rest."""
    place = state[:, :, :2]
    first, second = place[1:, 1:] - place[:-1, :-1], place[1:, :-1] - place[:-1, 1:]
    return 0.5 * (first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0])


def run(quick: bool, report: Report) -> Outcome:
    """Bend a picture in stages, each from where the one before ended."""
    size, angle, stages, iterations = (40, 1.0, 4, 100) if quick else (100, 1.0, 4, 300)
    state, done = at_rest(size, size), []
    for stage in range(1, stages + 1):

        def part(share: float, doing: str, stage: int = stage) -> None:
            report((stage - 1 + share) / stages, f"{stage} of {stages}: {doing}")

        target, weight = bend(size, size, angle * stage / stages)
        done.append(deform(state, target, weight, steps=4, iterations=iterations, report=part))
        state = done[-1].state
    remainder, direction, square = start(state, target, weight, residuals=rigidity)
    move = np.zeros_like(state)
    times = alternate(
        {
            "residuals": lambda: rigidity(state, target, weight),
            "iteration": lambda: iterate(state, move, remainder, direction, square, target, weight, residuals=rigidity),
        },
        seconds=0.5,
    )
    picture = scene(size - 1)

    def draw(figure: Any) -> None:
        before, after, energies = figure.subplots(1, 3)
        rest = at_rest(size, size)
        for panel, nodes, places, name in ((before, rest, rest, "at rest"), (after, state, target, "bent")):
            panel.pcolormesh(nodes[:, :, 0], nodes[:, :, 1], picture, cmap="gray", vmin=0, vmax=1)
            handles = places[weight > 0]
            panel.plot(handles[:, 0], handles[:, 1], ".", color=BLUE, markersize=2)
            panel.set(title=name, aspect="equal")
            panel.invert_yaxis()
            panel.set_axis_off()
        falling = np.concatenate([deformation.energies for deformation in done])
        energies.semilogy(falling, "o-", color=BLUE, markersize=3)
        energies.set(title="energy; peaks: the handles were moved on", xlabel="Gauss-Newton step")

    outcome = Outcome("As-rigid-as-possible deformation by Gauss-Newton", draw, (14, 4.8))
    outcome.add(
        "grid", f"{size} x {size} nodes, {state.size:,} unknowns, {rigidity(state, target, weight).size:,} residuals"
    )
    for stage, deformation in enumerate(done, 1):
        outcome.add(
            f"turned by {angle * stage / stages:.2f}",
            f"energy {deformation.energies[0]:.4g} to {deformation.energies[-1]:.4g}, "
            f"{sum(deformation.iterations)} conjugate gradients, {deformation.seconds:.1f} s",
        )
    cells = areas(state)
    outcome.add("areas of the cells", f"{cells.min():.2f} to {cells.max():.2f}, mean {cells.mean():.3f}")
    ratio = times["iteration"].median / times["residuals"].median
    outcome.add("a conjugate gradient", f"{1e3 * times['iteration'].median:.2f} ms, {ratio:.1f} x the residuals")
    return outcome


if __name__ == "__main__":
    present(run, "deformation", __doc__)
