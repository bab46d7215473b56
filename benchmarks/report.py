"""Results as a table for people and as JSON for programs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Measurement

__all__ = ["show", "write_json"]


def _moved_bytes(measurement: Measurement) -> int:
    return measurement.case.moved * np.dtype(measurement.dtype).itemsize


def _reached(measurement: Measurement, seconds: float) -> str:
    if measurement.case.limit == "operations":
        return f"{measurement.case.operations / seconds / 1e9:.1f} GFLOP/s"
    return f"{_moved_bytes(measurement) / seconds / 1e9:.1f} GB/s"


def _of_limit(measurement: Measurement, seconds: float) -> str:
    return "" if measurement.limit is None else f"{measurement.limit / seconds:.0%}"


def show(console: Console, machine: dict[str, Any], measurements: Sequence[Measurement]) -> None:
    """Print a row for each contender of each case; ``/ tcdsl`` is how many times longer it takes than tcdsl.

    The limit is the longer of a copy of as many bytes and of tcdsl's arithmetic on cached memory, where both are known.
    """
    console.print(
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads, Python {machine['python']}"
    )
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    console.print(versions, highlight=False)
    table = Table(box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0), title="milliseconds per call")
    table.add_column("case")
    table.add_column("library")
    for heading in ("median", "fastest", "/ tcdsl", "reaches", "of limit", "error"):
        table.add_column(heading, justify="right")
    for measurement in measurements:
        titles = [
            measurement.case.computation,
            f"{measurement.case.extents} {measurement.dtype}",
            f"limit: {measurement.case.limit}",
        ]
        rows = [
            (
                name,
                f"{1e3 * timing.median:.3f}",
                f"{1e3 * timing.minimum:.3f}",
                _coloured(measurement.ratio(name)) if name != "tcdsl" else "",
                _reached(measurement, timing.median),
                _of_limit(measurement, timing.median),
                f"{measurement.errors[name]:.0e}",
            )
            for name, timing in measurement.timings.items()
        ]
        for title, row in itertools.zip_longest(titles, rows):
            table.add_row(title or "", *(row or ()))
        table.add_section()
    console.print(table)


def _coloured(ratio: float) -> str:
    return f"[{'green' if ratio >= 1 else 'red'}]{ratio:.2f}[/]"


def write_json(path: Path, machine: dict[str, Any], measurements: Sequence[Measurement]) -> None:
    """Everything measured, every sample included."""
    cases = [
        {
            "case": measurement.case.name,
            "dtype": measurement.dtype,
            "operations": measurement.case.operations,
            "bytes": _moved_bytes(measurement),
            "limit": measurement.case.limit,
            "limit_seconds": measurement.limit,
            "contenders": {
                name: {
                    "median": timing.median,
                    "minimum": timing.minimum,
                    "calls_per_sample": timing.calls,
                    "samples": timing.samples,
                    "error": measurement.errors[name],
                }
                for name, timing in measurement.timings.items()
            },
        }
        for measurement in measurements
    ]
    path.write_text(json.dumps({"machine": machine, "cases": cases}, indent=1) + "\n", encoding="utf-8")
