"""The demonstration's picture: how training went, and some digits that the network still gets wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tcdsl.tools.demo.data import Digits, IntArray
from tcdsl.tools.demo.training import History

__all__ = ["draw"]

BLUE, ORANGE, GREY = "#1f5a94", "#d9711c", "#666666"
MOST_MISTAKES = 10


def draw(path: Path, history: History, digits: Digits, guesses: IntArray) -> None:
    """Write a PNG with the learning curve on the left and up to ten mistakes on the right."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(12, 4.4), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    curve, mistakes = figure.subfigures(1, 2, width_ratios=(1.15, 1), wspace=0.04)
    _draw_curve(curve, history)
    _draw_mistakes(mistakes, digits, guesses)
    figure.savefig(path)


def _draw_curve(figure: Any, history: History) -> None:
    epochs = np.arange(1, len(history.losses) + 1)
    left = figure.subplots()
    right = left.twinx()
    left.plot(epochs, history.losses, color=BLUE, marker="o", markersize=4)
    left.set_yscale("log")
    left.set_ylabel("training loss", color=BLUE)
    left.tick_params(axis="y", which="both", colors=BLUE)
    percent = 100 * np.array(history.accuracies)
    right.plot(epochs, percent, color=ORANGE, marker="s", markersize=4)
    right.set_ylabel("accuracy on held-out images (%)", color=ORANGE)
    right.tick_params(axis="y", colors=ORANGE)
    right.set_ylim(min(90.0, float(np.floor(percent.min() - 1))), 100)
    left.set_xlabel("epoch")
    left.xaxis.get_major_locator().set_params(integer=True)
    left.grid(axis="x", alpha=0.25)
    for axes in (left, right):
        axes.spines["top"].set_visible(False)
    figure.suptitle(f"Learning: {percent[-1]:.1f} % right after {len(epochs)} epochs")


def _draw_mistakes(figure: Any, digits: Digits, guesses: IntArray) -> None:
    wrong = np.flatnonzero(guesses != digits.test_labels)
    shown = wrong[:MOST_MISTAKES]
    among = f"among {len(guesses)} held-out images"
    if len(shown) == 0:
        figure.suptitle(f"No mistake {among}")
        return
    rows = 1 if len(shown) < 3 else 2
    panels = figure.subplots(rows, -(-len(shown) // rows), squeeze=False)
    for panel in panels.flat:
        panel.set_axis_off()
    for image, panel in zip(shown, panels.flat, strict=False):
        panel.imshow(digits.test_images[image].reshape(8, 8), cmap="gray_r", interpolation="nearest")
        panel.set_title(f"{digits.test_labels[image]} taken for {guesses[image]}", fontsize=10, color=GREY)
    count = f"All {len(wrong)}" if len(shown) == len(wrong) else f"{len(shown)} of the {len(wrong)}"
    figure.suptitle(f"{count} mistakes {among}" if len(wrong) > 1 else f"The one mistake {among}")
