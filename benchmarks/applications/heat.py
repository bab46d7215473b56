"""Heat spreads for 100 steps; from what it ends as, the gradient says what it began as and how fast it spread.

One function takes the steps in an ordinary loop. Its gradient, with respect to the initial state and the diffusivity,
is a program as well, a small multiple of the simulation in time. With it, the diffusivity is found from the first and
the last state, and the first state from the last.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tcdsl as tc
from benchmarks.applications.presentation import BLUE, Outcome, Report, present
from benchmarks.timing import alternate
from tcdsl import op, output
from tcdsl.indices import i, j
from tcdsl.primitives import clamp

__all__ = [
    "diffuse",
    "find_beginning",
    "find_diffusivity",
    "hot_spots",
    "misfit",
    "misfit_and_slopes",
    "operation_ratio",
    "relative_differences",
    "run",
    "spread",
]

Array = np.ndarray[Any, np.dtype[Any]]


@op
def diffuse(heat: Any, diffusivity: Any) -> Any:
    """(H, W), () -> (H, W): one step of the 5-point scheme, stable up to 1/4; nothing leaves through the edges."""
    H, W = heat.shape
    later = output(H, W)
    inflow = heat[clamp(i - 1), j] + heat[clamp(i + 1), j] + heat[i, clamp(j - 1)] + heat[i, clamp(j + 1)]
    later[i, j] = heat[i, j] + diffusivity * (inflow - 4 * heat[i, j])
    return later


@op
def spread(heat: Any, diffusivity: Any, *, steps: int) -> Any:
    """The state after so many steps."""
    for _ in range(steps):
        heat = diffuse(heat, diffusivity)
    return heat


@op
def misfit(heat: Any, diffusivity: Any, final: Any, *, steps: int) -> Any:
    """Half the squared difference between where ``heat`` leads and ``final``."""
    reached = spread(heat, diffusivity, steps=steps)
    loss = output()
    loss[()] += 0.5 * (reached[i, j] - final[i, j]) ** 2
    return loss


#: The loss and its gradients with respect to the first state and the diffusivity, by one program.
misfit_and_slopes = tc.value_and_grad(misfit, argnums=(0, 1))


def hot_spots(size: int) -> Array:
    """A cold plate (size, size) with a hot disc, a hot bar and a warm corner."""
    rows, columns = np.mgrid[0:size, 0:size] / size
    disc = np.hypot(rows - 0.35, columns - 0.3) < 0.12
    bar = (abs(rows - 0.7) < 0.05) & (abs(columns - 0.6) < 0.25)
    return 1.0 * disc + 0.8 * bar + 0.4 * np.maximum(0, 1 - 4 * np.hypot(rows, columns - 1))


def find_diffusivity(begin: Array, final: Array, guess: float, *, steps: int) -> list[float]:
    """Guess after guess: each takes the slope of the loss to be a straight line through the last two."""

    def slope(diffusivity: float) -> float:
        _, (_, d_diffusivity) = misfit_and_slopes(begin, diffusivity, final, steps=steps)
        return float(d_diffusivity)

    guesses = [guess, 1.05 * guess]
    slopes = [slope(each) for each in guesses]
    while abs(slopes[-1]) > 1e-12 * abs(slopes[0]) and len(guesses) < 20:
        change = slopes[-1] * (guesses[-1] - guesses[-2]) / (slopes[-1] - slopes[-2])
        guesses.append(min(0.25, max(0.01, guesses[-1] - change)))
        slopes.append(slope(guesses[-1]))
        if guesses[-1] == guesses[-2]:
            break
    return guesses


def find_beginning(
    final: Array, diffusivity: float, *, steps: int, moves: int, report: Report
) -> tuple[Array, list[float]]:
    """Nesterov's descent from the final state: the first state that leads there, and the loss before each move."""
    state, ahead, losses = final.copy(), final.copy(), []
    for move in range(moves):
        loss, (gradient, _) = misfit_and_slopes(ahead, diffusivity, final, steps=steps)
        losses.append(float(loss))
        # Diffusion amplifies nothing, so a step of 1 is safe.
        before, state = state, np.maximum(0, ahead - gradient)
        ahead = state + move / (move + 3) * (state - before)
        report((move + 1) / moves, f"loss {losses[-1]:.2e}")
    return state, losses


