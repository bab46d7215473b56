"""The command line of ``python -m benchmarks.small``: ratios to fixed work, and what has become worse.

On two cores beside a load of 10 to 15, of ten processes the worst ratio of a case was between 0.83 and 0.98 of its
median, and the worst of two processes' better ones above 0.84: ``--loss 0.25`` is what such a machine holds.

A process has many turns of a call, and only one first call. In six processes beside a load of 16 that was between 0.92
and 1.09 of its median. From day to day the same code differs more, 0.74 once in all three processes: so first calls may
lose a tenth more.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

__all__ = ["best", "losses", "main", "middle"]

_RECORDED = Path(__file__).with_name("ratios.json")
_PROCESSES = 5  # whose medians are recorded.
_MORE_OF_FIRST_CALLS = 0.1
Ratios = dict[str, dict[str, float]]


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; the exit status is 1 if something is worse than recorded in each of three processes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.small", description=__doc__)
    parser.add_argument("--compare", type=Path, default=_RECORDED, metavar="FILE", help="with the ratios in FILE")
    parser.add_argument("--loss", type=float, default=0.1, metavar="SHARE", help="fail where more than this is lost")
    parser.add_argument("--record", action="store_true", help="write what is measured to FILE instead")
    options = parser.parse_args(arguments)
    recorded: dict[str, Ratios] = json.loads(options.compare.read_text()) if options.compare.exists() else {}
    where = _machine()
    if options.record:
        found = middle([_run() for _ in range(_PROCESSES)])
        options.compare.write_text(json.dumps(recorded | {where: found}, indent=1, sort_keys=True) + "\n")
        return 0
    found, earlier = best(_run(), _run()), recorded.get(where)
    if earlier is not None and losses(earlier, found, options.loss):
        # A disturbed process tells nothing; code that has become slower is so in all.
        found = best(found, _run())
    worse = [] if earlier is None else losses(earlier, found, options.loss)
    notes = [f"{options.compare.name} has no ratios for {where}: --record writes them"] if earlier is None else worse
    _show(found, earlier, notes)
    return 1 if worse else 0


def losses(recorded: Ratios, found: Ratios, most: float) -> list[str]:
    """What is worse than ``recorded`` by more than a share of ``most``, first calls by a tenth more; a line each."""
    shares = {"call": most, "first call": most + _MORE_OF_FIRST_CALLS}
    return [
        f"{name}: work / {what} was {then:.3g} and is {found[name][what]:.3g}"
        for name, ratios in recorded.items()
        for what, then in ratios.items()
        if name in found and found[name][what] < (1 - shares[what]) * then
    ]


def best(one: Ratios, other: Ratios) -> Ratios:
    """The better of two: what others run on the machine makes ratios worse."""
    return {name: {what: max(each, other[name][what]) for what, each in ratios.items()} for name, ratios in one.items()}


def middle(runs: Sequence[Ratios]) -> Ratios:
    """The median of each ratio."""
    return {
        name: {what: round(statistics.median(run[name][what] for run in runs), 4) for what in ratios}
        for name, ratios in runs[0].items()
    }


def _machine() -> str:
    # Ratios of loops depend on the processor, those of first calls on Python, too.
    from benchmarks.machine import describe_machine
    from tcdsl.targets.cpu.machine.processor import machine

    host, python = machine(), platform.python_version_tuple()
    vectors = f"{host.vector_bytes} bytes, {host.registers} registers"
    return f"{describe_machine(1)['processor']}, vectors of {vectors}, Python {python[0]}.{python[1]}"


def _run() -> Ratios:
    command = [sys.executable, "-m", "benchmarks.small.process"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    ratios: Ratios = json.loads(done.stdout)
    return ratios


def _show(found: Ratios, earlier: Ratios | None, notes: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("case", *(f"work / {what}" for what in ("call", "first call")), title="ratios, and to those recorded")
    for name, ratios in found.items():
        before = {} if earlier is None else earlier.get(name, {})
        shares = {what: f" ({each / before[what]:.2f})" if what in before else "" for what, each in ratios.items()}
        table.add_row(name, *(f"{ratios[what]:.3g}{shares[what]}" for what in ("call", "first call")))
    console = Console(soft_wrap=True)
    console.print(table)
    for note in notes:
        console.print(note, highlight=False)


if __name__ == "__main__":
    sys.exit(main())
