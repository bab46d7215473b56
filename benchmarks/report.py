"""Results as a table for people, as JSON for programs, as a chart, and beside those of an earlier run."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Measurement

__all__ = ["draw", "line", "losses", "mean_ratio", "record", "show"]

_MOST = 4.0  # What a ratio counts at most.
_LOSS = 0.1


def mean_ratio(measurements: Sequence[Measurement]) -> float | None:
    """The geometric mean of the ratios to the fastest peer, each at most 4."""
    logs = [math.log(min(m.ratio, _MOST)) for m in measurements if m.ratio is not None]
    return math.exp(sum(logs) / len(logs)) if logs else None


def line(m: Measurement) -> str:
    """One case in short, for those who wait for the table."""
    peer = "" if m.best is None else f", {m.best} {1e3 * m.timings[m.best].median:.3f}"
    return f"{m.name}: {1e3 * m.timings['tcdsl'].median:.3f} ms{peer}"


def show(console: Console, machine: dict[str, Any], measurements: Sequence[Measurement]) -> None:
    """Print a row for each case: ``peer / ours`` is how many times longer the fastest peer takes than tcdsl.

    The limit is the longer of copying as many bytes and of multiply-adds from registers.
    """
    console.print(
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads, Python {machine['python']}"
    )
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    console.print(versions, highlight=False)
    table = Table(box=box.SIMPLE, show_edge=False, padding=(0, 1, 0, 0), title="milliseconds per call")
    table.add_column("case")
    for heading in ("tcdsl", "fastest peer", "peer / ours", "of limit", "first call", "error"):
        table.add_column(heading, justify="right")
    for m in measurements:
        best = "" if m.best is None else f"{m.best} {1e3 * m.timings[m.best].median:.3f}"
        table.add_row(
            m.name + (" (disturbed)" if m.foreign is not None and m.foreign > _LOSS else ""),
            f"{1e3 * m.timings['tcdsl'].median:.3f}",
            best,
            "" if m.ratio is None else f"[{'green' if m.ratio >= 1 else 'red'}]{m.ratio:.2f}[/]",
            f"{m.reached:.0%}",
            f"{1e3 * m.first:.0f}",
            f"{m.errors['tcdsl']:.0e}",
        )
    console.print(table)
    for title, adjoints in (("values", False), ("adjoints", True)):
        mean = mean_ratio([m for m in measurements if m.adjoints == adjoints])
        if mean is not None:
            console.print(f"{title}: {mean:.2f} x the fastest peer, geometric mean, ratios count at most {_MOST:.0f}")


def record(machine: dict[str, Any], measurements: Sequence[Measurement]) -> dict[str, Any]:
    """Everything measured, every sample included, for JSON."""
    cases = {
        m.name: {
            "operations": m.case.operations,
            "cells": m.case.moved,
            "limit": m.limit,
            "first": m.first,
            "ratio": m.ratio,
            "foreign": m.foreign,
            "tries": m.tries,
            "contenders": {
                name: {
                    "median": timing.median,
                    "minimum": timing.minimum,
                    "calls_per_sample": timing.calls,
                    "samples": timing.samples,
                    "error": m.errors[name],
                }
                for name, timing in m.timings.items()
            },
        }
        for m in measurements
    }
    return {"machine": machine, "cases": cases}


def losses(path: Path, found: dict[str, Any], most: float = _LOSS) -> list[str]:
    """What is worse than in the record at ``path`` by more than a share of ``most``, a line each.

    Times are compared by their ratio to the fastest peer, so that the machine may be another; first calls where it is
    the same.
    """
    earlier = json.loads(path.read_text(encoding="utf-8"))
    same = earlier["machine"]["processor"] == found["machine"]["processor"]
    lines = []
    for name, case in found["cases"].items():
        before = earlier["cases"].get(name)
        if before is None:
            continue
        pairs = [("peer / ours", before["ratio"], case["ratio"])]
        if same:
            pairs.append(("1 / first call", 1 / before["first"], 1 / case["first"]))
        lines += [
            f"{name}: {title} was {then:.3g} and is {now:.3g}"
            for title, then, now in pairs
            if then is not None and now is not None and now < (1 - most) * then
        ]
    return lines


def draw(path: Path, record_of_run: dict[str, Any]) -> None:
    """A chart of all ratios, losing cases too."""
    from matplotlib.figure import Figure

    cases = {name: case["ratio"] for name, case in record_of_run["cases"].items() if case["ratio"] is not None}
    ordered = sorted(cases.items(), key=lambda item: item[1])
    figure = Figure(figsize=(8, 1 + 0.17 * len(ordered)), layout="constrained")
    axes = figure.add_subplot()
    ratios = [ratio for _, ratio in ordered]
    lengths = [ratio - 1 for ratio in ratios]
    axes.barh(
        range(len(ordered)), lengths, left=1, color=["tab:green" if ratio >= 1 else "tab:red" for ratio in ratios]
    )
    axes.set_yticks(range(len(ordered)), [name for name, _ in ordered], fontsize=6)
    axes.set_xscale("log", base=2)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.margins(y=0.005)
    machine = record_of_run["machine"]
    where = f"{machine['processor']}, {machine['threads']} thread{'' if machine['threads'] == 1 else 's'}"
    axes.set_title(f"how many times longer the fastest peer takes\n{where}")
    axes.tick_params(axis="x", top=True, labeltop=True)
    figure.savefig(path)
