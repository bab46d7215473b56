"""The command line of ``python -m benchmarks.calls``: microseconds for each kind of call, the fastest of many samples.

The ratios are to a repeated call of two arrays in the same process: other programs disturb those less.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import timeit

__all__ = ["import_seconds", "main"]


def main(arguments: list[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calls", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="measure the calls whose name contains TEXT")
    parser.add_argument("--samples", type=int, default=20, help="samples of each kind of call")
    options = parser.parse_args(arguments)

    from rich.console import Console
    from rich.table import Table

    from benchmarks.calls.programs import CALLS

    table = Table("call", "microseconds", "ratio")
    first: float | None = None
    for name, (make, calls) in CALLS.items():
        if options.only not in name and first is not None:
            continue
        call = make()
        timeit.timeit(call, number=calls)
        fastest = min(timeit.repeat(call, number=calls, repeat=options.samples)) / calls
        first = first or fastest
        table.add_row(name, f"{1e6 * fastest:.2f}", f"{fastest / first:.2f}")
    console = Console()
    console.print(table)
    console.print(f"import tcdsl, in a new process, after NumPy: {1e3 * import_seconds():.1f} ms")
    return 0


def import_seconds() -> float:
    """What ``import tcdsl`` takes; NumPy's own import is not ours."""
    code = "import time, numpy; begin = time.perf_counter(); import tcdsl; print(time.perf_counter() - begin)"
    command = [sys.executable, "-c", code]
    return min(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(5))


if __name__ == "__main__":
    sys.exit(main())
