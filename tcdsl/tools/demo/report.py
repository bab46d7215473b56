"""What the demonstration prints after training."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table

from tcdsl.tools.demo.training import Digits, History, IntArray, Timing

__all__ = ["draw", "show_program", "show_times", "training_progress"]


def show_program(console: Console, title: str, text: str) -> None:
    """A program as index notation, in a frame; without the checks of sizes and the types of what it computes."""
    kept = [line for line in text.splitlines() if not line.startswith(("assert ", "tensor "))]
    shown = "\n".join(_wrapped(line, console.width - 4) for line in kept)
    console.print(Panel(Syntax(shown, "python", background_color="default"), title=title, title_align="left"))


def _wrapped(line: str, width: int) -> str:
    # Clauses stand in columns where there is room; in a narrow frame two spaces set them apart.
    line = re.sub(r"(?<=\S) {3,}", "  ", line)
    indent = " " * (len(line) - len(line.lstrip()))
    return textwrap.fill(line, width, subsequent_indent=indent + 8 * " ", break_on_hyphens=False)


def show_times(console: Console, names: list[str], timings: list[Timing], note: str) -> None:
    """Time per epoch of each network, and its speed beside the last one's."""
    table = Table(title="One epoch of training", title_justify="left", caption=note, caption_justify="left")
    table.add_column("network")
    table.add_column("median", justify="right")
    table.add_column("fastest", justify="right")
    table.add_column(f"speed, {names[-1]} = 1", justify="right")
    for name, timing in zip(names, timings, strict=True):
        table.add_row(
            name,
            f"{1000 * timing.median:.1f} ms",
            f"{1000 * timing.minimum:.1f} ms",
            f"{timings[-1].median / timing.median:.2f}",
        )
    console.print(table)


class TrainingProgress(Protocol):
    """Reports the part done (0 to 1), the loss, and the accuracy (0 to 1, NaN if unknown)."""

    def __call__(self, done: float, loss: float, accuracy: float) -> None:
        """Show the state."""


@contextmanager
def training_progress(console: Console, epochs: int) -> Iterator[TrainingProgress]:
    """``with training_progress(console, 20) as report: report(0.5, loss, accuracy)`` keeps one line up to date."""
    columns = (
        TextColumn("epoch {task.fields[epoch]:>2}/{task.fields[epochs]}"),
        BarColumn(bar_width=None),
        TextColumn("loss {task.fields[loss]:.4f}"),
        TextColumn("accuracy {task.fields[accuracy]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, refresh_per_second=8) as progress:
        bar = progress.add_task("training", total=1.0, epoch=1, epochs=epochs, loss=math.nan, accuracy="     -")

        def report(done: float, loss: float, accuracy: float) -> None:
            epoch = min(epochs, math.floor(done * epochs + 1e-9) + 1)
            shown = "     -" if math.isnan(accuracy) else f"{100 * accuracy:4.1f} %"
            progress.update(bar, completed=done, epoch=epoch, loss=loss, accuracy=shown)

        yield report


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
