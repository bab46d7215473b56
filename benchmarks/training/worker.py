"""One process of the benchmark: compare every contender with the formulas, time them in turn, print JSON.

``python -m benchmarks.training.worker '{"peers": ["torch", "jax"], "seconds": 1.0}'``
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.timing import alternate
from benchmarks.training.problem import Contender, Problem, expected, largest_difference, problem

__all__ = ["main"]

# Steps between looks at the clock; in a row, so that work in the background counts.
STEPS = 50
COMPARED_STEPS, COMPARED_RATE = 20, 0.5
TOLERANCE = 1e-4


def _makers(peers: list[str]) -> dict[str, Callable[[Problem], Contender]]:
    network = importlib.import_module("benchmarks.training.network")
    by_hand = importlib.import_module("benchmarks.training.by_hand")
    makers = {
        "tcdsl": network.routine,
        "tcdsl, function bound": network.resident,
        "tcdsl, function called": network.called,
        "numba, by hand": by_hand.contender,
    }
    for name in peers:
        if importlib.util.find_spec(name) is not None:
            makers.update(importlib.import_module(f"benchmarks.training.{name}_peer").CONTENDERS)
    return makers


def main(text: str) -> int:
    """The exit status is 1 if a contender does not compute what the formulas give."""
    options: dict[str, Any] = json.loads(text)
    start = problem()
    contenders = {name: make(start) for name, make in _makers(options["peers"]).items()}
    wanted = expected(start, COMPARED_STEPS, COMPARED_RATE)
    errors = {}
    for name, contender in contenders.items():
        contender.run(COMPARED_STEPS, COMPARED_RATE)
        errors[name] = largest_difference(contender.parameters(), wanted)
    if not max(errors.values()) <= TOLERANCE:
        sys.stdout.write(json.dumps({"errors": errors}) + "\n")
        return 1
    # At rate 0 the numbers stay what they are, however long this takes.
    timings = alternate({name: partial(each.run, STEPS, 0.0) for name, each in contenders.items()}, options["seconds"])
    samples = {name: [sample / STEPS for sample in timing.samples] for name, timing in timings.items()}
    sys.stdout.write(json.dumps({"errors": errors, "samples": samples}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
