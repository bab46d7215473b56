"""A chain of 100,000 springs hangs from two nails: Gauss-Newton finds its shape, the catenary.

The unknowns are where each node is and the force in each spring. The residuals say that a spring is as long as its
force makes it, and that at each node the forces of its two springs carry its weight. Every derivative comes from
these two lines. The same compiled programs serve a chain of 49 springs and, doubling again and again, one of 100,352:
the coarse chains settle the shape, the fine ones only smooth what interpolation left.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.applications.gauss_newton import gauss_newton, iterate, start
from benchmarks.applications.presentation import BLUE, GREY, ORANGE, Outcome, Report, present
from benchmarks.timing import alternate
from tcdsl import op, output
from tcdsl.indices import d, n
from tcdsl.primitives import clamp, get, sqrt

__all__ = ["Level", "catenary", "chain", "first_guess", "hang", "refined", "run"]

Array = np.ndarray[Any, np.dtype[Any]]

LEFT, RIGHT = np.array([0.0, 0.0]), np.array([1.0, 0.0])
LENGTH = 1.6
WEIGHT = np.array([0.0, 1.0])  # of a unit of length: what the forces must grow by, so upwards
FEWEST = 49


@op
def chain(state: Any, left: Any, right: Any, spacing: Any, weight: Any, compliance: Any) -> Any:
    """Residuals (N, 2, 2) of the state (N, 2, 2): of each spring the place of its right end, and its force."""
    N = state.shape[0]
    strength, residuals = output(), output(N, 2, 2)
    strength[n] = sqrt(sum(state[n, 1, d] ** 2))
    stretch = 1 / strength[n] + compliance
    residuals[n, 0, d] = (state[n, 0, d] - get(state[n - 1, 0, d], left[d])) / spacing - state[n, 1, d] * stretch
    residuals[n, 1, d] = (
        (state[n + 1, 1, d] - state[n, 1, d]) / spacing - weight[d]
        if n < N - 1
        else (state[n, 0, d] - right[d]) / spacing
    )
    return residuals


@op
def refined(state: Any, left: Any) -> Any:
    """Twice as many springs: nodes between the nodes, forces interpolated, and at the ends extrapolated."""
    N = state.shape[0]
    growth, fine = output(N, 2), output(2 * N, 2, 2)
    growth[n, d] = (state[clamp(n + 1), 1, d] - state[clamp(n - 1), 1, d]) / (2 if 0 < n < N - 1 else 1)
    fine[2 * n, 0, d] = (state[n, 0, d] + get(state[n - 1, 0, d], left[d])) / 2
    fine[2 * n + 1, 0, d] = state[n, 0, d]
    fine[2 * n, 1, d] = state[n, 1, d] - growth[n, d] / 4
    fine[2 * n + 1, 1, d] = state[n, 1, d] + growth[n, d] / 4
    return fine


def first_guess(springs: int) -> Array:
    """A sagging bow, under forces that carry the weight."""
    along = np.arange(1, springs + 1) / springs
    places = np.stack([along, -0.5 * np.sin(np.pi * along)], axis=1)
    forces = np.stack([np.full(springs, 0.5), LENGTH * (along - 0.5)], axis=1)
    return np.stack([places, forces], axis=1)


def catenary(springs: int, compliance: float) -> Array:
    """Where the nodes (springs, 2) of a continuous chain hang: y = a cosh(x / a) if it does not stretch.

    With ``a`` the horizontal force over the weight of a unit of length, a point at the distance s from the lowest one,
    measured along the unstretched chain, is at a asinh(s / a) + c a s, √(a² + s²) + c s² / 2.
    """
    half = LENGTH / 2
    low, high = 1e-3, 10.0  # the span grows with a
    for _ in range(100):
        a = (low + high) / 2
        short = 2 * (a * np.arcsinh(half / a) + compliance * a * half) < RIGHT[0] - LEFT[0]
        low, high = (a, high) if short else (low, a)
    s = LENGTH * np.arange(1, springs + 1) / springs - half
    x = a * np.arcsinh(s / a) + compliance * a * s
    y = np.sqrt(a**2 + s**2) + compliance * s**2 / 2
    return np.stack([x - x[-1] + RIGHT[0], y - y[-1] + RIGHT[1]], axis=1)


@dataclass(frozen=True, slots=True)
class Level:
    """A chain of so many springs: conjugate gradients in each Gauss-Newton step, energies, distance from the truth."""

    springs: int
    state: Array
    energies: list[float]
    iterations: list[int]
    error: float
    seconds: float


def hang(levels: int, compliance: float, *, settled: int, report: Report) -> list[Level]:
    """Settle ``FEWEST`` springs, double and settle again; chains of more than ``settled`` springs are only smoothed."""
    state, done = first_guess(FEWEST), []
    for level in range(levels):
        state = refined(state, LEFT) if level else state
        springs = len(state)
        parameters = (LEFT, RIGHT, LENGTH / springs, WEIGHT, compliance)
        begin = time.perf_counter()
        # As many conjugate gradients as unknowns, and some for rounding, solve a step exactly.
        steps, iterations = (10, 5 * springs) if springs <= settled else (2, 100)
        found = gauss_newton(chain, state, parameters, steps=steps, iterations=iterations, small=1e-16 * springs)
        state = found.state
        error = float(np.abs(state[:, 0] - catenary(springs, compliance)).max())
        seconds = time.perf_counter() - begin
        done.append(Level(springs, state, found.energies, found.iterations, error, seconds))
        report((level + 1) / levels, f"{springs} springs, {error:.1e} from the catenary")
    return done


def _iteration_times(levels: list[Level], compliance: float) -> dict[int, float]:
    """Seconds of a conjugate gradient for each size, the sizes taking turns."""
    runs = {}
    for level in levels:
        parameters = (LEFT, RIGHT, LENGTH / level.springs, WEIGHT, compliance)
        remainder, direction, square = start(level.state, *parameters, residuals=chain)
        arguments = (level.state, np.zeros_like(level.state), remainder, direction, square, *parameters)
        runs[str(level.springs)] = lambda arguments=arguments: iterate(*arguments, residuals=chain)
    return {int(name): timing.median for name, timing in alternate(runs, seconds=1.0).items()}


def run(quick: bool, report: Report) -> Outcome:
    """Hang a chain that does not stretch and one that does; compare with the formulas; time the iterations."""
    levels, settled = (6, 400) if quick else (12, 1600)
    stiff = hang(levels, 0.0, settled=settled, report=lambda done, doing: report(0.5 * done, f"stiff: {doing}"))
    soft = hang(levels, 0.3, settled=settled, report=lambda done, doing: report(0.5 + 0.5 * done, f"soft: {doing}"))
    seconds = _iteration_times(stiff[-6:], 0.0)
    sizes = sorted(seconds)
    exponent = float(np.polyfit(np.log(sizes), np.log([seconds[size] for size in sizes]), 1)[0])

    def draw(figure: Any) -> None:
        shape, convergence, times = figure.subplots(1, 3)
        for found, color, name in ((stiff, BLUE, "stiff"), (soft, ORANGE, "soft, compliance 0.3")):
            compliance = 0.0 if found is stiff else 0.3
            shape.plot(*catenary(200, compliance).T, color=GREY, linewidth=5, alpha=0.4)
            shape.plot(*found[-1].state[:: max(1, found[-1].springs // 500), 0].T, color=color, label=name)
            convergence.loglog([level.springs for level in found], [level.error for level in found], "o-", color=color)
        shape.plot(*np.stack([LEFT, RIGHT]).T, "ko")
        shape.set(title=f"{stiff[-1].springs:,} springs; grey: the formula", aspect="equal")
        shape.legend()
        convergence.set(title="largest distance from the formula", xlabel="springs")
        times.loglog(sizes, [1e3 * seconds[size] for size in sizes], "o-", color=BLUE)
        times.set(title=f"ms per conjugate gradient: N^{exponent:.2f}", xlabel="springs")

    outcome = Outcome("A hanging chain by Gauss-Newton", draw, (15, 4.6))
    first, last = stiff[0], stiff[-1]
    outcome.add(f"{first.springs} springs", "energy " + ", ".join(f"{energy:.0e}" for energy in first.energies))
    outcome.add("", f"conjugate gradients {first.iterations} for {first.state.size} unknowns")
    outcome.add(
        f"{last.springs:,} springs", f"{last.error:.1e} from a cosh(x / a), {soft[-1].error:.1e} if they stretch"
    )
    total = sum(level.seconds for level in stiff)
    outcome.add("", f"{len(stiff)} levels, {sum(sum(level.iterations) for level in stiff)} iterations, {total:.1f} s")
    outcome.add("a conjugate gradient", f"{1e3 * seconds[sizes[-1]]:.2f} ms, grows like N^{exponent:.2f}")
    parameters = (LEFT, RIGHT, LENGTH / last.springs, WEIGHT, 0.0)
    residuals = alternate({"residuals": lambda: chain(last.state, *parameters)}, seconds=0.2)["residuals"].median
    outcome.add("", f"{seconds[sizes[-1]] / residuals:.1f} x the residuals, for J v, Jᵀ u and three updates")
    return outcome


if __name__ == "__main__":
    present(run, "springs", __doc__)
