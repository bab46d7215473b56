"""Run one case: make inputs, compare every contender's result with NumPy's, then time them in turn."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.timing import Timing, alternate

__all__ = ["Measurement", "WrongResultError", "measure", "peers_at_hand"]

# Relative to the largest number in the result: rounding grows with the length of the sums (at most about a thousand).
TOLERANCE = {"float32": 2e-5, "float64": 1e-12}


class WrongResultError(Exception):
    """A contender computes something else than NumPy; its time would mean nothing."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One case in one dtype: each contender's timing, and its largest difference from NumPy relative to the result."""

    case: Case
    dtype: str
    timings: dict[str, Timing]
    errors: dict[str, float]

    def ratio(self, peer: str) -> float:
        """How many times longer ``peer`` takes than tcdsl."""
        return self.timings[peer].median / self.timings["tcdsl"].median


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


def measure(case: Case, dtype: str, peers: dict[str, Any], seconds: float) -> Measurement:
    """Compare, then time. Raises `WrongResultError` if a result is off by more than rounding explains."""
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(shape).astype(dtype) for shape in case.shapes]
    contenders = _contenders(case, inputs, peers)
    reference = contenders["numpy"]()
    errors = {name: _difference(contender(), reference) for name, contender in contenders.items()}
    for name, error in errors.items():
        if not error <= TOLERANCE[dtype]:
            raise WrongResultError(f"{name} differs from NumPy by {error:.1e} in {case.name}, {dtype}")
    return Measurement(case, dtype, alternate(contenders, seconds), errors)
