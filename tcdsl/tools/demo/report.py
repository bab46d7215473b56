"""What the demonstration prints after training."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.panel import Panel
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table

from tcdsl.tools.demo.training import Timing

__all__ = ["show_program", "show_times", "training_progress"]


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
