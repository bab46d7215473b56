"""The command line of ``python -m benchmarks.first_calls``: each case in fresh processes, cold and then from disk."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["main"]

ROOT = Path(__file__).parent.parent.parent

# Where each library keeps what it compiles, and that it keeps all of it.
_KEPT_IN = ("TCDSL_CACHE_DIR", "JAX_COMPILATION_CACHE_DIR", "NUMBA_CACHE_DIR")
_KEEP_ALL = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0"}

Runs = dict[str, list[dict[str, dict[str, float]]]]


def _process(case: str, library: str, directory: str) -> dict[str, dict[str, float]]:
    command = [sys.executable, "-m", "benchmarks.first_calls.process", case, library]
    variables = {**os.environ, **_KEEP_ALL, **dict.fromkeys(_KEPT_IN, directory)}
    # Bytecode is kept as it is for any installed package.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    variables.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir()) / "tcdsl-first-calls"))
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    result: dict[str, dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return result


def _runs(case: str, library: str, count: int) -> Runs:
    found: Runs = {"compiled": [], "from disk": []}
    for _ in range(count):
        with tempfile.TemporaryDirectory() as directory:
            found["compiled"].append(_process(case, library, directory))
            found["from disk"].append(_process(case, library, directory))
    return found


def _table(results: dict[str, dict[str, Runs]]) -> Any:
    from rich import box
    from rich.table import Table

    from benchmarks.first_calls.process import STAGES

    table = Table(box=box.SIMPLE, title="milliseconds, medians; in the processor's time after the stroke")
    for heading in ("case", "library", ""):
        table.add_column(heading)
    for stage in STAGES:
        table.add_column(stage, justify="right")
    for case, libraries in results.items():
        for library, runs in libraries.items():
            for kind, samples in runs.items():
                cells = []
                for stage in STAGES:
                    elapsed, processor = (
                        1e3 * statistics.median(run[clock][stage] for run in samples)
                        for clock in ("elapsed", "processor")
                    )
                    cells.append(f"{elapsed:.3g} / {processor:.3g}")
                table.add_row(case, library, kind, *cells)
    return table


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if a process fails."""
    from rich.console import Console

    from benchmarks.first_calls.cases import CASES

    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_calls", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="run the cases whose name contains TEXT")
    parser.add_argument("--libraries", nargs="*", default=["tcdsl", "jax", "numba"], help="those that are installed")
    parser.add_argument("--processes", type=int, default=3, help="processes of each kind")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample to FILE")
    options = parser.parse_args(arguments)
    console = Console()
    results: dict[str, dict[str, Runs]] = {}
    try:
        for case, libraries in CASES.items():
            for library in libraries:
                if options.only in case and library in options.libraries and importlib.util.find_spec(library):
                    results.setdefault(case, {})[library] = _runs(case, library, options.processes)
    except RuntimeError as error:
        console.print(str(error), markup=False)
        return 1
    console.print(_table(results))
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
