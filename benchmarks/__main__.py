"""The command line of ``python -m benchmarks``."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

__all__ = ["main"]

# Read by BLAS, OpenMP and Numba when they load, so before NumPy is imported.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)


PEERS = ("torch", "jax", "numexpr")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="run the cases whose name contains TEXT")
    parser.add_argument("--dtypes", nargs="+", choices=("float32", "float64"), default=["float32", "float64"])
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=PEERS, help="beside NumPy")
    parser.add_argument("--threads", type=int, default=0, help="threads for every contender (default: all cores)")
    parser.add_argument("--seconds", type=float, default=0.5, help="time to spend on each contender of each case")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample to FILE")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks, those of loops too; the exit status is 1 if a result is wrong."""
    options = _options(arguments)
    if options.threads:
        for variable in THREAD_VARIABLES:
            os.environ[variable] = str(options.threads)
        if options.threads == 1:
            os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

    from rich.console import Console

    import tcdsl as tc
    from benchmarks.cases import CASES
    from benchmarks.loops.__main__ import CASES as LOOPS
    from benchmarks.loops.__main__ import main as time_loops
    from benchmarks.machine import describe_machine
    from benchmarks.measure import WrongResultError, measure, peers_at_hand
    from benchmarks.report import show, write_json

    console = Console()
    peers = peers_at_hand(options.peers)
    chosen = [(case, dtype) for case in CASES if options.only in case.name for dtype in options.dtypes]
    threads = options.threads or os.cpu_count() or 1
    measurements = []
    try:
        with tc.config(threads=options.threads), console.status("") as status:
            for case, dtype in chosen:
                status.update(f"{case.name}, {dtype}")
                measurements.append(measure(case, dtype, peers, options.seconds, threads))
    except WrongResultError as error:
        console.print(f"[red]{error}[/]")
        return 1
    machine = describe_machine(options.threads)
    if measurements:
        show(console, machine, measurements)
    if options.json:
        write_json(options.json, machine, measurements)
    if not any(options.only in name for name in LOOPS):
        return 0
    peers_of_loops = [peer for peer in ("numba", *options.peers) if peer != "numexpr"]
    with tc.config(threads=options.threads):
        return time_loops(["--only", options.only, "--peers", *peers_of_loops])


if __name__ == "__main__":
    sys.exit(main())
