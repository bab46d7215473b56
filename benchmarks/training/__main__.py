"""A whole training step of the network 2-16-16-1 at batch 100, beside JAX, PyTorch and a loop nest written by hand."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.__main__ import THREAD_VARIABLES

__all__ = ["main"]

ROOT = Path(__file__).parent.parent.parent


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training", description=__doc__)
    parser.add_argument("--peers", nargs="*", choices=("torch", "jax"), default=["torch", "jax"])
    parser.add_argument("--processes", type=int, default=3, help="fresh processes, in each of which all take turns")
    parser.add_argument("--threads", type=int, default=0, help="threads for every contender (default: all cores)")
    parser.add_argument("--seconds", type=float, default=1.0, help="time to spend on each contender in each process")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every sample to FILE")
    return parser.parse_args(arguments)


def _process(module: str, argument: str) -> dict[str, Any]:
    """What a fresh process of ``benchmarks.training`` prints; `RuntimeError` if it fails."""
    command = [sys.executable, "-m", f"benchmarks.training.{module}", argument]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def _table(samples: dict[str, list[float]], errors: dict[str, float], operations: int) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, title="microseconds per step")
    table.add_column("")
    for heading in ("median", "fastest", "/ tcdsl", "fastest / tcdsl's", "GFLOP/s", "error"):
        table.add_column(heading, justify="right")
    ours = samples["tcdsl"]
    for name, found in samples.items():
        median, fastest = statistics.median(found), min(found)
        table.add_row(
            name,
            f"{1e6 * median:.2f}",
            f"{1e6 * fastest:.2f}",
            f"{median / statistics.median(ours):.2f}",
            f"{fastest / min(ours):.2f}",
            f"{operations / median / 1e9:.1f}",
            f"{errors[name]:.0e}",
        )
    return table


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; the exit status is 1 if a contender computes something else."""
    options = _options(arguments)
    if options.threads:
        os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(options.threads)))
        if options.threads == 1:
            os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

    from rich.console import Console

    from benchmarks.machine import describe_machine
    from benchmarks.training.problem import BYTES, OPERATIONS

    console = Console()
    machine = describe_machine(options.threads)
    order = {"peers": options.peers, "seconds": options.seconds}
    try:
        runs = [_process("worker", json.dumps(order)) for _ in range(options.processes)]
    except RuntimeError as error:
        console.print(f"[red]{error}[/]")
        return 1
    samples = {name: [sample for run in runs for sample in run["samples"][name]] for name in runs[0]["samples"]}
    errors = {name: max(run["errors"][name] for run in runs) for name in samples}
    console.print(
        f"{machine['processor']}, {machine['cores']} cores, {machine['threads']} threads; "
        f"{OPERATIONS:,} operations and {BYTES:,} bytes per step, at least"
    )
    console.print(_table(samples, errors, OPERATIONS))
    if options.json:
        result = {"machine": machine, "operations": OPERATIONS, "bytes": BYTES, "runs": runs}
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
