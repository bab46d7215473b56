"""Stars that attract each other. Only the potential is written down: forces are its gradient, and the rate at which
forces change along the motion is their derivative.

The forces drive a leapfrog, of second order; with the rate of change, Hermite's scheme gets to fourth order at twice
the cost. Both derivatives are compared with the formulas of the textbooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tcdsl as tc
from benchmarks.applications.presentation import BLUE, ORANGE, Outcome, Report, present
from benchmarks.timing import alternate
from tcdsl import op, output
from tcdsl.indices import d, i, j
from tcdsl.primitives import sqrt

__all__ = [
    "Run",
    "acceleration",
    "acceleration_and_jerk",
    "accelerations_by_hand",
    "cluster",
    "hermite",
    "jerks_by_hand",
    "leapfrog",
    "potential",
    "run",
    "simulate",
]

Array = np.ndarray[Any, np.dtype[Any]]

SOFTENING = 0.1


@op
def potential(position: Any, mass: Any, softening: Any) -> Any:
    """(N, D), (N,), () -> (): each pair once, by Plummer's law, which stays finite where stars meet."""
    energy = output()
    energy[()] -= mass[i] * mass[j] / sqrt(sum((position[i, d] - position[j, d]) ** 2) + softening**2), i < j
    return energy


@op
def kinetic(velocity: Any, mass: Any) -> Any:
    """(N, D), (N,) -> (): the energy of motion."""
    energy = output()
    energy[()] += 0.5 * mass[i] * velocity[i, d] ** 2
    return energy


@op
def acceleration(position: Any, mass: Any, softening: Any) -> Any:
    """(N, D): the force over the mass; the force is minus the gradient of the potential."""
    slope = tc.grad(potential)(position, mass, softening)
    change = output()
    change[i, d] = -slope[i, d] / mass[i]
    return change


@op
def acceleration_and_jerk(position: Any, velocity: Any, mass: Any, softening: Any) -> Any:
    """The acceleration and its rate of change while the stars move: its derivative in the direction ``velocity``."""
    return tc.jvp(lambda position: acceleration(position, mass, softening), (position,), (velocity,))


def accelerations_by_hand(position: Array, mass: Array, softening: float) -> Array:
    """What a textbook says: the sum over j of m r / (r² + ε²)^(3/2), where r leads from i to j."""
    apart = position[None] - position[:, None]
    cubed = (np.sum(apart**2, axis=2) + softening**2) ** -1.5
    return np.einsum("ijd,ij,j->id", apart, cubed, mass)


def jerks_by_hand(position: Array, velocity: Array, mass: Array, softening: float) -> Array:
    """The time derivative of the same: m (v - 3 r (r·v) / (r² + ε²)) / (r² + ε²)^(3/2)."""
    apart, passing = position[None] - position[:, None], velocity[None] - velocity[:, None]
    square = np.sum(apart**2, axis=2) + softening**2
    approach = 3 * np.sum(apart * passing, axis=2) / square
    return np.einsum("ijd,ij,j->id", passing - approach[:, :, None] * apart, square**-1.5, mass)


def leapfrog(position: Array, velocity: Array, mass: Array, step: float, count: int) -> tuple[Array, Array]:
    """Half a kick, a drift, half a kick, so many times: second order."""
    change = acceleration(position, mass, SOFTENING)
    for _ in range(count):
        velocity = velocity + 0.5 * step * change
        position = position + step * velocity
        change = acceleration(position, mass, SOFTENING)
        velocity = velocity + 0.5 * step * change
    return position, velocity


def hermite(position: Array, velocity: Array, mass: Array, step: float, count: int) -> tuple[Array, Array]:
    """Predict by Taylor's series, correct by the cubic through both ends' accelerations and jerks: fourth order."""
    change, jerk = acceleration_and_jerk(position, velocity, mass, SOFTENING)
    for _ in range(count):
        there = position + step * velocity + step**2 / 2 * change + step**3 / 6 * jerk
        speed = velocity + step * change + step**2 / 2 * jerk
        change_there, jerk_there = acceleration_and_jerk(there, speed, mass, SOFTENING)
        faster = velocity + step / 2 * (change + change_there) + step**2 / 12 * (jerk - jerk_there)
        position = position + step / 2 * (velocity + faster) + step**2 / 12 * (change - change_there)
        velocity, change, jerk = faster, change_there, jerk_there
    return position, velocity


def cluster(stars: int, seed: int = 0) -> tuple[Array, Array, Array]:
    """Places (N, 2), velocities (N, 2) and masses (N,) of a turning disc that holds together."""
    generator = np.random.default_rng(seed)
    mass = generator.uniform(0.5, 1.5, stars) / stars
    radius, angle = np.sqrt(generator.uniform(0.02, 1, stars)), generator.uniform(0, 2 * np.pi, stars)
    position = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    inwards = accelerations_by_hand(position, mass, SOFTENING)
    pull = np.maximum(0, -np.sum(inwards * position, axis=1))
    velocity = np.stack([-position[:, 1], position[:, 0]], axis=1) * np.sqrt(pull / radius**2)[:, None]
    position -= mass @ position / mass.sum()
    velocity -= mass @ velocity / mass.sum()
    return position, velocity, mass


