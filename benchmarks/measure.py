"""Run one case: make inputs, compare the contenders' results, then time them in turn."""

from __future__ import annotations

import importlib
import importlib.util
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tcdsl as tc
from benchmarks import numpy_peer
from benchmarks.cases import Case
from benchmarks.machine import ForeignTime, copy_speed, multiply_add_peak
from benchmarks.timing import Timing, alternate

__all__ = [
    "Limits",
    "Measurement",
    "WrongResultError",
    "limits",
    "measure",
    "peers_at_hand",
    "values_and_adjoints",
]

# Relative to the largest number in the result: rounding grows with the length of sums.
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}
_DISTURBED = 0.1
_TRIES = 3


class WrongResultError(Exception):
    """The contenders compute different things; their times would mean nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Operations and bytes a second of the machine, by element type, on the threads of the run."""

    operations: dict[str, float]
    copied: float


def limits(dtypes: Sequence[str], threads: int) -> Limits:
    """What the machine reaches now."""
    cores = min(threads, os.cpu_count() or 1)
    return Limits({dtype: cores * multiply_add_peak(dtype) for dtype in dtypes}, copy_speed(threads))


@dataclass(frozen=True, slots=True)
class Measurement:
    """One case in one type, values or ``adjoints``: each contender's timing, and its largest difference from the first
    peer relative to the result; the processor seconds of tcdsl's ``first`` call; the share of the processors that
    others took, and how often the case was run because of them.
    """

    case: Case
    dtype: str
    adjoints: bool
    timings: dict[str, Timing]
    errors: dict[str, float]
    first: float
    limit: float
    foreign: float | None = None
    tries: int = 1

    @property
    def name(self) -> str:
        """Unique in a run."""
        return f"{self.case.name}{', adjoints' if self.adjoints else ''}, {self.dtype}"

    @property
    def best(self) -> str | None:
        """The fastest peer."""
        peers = [name for name in self.timings if name != "tcdsl"]
        return min(peers, key=lambda name: self.timings[name].median, default=None)

    @property
    def ratio(self) -> float | None:
        """How many times longer the fastest peer takes than tcdsl."""
        return None if self.best is None else self.timings[self.best].median / self.timings["tcdsl"].median

    @property
    def reached(self) -> float:
        """The share of the machine's limit."""
        return self.limit / self.timings["tcdsl"].median


def peers_at_hand(wanted: Sequence[str]) -> dict[str, Any]:
    """The modules of those peers that are wanted and installed."""
    found = {"numpy": numpy_peer} if "numpy" in wanted else {}
    return found | {
        name: importlib.import_module(f"benchmarks.{name}_peer")
        for name in ("torch", "jax")
        if name in wanted and importlib.util.find_spec(name) is not None
    }


def _contenders(case: Case, inputs: list[Any], peers: dict[str, Any], adjoints: bool) -> dict[str, Callable[[], Any]]:
    if not adjoints:
        functions = {name: peer.FUNCTIONS.get(case.computation) for name, peer in peers.items()}
        ours: Callable[..., Any] = case.program
    else:
        functions = {name: peer.adjoints(case.computation, case.adjoints) for name, peer in peers.items()}
        ours = values_and_adjoints(case.program, case.adjoints)
    contenders: dict[str, Callable[[], Any]] = {"tcdsl": partial(ours, *inputs)}
    for name, function in functions.items():
        if function is not None:
            contenders[name] = partial(function, *map(peers[name].convert, inputs))
    return contenders


def values_and_adjoints(program: Callable[..., Any], wrt: tuple[int, ...]) -> Callable[..., Any]:
    """A function of the inputs and of the adjoint of the result: the values, and the adjoints of the inputs ``wrt``."""

    def called(*given: Any) -> Any:
        def of_some(*some: Any) -> Any:
            replaced = dict(zip(wrt, some, strict=True))
            return program(*(replaced.get(k, each) for k, each in enumerate(given[:-1])))

        values, back = tc.vjp(of_some, *(given[k] for k in wrt))
        return values, *back(given[-1])

    return tc.op(called)


def _difference(result: Any, reference: Any) -> float:
    results, references = (each if isinstance(each, tuple | list) else (each,) for each in (result, reference))
    largest = 0.0
    for ours, theirs in zip(map(np.asarray, results), map(np.asarray, references), strict=True):
        if ours.shape != theirs.shape or ours.dtype.kind != theirs.dtype.kind:
            return float("inf")
        largest = max(largest, float(np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-30)))
    return largest


def measure(
    case: Case, dtype: str, peers: dict[str, Any], seconds: float, machine: Limits, *, adjoints: bool = False
) -> Measurement:
    """Compare, then time. `WrongResultError` if a result is off by more than rounding.

    Where others take more than a tenth of the processors meanwhile, the case is run again, twice at most.
    """
    inputs: list[Any] = case.inputs(dtype)
    if adjoints:
        result = case.program(*inputs)
        inputs.append(np.random.default_rng(1).standard_normal(result.shape).astype(result.dtype))
    contenders = _contenders(case, inputs, peers, adjoints)
    begin = time.process_time()
    ours = contenders["tcdsl"]()
    first = time.process_time() - begin
    results = {name: ours if name == "tcdsl" else contender() for name, contender in contenders.items()}
    reference = results[next((name for name in results if name != "tcdsl"), "tcdsl")]
    errors = {name: _difference(result, reference) for name, result in results.items()}
    del results
    for name, error in errors.items():
        if not error <= TOLERANCE[dtype]:
            kind = "the adjoints of " if adjoints else ""
            raise WrongResultError(f"{name} differs by {error:.1e} in {kind}{case.name}, {dtype}")
    work, moved = (2, 3) if adjoints else (1, 1)
    copied = moved * case.moved * np.dtype(dtype).itemsize / machine.copied
    limit = max(copied, work * case.operations / machine.operations[dtype])
    tries = 0
    foreign: float | None = 1.0
    while foreign is not None and foreign > _DISTURBED and tries < _TRIES:
        others = ForeignTime()
        timings = alternate(contenders, seconds)
        foreign = others.share()
        tries += 1
    return Measurement(case, dtype, adjoints, timings, errors, first, limit, foreign, tries)
