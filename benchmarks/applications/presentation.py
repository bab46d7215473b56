"""How each application presents what it found: progress while it works, a table of findings, and a picture.

An application is a function ``run(quick, progress) -> Outcome``; ``present(run, __doc__)`` is its command line.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["BLUE", "GREY", "ORANGE", "Outcome", "Report", "present", "silent", "write_picture"]

BLUE, ORANGE, GREY = "#1f5a94", "#d9711c", "#8a8a8a"


class Report(Protocol):
    """Says what part is done (0 to 1) and what is going on."""

    def __call__(self, done: float, doing: str) -> None:
        """Show the state."""


def silent(done: float, doing: str) -> None:
    """A `Report` that shows nothing."""


@dataclass(slots=True)
class Outcome:
    """What an application found: rows of a name and a value, and ``draw``, which fills a matplotlib figure."""

    title: str
    draw: Callable[[Any], None]
    size: tuple[float, float] = (12.0, 4.2)
    rows: list[tuple[str, str]] = field(default_factory=list)

    def add(self, name: str, value: str) -> None:
        """One more row."""
        self.rows.append((name, value))


@contextmanager
def _progress(console: Console) -> Iterator[Report]:
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=None), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        bar = progress.add_task("compiling", total=1.0)

        def report(done: float, doing: str) -> None:
            progress.update(bar, completed=done, description=doing)

        yield report


def write_picture(outcome: Outcome, path: Path) -> bool:
    """Write the outcome's figure as a PNG; false where matplotlib is not installed."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=outcome.size, dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    outcome.draw(figure)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
    return True


def present(run: Callable[[bool, Report], Outcome], name: str, description: str | None) -> None:
    """The command line of an application: run it, print what it found, write its picture, and exit."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.applications.{name}", description=description)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument(
        "--output", type=Path, default=Path("applications-output"), metavar="FOLDER", help="for the PNG"
    )
    options = parser.parse_args()
    console = Console()
    with _progress(console) as report:
        outcome = run(options.quick, report)
    table = Table(box=box.SIMPLE, show_edge=False, show_header=False, title=outcome.title, title_justify="left")
    for row in outcome.rows:
        table.add_row(*map(Text, row))
    console.print(table)
    path = options.output / f"{name}.png"
    drawn = write_picture(outcome, path)
    console.print(f"picture: {path}" if drawn else "no picture: matplotlib is not installed", highlight=False)
    sys.exit(0)