@dataclass(frozen=True, slots=True)
class Run:
    """Times, the paths (times, N, 2) of all stars, and the relative change of the energy up to each time."""

    times: Array
    paths: Array
    drift: Array


def simulate(
    scheme: Any, start: tuple[Array, Array, Array], step: float, count: int, samples: int, report: Report
) -> Run:
    """``count`` steps with a look at the energy at ``samples`` times."""
    position, velocity, mass = start
    paths, energies = [position], []
    chunk = count // samples
    for sample in range(samples + 1):
        energies.append(potential(position, mass, SOFTENING) + kinetic(velocity, mass))
        if sample == samples:
            break
        position, velocity = scheme(position, velocity, mass, step, chunk)
        paths.append(position)
        report((sample + 1) / samples, scheme.__name__)
    drift = np.abs(np.array(energies) / energies[0] - 1)
    return Run(step * chunk * np.arange(samples + 1), np.array(paths), drift)


def run(quick: bool, report: Report) -> Outcome:
    """Compare both derivatives with formulas, run both schemes at two step sizes, and time the derivatives."""
    stars, count = (64, 128) if quick else (400, 1024)
    start = cluster(stars)
    position, velocity, mass = start
    force, jerk = acceleration_and_jerk(position, velocity, mass, SOFTENING)
    by_hand = accelerations_by_hand(position, mass, SOFTENING), jerks_by_hand(position, velocity, mass, SOFTENING)
    errors = [
        np.abs(ours - theirs).max() / np.abs(theirs).max() for ours, theirs in zip((force, jerk), by_hand, strict=True)
    ]
    runs = {}
    for scheme in (leapfrog, hermite):
        for halves in (1, 2):

            def part(done: float, doing: str, before: int = len(runs)) -> None:
                report((before + done) / 4, doing)

            runs[scheme.__name__, halves] = simulate(scheme, start, 0.01 / halves, count * halves, 64, part)
    times = alternate(
        {
            "potential": lambda: potential(position, mass, SOFTENING),
            "forces": lambda: acceleration(position, mass, SOFTENING),
            "forces and jerks": lambda: acceleration_and_jerk(position, velocity, mass, SOFTENING),
            "numpy forces": lambda: accelerations_by_hand(position, mass, SOFTENING),
            "numpy jerks": lambda: jerks_by_hand(position, velocity, mass, SOFTENING),
        },
        seconds=0.5,
    )

    def draw(figure: Any) -> None:
        paths, drift = figure.subplots(1, 2)
        run = runs["hermite", 2]
        paths.plot(*run.paths[-12:].transpose(2, 0, 1), color=BLUE, linewidth=0.5, alpha=0.5)
        paths.scatter(*run.paths[-1].T, s=2e3 * mass, color="black", zorder=3)
        paths.set(title=f"{stars} stars and where they come from", aspect="equal", xlim=(-1.8, 1.8), ylim=(-1.8, 1.8))
        for (name, halves), run in runs.items():
            color, style = BLUE if name == "leapfrog" else ORANGE, "-" if halves == 1 else "--"
            drift.semilogy(run.times[1:], run.drift[1:], style, color=color, label=f"{name}, step {0.01 / halves}")
        drift.set(title="relative change of the energy", xlabel="time")
        drift.legend()

    outcome = Outcome("Stars: forces and their derivative from the potential", draw, (12, 5))
    outcome.add("stars", f"{stars}, float64")
    outcome.add("difference from the formulas", f"forces {errors[0]:.0e}, jerks {errors[1]:.0e}")
    for name in ("leapfrog", "hermite"):
        coarse, fine = (runs[name, halves].drift.max() for halves in (1, 2))
        outcome.add(
            f"energy, {name}", f"off by {coarse:.1e} with step 0.01, {fine:.1e} with 0.005: {coarse / fine:.1f} x less"
        )
    for name, other in (("forces", "potential"), ("forces and jerks", "potential")):
        outcome.add(
            name, f"{1e3 * times[name].median:.2f} ms, {times[name].median / times[other].median:.1f} x the {other}"
        )
    hand = times["numpy forces"].median
    outcome.add("the formulas in NumPy", f"forces {hand / times['forces'].median:.1f} x as long")
    both = hand + times["numpy jerks"].median
    outcome.add("", f"forces and jerks {both / times['forces and jerks'].median:.1f} x as long")
    return outcome


if __name__ == "__main__":
    present(run, "bodies", __doc__)
