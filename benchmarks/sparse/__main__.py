"""How gradients of programs with sparse parts grow with the size, beside PyTorch and JAX, on one thread each."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.__main__ import THREAD_VARIABLES

if TYPE_CHECKING:
    from benchmarks.sparse.growth import Growth

__all__ = ["main"]


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="run the programs whose title contains TEXT")
    parser.add_argument("--peers", nargs="*", choices=("torch", "jax"), default=["torch", "jax"])
    parser.add_argument("--largest", type=int, default=10**6, metavar="SIZE", help="leave larger sizes out")
    parser.add_argument("--seconds", type=float, default=0.2, help="time to spend on each contender at each size")
    parser.add_argument("--picture", type=Path, default=Path("sparse-growth.png"), metavar="FILE", help="where to draw")
    return parser.parse_args(arguments)


def _table(growth: Growth) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    table.add_column("size", justify="right")
    for name in growth.seconds:
        table.add_column(name, justify="right")
    for size in growth.case.sizes:
        if size in growth.seconds["tcdsl"]:
            cells = [f"{1e3 * taken[size]:.3f}" if size in taken else "" for taken in growth.seconds.values()]
            table.add_row(f"{size:,}", *cells)
    slopes = [growth.exponent(name) for name in growth.seconds]
    table.add_section()
    table.add_row("grows by size to the", *("" if slope is None else f"{slope:.1f}" for slope in slopes))
    return table


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if gradients differ."""
    options = _options(arguments)
    # Read when the libraries load. How many threads there are says nothing about how the work grows.
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

    from rich.console import Console

    from benchmarks.sparse.cases import CASES
    from benchmarks.sparse.growth import WrongGradientError, measure, peers_at_hand
    from benchmarks.sparse.picture import draw

    console = Console()
    peers = peers_at_hand(options.peers)
    growths = []
    for case in CASES:
        if options.only not in case.title:
            continue
        try:
            growth = measure(case, peers, options.seconds, options.largest)
        except WrongGradientError as error:
            console.print(f"[red]{error}[/]")
            return 1
        console.print(f"[bold]{growth.case.title}[/], milliseconds per gradient", highlight=False)
        console.print(_table(growth))
        growths.append(growth)
    if growths and importlib.util.find_spec("matplotlib") is not None:
        draw(growths, options.picture)
        console.print(f"drawn to {options.picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
