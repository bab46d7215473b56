"""Sharpen a blurred photograph: gradient descent on the squared difference between its blur and what was seen.

The gradient needs the adjoint of the blur. tcdsl derives it from the one line that says what the blur is, as a gather
that costs what the blur costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import tcdsl as tc
from benchmarks.applications.presentation import Outcome, Report, present
from benchmarks.timing import alternate
from tcdsl import cd, op, output
from tcdsl.indices import i, j, x, y

__all__ = ["Deconvolution", "blur", "deconvolve", "gaussian", "misfit", "relative_error", "run", "scene"]

Array = np.ndarray[Any, np.dtype[Any]]


@op
def blur(image: Any, kernel: Any) -> Any:
    """(H, W), (h, w) -> (H - h + 1, W - w + 1): as far as the kernel fits."""
    seen = output()
    seen[y, x] += image[y + i, x + j] * kernel[i, j]
    return seen


@op
def misfit(image: Any, kernel: Any, seen: Any) -> Any:
    """Half the squared difference between the blurred image and what was seen."""
    blurred = blur(image, kernel)
    loss = output()
    loss[()] += 0.5 * (blurred[y, x] - seen[y, x]) ** 2
    return loss


@cd
def descend(image: Any, velocity: Any, ahead: Any, slope: Any, rate: Any, momentum: Any) -> None:
    """Nesterov's step, in place: ``slope`` is the gradient at ``ahead``."""
    velocity *= momentum
    velocity -= rate * slope
    image += velocity
    ahead[y, x] = image[y, x] + momentum * velocity[y, x]


@dataclass(frozen=True, slots=True)
class Deconvolution:
    """The sharpened image, and the loss before each step."""

    image: Array
    losses: list[float]


def gaussian(size: int, width: float) -> Array:
    """A (size, size) blurring kernel that sums to 1."""
    line = np.exp(-0.5 * ((np.arange(size) - size // 2) / width) ** 2)
    kernel = np.outer(line, line)
    return kernel / kernel.sum()


def scene(size: int) -> Array:
    """A (size, size) picture with edges at many scales: spokes, rings, and a checkerboard."""
    rows, columns = np.mgrid[0:size, 0:size] / size
    left, right = columns < 0.5, columns >= 0.5
    angle = np.arctan2(rows - 0.5, columns - 0.27)
    distance = np.hypot(rows - 0.3, columns - 0.75)
    picture = np.where(left & (np.hypot(rows - 0.5, columns - 0.27) < 0.22), np.sin(24 * angle) > 0, 0.15)
    picture = np.where(right & (distance < 0.22), 0.5 + 0.5 * np.cos(900 * distance**2), picture)
    checkers = (np.floor(rows * 24) + np.floor(columns * 24)) % 2
    return np.where(right & (rows > 0.58) & (rows < 0.92) & (columns < 0.95) & (columns > 0.55), checkers, picture)


def deconvolve(seen: Array, kernel: Array, *, steps: int, report: Report) -> Deconvolution:
    """Start from grey; the step size is safe because no frequency passes a kernel that sums to 1 amplified."""
    height, width = seen.shape[0] + kernel.shape[0] - 1, seen.shape[1] + kernel.shape[1] - 1
    image = np.full((height, width), seen.mean())
    velocity, ahead = np.zeros_like(image), image.copy()
    slope = tc.value_and_grad(misfit)
    losses = []
    for step in range(steps):
        loss, gradient = slope(ahead, kernel, seen)
        descend(image, velocity, ahead, gradient, 1.0, (step + 1) / (step + 4))
        losses.append(float(loss))
        report((step + 1) / steps, f"loss {losses[-1]:.2e}")
    return Deconvolution(image, losses)


def relative_error(image: Array, truth: Array) -> float:
    """The root mean square difference over that of the truth from its mean."""
    return float(np.linalg.norm(image - truth) / np.linalg.norm(truth - truth.mean()))


def run(quick: bool, report: Report) -> Outcome:
    """Blur a scene, sharpen it again, and time the gradient."""
    size, steps = (128, 200) if quick else (512, 1000)
    kernel, truth = gaussian(9, 1.2), scene(size)
    margin = kernel.shape[0] // 2
    inside = np.s_[margin:-margin, margin:-margin]
    seen = blur(truth, kernel) + 1e-4 * np.random.default_rng(0).standard_normal(truth[inside].shape)
    found = deconvolve(seen, kernel, steps=steps, report=report)
    slope = tc.value_and_grad(misfit)
    times = alternate(
        {
            "loss": lambda: misfit(truth, kernel, seen),
            "loss and gradient": lambda: slope(truth, kernel, seen),
        },
        seconds=0.3,
    )

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, 4)
        part = np.s_[size // 4 : 3 * size // 4, size // 8 : 5 * size // 8]
        for panel, (title, image) in zip(
            panels,
            {"truth": truth[inside], "seen": seen, f"after {steps} steps": found.image[inside]}.items(),
            strict=False,
        ):
            panel.imshow(image[part], cmap="gray", vmin=0, vmax=1)
            panel.set_title(title)
            panel.set_axis_off()
        panels[3].loglog(np.arange(1, steps + 1), found.losses)
        panels[3].set(title="loss", xlabel="step")

    outcome = Outcome("Deconvolution by gradient descent", draw, (15, 4))
    outcome.add("image and kernel", f"{truth.shape} and {kernel.shape}, float64")
    outcome.add("loss", f"{found.losses[0]:.3g} before, {found.losses[-1]:.3g} after {steps} steps")
    outcome.add(
        "error of the image",
        f"{relative_error(seen, truth[inside]):.1%} blurred, "
        f"{relative_error(found.image[inside], truth[inside]):.1%} sharpened",
    )
    outcome.add("a step", f"{1e3 * times['loss and gradient'].median:.2f} ms")
    outcome.add("gradient / loss", f"{times['loss and gradient'].median / times['loss'].median:.2f} x the time")
    adjoint = tc.grad(misfit).explain("ir", truth, kernel, seen).splitlines()
    outcome.add("the adjoint", next(line.split("  for")[0] for line in adjoint if line.startswith("d_image[")))
    return outcome


if __name__ == "__main__":
    present(run, "deconvolution", __doc__)