def relative_differences(begin: Array, diffusivity: float, final: Array, *, steps: int) -> tuple[float, float]:
    """How far the two gradients are from central differences, along themselves, relative to those."""
    _, (d_begin, d_diffusivity) = misfit_and_slopes(begin, diffusivity, final, steps=steps)
    direction = d_begin / np.linalg.norm(d_begin)

    def along(state: float, speed: float) -> float:
        return float(misfit(begin + state * direction, diffusivity + speed, final, steps=steps))

    by_state = (along(1e-4, 0) - along(-1e-4, 0)) / 2e-4
    by_speed = (along(0, 1e-6) - along(0, -1e-6)) / 2e-6
    return abs(np.sum(d_begin * direction) / by_state - 1), abs(float(d_diffusivity) / by_speed - 1)


def operation_ratio(size: int, steps: int) -> float:
    """How many times the operations of the loss its adjoint takes, counted."""
    begin = hot_spots(size)
    cost = misfit.cost(begin, 0.2, begin, steps=steps)
    return float(cost.adjoint.operations.weighted / cost.primal.operations.weighted)


def run(quick: bool, report: Report) -> Outcome:
    """Check the gradients by differences, find what is unknown, and measure time and memory."""
    size, steps, moves = (60, 20, 40) if quick else (200, 100, 300)
    begin, diffusivity = hot_spots(size), 0.2
    final = spread(begin, diffusivity, steps=steps)
    elsewhere = begin[::-1].copy()
    differences = relative_differences(elsewhere, 0.15, final, steps=steps)
    guesses = find_diffusivity(begin, final, 0.1, steps=steps)
    found, losses = find_beginning(final, diffusivity, steps=steps, moves=moves, report=report)
    times = alternate(
        {
            "loss": lambda: misfit(elsewhere, diffusivity, final, steps=steps),
            "loss and gradients": lambda: misfit_and_slopes(elsewhere, diffusivity, final, steps=steps),
        },
        seconds=1.0,
    )

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 4)
        shown = {"at first": begin, f"after {steps} steps": final, f"the first, found in {moves} moves": found}
        for panel, (title, state) in zip(panels, shown.items(), strict=False):
            panel.imshow(state, cmap="inferno", vmin=0, vmax=1)
            panel.set_title(title)
            panel.set_axis_off()
        panels[3].loglog(np.arange(1, moves + 1), losses, color=BLUE)
        panels[3].set(title="loss", xlabel="move")

    outcome = Outcome(f"Heat: {steps} steps, differentiated", draw, (15, 4))
    outcome.add("plate", f"{size} x {size}, {steps} steps, float64")
    outcome.add(
        "gradients / differences - 1", f"{differences[0]:.0e} by the state, {differences[1]:.0e} by the diffusivity"
    )
    outcome.add("diffusivity found", f"{guesses[-1]:.12f} from 0.1 in {len(guesses)} gradients; it was {diffusivity}")
    blurred, sharp = (np.linalg.norm(state - begin) / np.linalg.norm(begin) for state in (final, found))
    outcome.add("first state found", f"off by {sharp:.1%} after {moves} moves; the last state is off by {blurred:.1%}")
    loss, gradients = times["loss"].median, times["loss and gradients"].median
    outcome.add("loss and both gradients", f"{1e3 * gradients:.2f} ms, {gradients / loss:.2f} x the loss alone")
    outcome.add("operations", f"{operation_ratio(24, 10):.2f} x those of the loss, counted for 24 x 24 and 10 steps")
    for name, function in (("loss", misfit), ("gradients", misfit_and_slopes)):
        text = function.explain("loops", elsewhere, diffusivity, final, steps=steps)
        outcome.add(f"memory, {name}", text.splitlines()[-1].removeprefix("memory: "))
    return outcome


if __name__ == "__main__":
    present(run, "heat", __doc__)
