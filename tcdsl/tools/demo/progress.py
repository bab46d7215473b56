"""A progress bar for training: what part is done, the loss, the accuracy, and the time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["TrainingProgress", "training_progress"]


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
