"""The command line of ``python -m benchmarks.models``: a first call, and calls beside PyTorch's, in turns."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import tcdsl as tc
from benchmarks.machine import describe_machine
from benchmarks.models.texts import TEXTS, graph
from benchmarks.models.torch_peer import model

__all__ = ["main"]


def _seconds(function: Callable[[], object]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def _row(name: str, batch: int, rounds: int, threads: int) -> tuple[str, ...]:
    started = time.perf_counter()
    ours = graph(name, batch)
    shape = (64, batch, 128) if name == "lstm" else (batch, 3, 224, 224)
    x = np.random.default_rng(1).standard_normal(shape, np.float32)
    found = ours(x)
    first = time.perf_counter() - started
    theirs = model(name, dict(ours.variables), threads)
    wanted = theirs(x)
    error = np.abs(found - wanted).max() / np.abs(wanted).max()
    if error > 1e-4:
        raise ValueError(f"{name} differs from PyTorch by {error:.2g} of the largest value")
    pairs = [(_seconds(lambda: ours(x)), _seconds(lambda: theirs(x))) for _ in range(rounds)]
    mine, other = (1e3 * statistics.median(times) for times in zip(*pairs, strict=True))
    ratio = statistics.median(one / two for one, two in pairs)
    return name, str(batch), *(f"{each:.3g}" for each in (first, mine, other, ratio))


def main(arguments: list[str] | None = None) -> None:
    """Run and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.models", description=__doc__)
    parser.add_argument("--only", help="models whose name contains this text")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    console = Console()
    console.print(describe_machine(options.threads))
    table = Table("model", "batch", "first call, s", "tcdsl, ms", "PyTorch, ms", "ratio", box=box.SIMPLE)
    with tc.config(threads=options.threads):
        for name, batch in TEXTS:
            if options.only is None or options.only in name:
                table.add_row(*_row(name, batch, options.rounds, options.threads))
    console.print(table)


if __name__ == "__main__":
    main()
