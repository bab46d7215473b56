"""The command line of ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

__all__ = ["main"]

# Read by BLAS, OpenMP and Numba when they load, so before NumPy is imported.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

PEERS = ("numpy", "torch", "jax")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="run the cases whose name contains TEXT")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"), default=["float32"])
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS)
    parser.add_argument("--what", choices=("values", "adjoints", "both"), default="both")
    parser.add_argument("--threads", type=int, default=0, help="threads for every contender (default: all cores)")
    parser.add_argument("--seconds", type=float, default=0.5, help="time to spend on each contender of each case")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample to FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="fail on what is worse than in FILE by a tenth")
    parser.add_argument("--loss", type=float, default=0.1, metavar="SHARE", help="by another share than a tenth")
    parser.add_argument("--chart", type=Path, metavar="FILE", help="also draw the ratios to the fastest peer")
    parser.add_argument("--loops", action="store_true", help="run those of `python -m benchmarks.loops` too")
    return parser.parse_args(arguments)


def _hold_to(threads: int) -> None:
    # Before any of the contenders is imported.
    for variable in THREAD_VARIABLES:
        os.environ[variable] = str(threads)
    if hasattr(os, "sched_setaffinity"):
        # Not all heed variables.
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks; the exit status is 1 if a result is wrong, or worse than an earlier one."""
    options = _options(arguments)
    if options.threads:
        _hold_to(options.threads)

    from rich.console import Console

    import tcdsl as tc
    from benchmarks.cases import CASES
    from benchmarks.machine import describe_machine
    from benchmarks.measure import WrongResultError, limits, measure, peers_at_hand
    from benchmarks.report import draw, line, losses, record, show

    console = Console()
    peers = peers_at_hand(options.peers)
    threads = options.threads or os.cpu_count() or 1
    chosen = [
        (case, dtype, adjoints)
        for case in CASES
        if options.only in case.name
        for dtype in options.dtypes
        for adjoints in (False, True)
        if options.what in ("both", "adjoints" if adjoints else "values") and (case.adjoints or not adjoints)
    ]
    measurements = []
    # First calls are cold ones.
    with tempfile.TemporaryDirectory() as folder, tc.config(threads=options.threads, cache_dir=folder):
        machine = limits(options.dtypes, threads)
        try:
            with console.status("") as status:
                for case, dtype, adjoints in chosen:
                    status.update(f"{case.name}, {dtype}")
                    measurements.append(measure(case, dtype, peers, options.seconds, machine, adjoints=adjoints))
                    console.print(line(measurements[-1]), highlight=False)
        except WrongResultError as error:
            console.print(f"[red]{error}[/]")
            return 1
    found = record(describe_machine(options.threads), measurements)
    if measurements:
        show(console, found["machine"], measurements)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    if options.chart:
        draw(options.chart, found)
    worse = losses(options.compare, found, options.loss) if options.compare else []
    for each in worse:
        console.print(f"[red]{each}[/]", highlight=False)
    if options.loops:
        from benchmarks.loops.__main__ import main as time_loops

        peers_of_loops = [peer for peer in ("numba", *options.peers) if peer != "numpy"]
        with tc.config(threads=options.threads):
            time_loops(["--only", options.only, "--peers", *peers_of_loops])
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
