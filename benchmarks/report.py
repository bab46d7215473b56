"""Results as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Measurement

__all__ = ["show", "write_json"]


def _moved_bytes(measurement: Measurement) -> int:
    return measurement.case.moved * np.dtype(measurement.dtype).itemsize


def _reached(measurement: Measurement) -> str:
    seconds = measurement.timings["tcdsl"].median
    if measurement.case.limit == "operations":
        return f"{measurement.case.operations / seconds / 1e9:.1f} GFLOP/s"
    return f"{_moved_bytes(measurement) / seconds / 1e9:.1f} GB/s"


def show(
    console: Console, machine: dict[str, Any], measurements: Sequence[Measurement], contenders: Sequence[str]
) -> None:
    """Print medians with minima beside them, the ratio to each peer, and what tcdsl reaches of the case's limit."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    console.print(
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads; Python {machine['python']}"
    )
    console.print(versions, highlight=False)
    table = Table(title="milliseconds per call: median (minimum)", title_justify="left")
    table.add_column("case")
    table.add_column("dtype")
    for name in contenders:
        table.add_column(name, justify="right")
    for name in contenders[1:]:
        table.add_column(f"{name} / tcdsl", justify="right")
    table.add_column("tcdsl reaches", justify="right")
    table.add_column("limit")
    table.add_column("max error", justify="right")
    for measurement in measurements:
        times = measurement.timings
        cells = [
            f"{1e3 * t.median:.3f} ({1e3 * t.minimum:.3f})" if (t := times.get(name)) else "-" for name in contenders
        ]
        ratios = [_coloured(measurement.ratio(name)) if name in times else "-" for name in contenders[1:]]
        error = f"{measurement.errors['tcdsl']:.0e}"
        row = (
            measurement.case.name,
            measurement.dtype,
            *cells,
            *ratios,
            _reached(measurement),
            measurement.case.limit,
            error,
        )
        table.add_row(*row)
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
