"""Run one case: make inputs, compare every contender's result with NumPy's, then time them in turn."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import tcdsl as tc
from benchmarks import programs
from benchmarks.cases import Case
from benchmarks.timing import Timing, alternate

__all__ = ["Measurement", "WrongResultError", "measure", "peers_at_hand"]

# Relative to the largest number in the result: rounding grows with the length of sums.
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}

_COPYING, _BLOCK, _ROW = "copying", "block", "row"


class WrongResultError(Exception):
    """A contender computes something else than NumPy; its time would mean nothing."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One case in one dtype: each contender's timing, and its largest difference from NumPy relative to the result."""

    case: Case
    dtype: str
    timings: dict[str, Timing]
    errors: dict[str, float]
    copying: Timing
    in_cache: tuple[Timing, Timing] | None
    threads: int

    def ratio(self, peer: str) -> float:
        """How many times longer ``peer`` takes than tcdsl."""
        return self.timings[peer].median / self.timings["tcdsl"].median

    @property
    def limit(self) -> float | None:
        """Seconds: the longer of copying as many bytes as the case moves, and of its arithmetic in cached memory.

        None where one of them is not known.
        """
        if self.in_cache is None:
            return self.copying.median if self.case.limit == "bytes" else None
        block, row = self.in_cache
        arithmetic = self.case.blocks * max(0.0, block.median - row.median) / self.threads
        return max(self.copying.median, arithmetic)


def peers_at_hand(wanted: list[str]) -> dict[str, Any]:
    """The modules of those peers beyond NumPy that are wanted and installed."""
    return {
        name: importlib.import_module(f"benchmarks.{name}_peer")
        for name in ("torch", "jax", "numexpr")
        if name in wanted and importlib.util.find_spec(name) is not None
    }


def _contenders(case: Case, inputs: list[Any], peers: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    contenders: dict[str, Callable[[], Any]] = {
        "tcdsl": partial(case.function, *inputs),
        "numpy": partial(case.numpy, *inputs),
    }
    for name, peer in peers.items():
        if case.computation in peer.FUNCTIONS:
            contenders[name] = partial(peer.FUNCTIONS[case.computation], *map(peer.convert, inputs))
    return contenders


def _difference(result: Any, reference: Any) -> float:
    results = result if isinstance(result, tuple | list) else (result,)
    references = reference if isinstance(reference, tuple | list) else (reference,)
    largest = 0.0
    for ours, theirs in zip(results, references, strict=True):
        array = np.asarray(ours)
        if array.shape != theirs.shape or array.dtype != theirs.dtype:
            return float("inf")
        largest = max(largest, float(np.max(np.abs(array - theirs)) / np.max(np.abs(theirs))))
    return largest


def _limits(case: Case, inputs: list[Any], dtype: str) -> dict[str, Callable[[], Any]]:
    # What is timed for the limit: a copy; a block of the inputs that a cache holds, and what a call costs by itself.
    source = np.zeros(case.moved // 2, dtype)
    limits: dict[str, Callable[[], Any]] = {_COPYING: partial(programs.copied, source, out=np.zeros_like(source))}
    if case.blocks > 1:
        block = [array[: len(array) // case.blocks].copy() for array in inputs]
        limits[_BLOCK] = partial(_on_one_thread, case.function, block)
        limits[_ROW] = partial(_on_one_thread, case.function, [array[:1].copy() for array in inputs])
    return limits


def _on_one_thread(function: Callable[..., Any], inputs: list[Any]) -> Any:
    with tc.config(threads=1):
        return function(*inputs)


def measure(case: Case, dtype: str, peers: dict[str, Any], seconds: float, threads: int) -> Measurement:
    """Compare, then time, on so many ``threads``. `WrongResultError` if a result is off by more than rounding."""
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(shape).astype(dtype) for shape in case.shapes]
    contenders = _contenders(case, inputs, peers)
    reference = contenders["numpy"]()
    errors = {name: _difference(contender(), reference) for name, contender in contenders.items()}
    for name, error in errors.items():
        if not error <= TOLERANCE[dtype]:
            raise WrongResultError(f"{name} differs from NumPy by {error:.1e} in {case.name}, {dtype}")
    limits = _limits(case, inputs, dtype)
    timings = alternate({**contenders, **limits}, seconds)
    of_limits = {name: timings.pop(name) for name in limits}
    in_cache = (of_limits[_BLOCK], of_limits[_ROW]) if case.blocks > 1 else None
    return Measurement(case, dtype, timings, errors, of_limits[_COPYING], in_cache, threads)
