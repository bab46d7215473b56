"""How the time of a gradient grows with the size: measured in turn, compared first, fitted on logarithmic axes."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.sparse.cases import Case
from benchmarks.timing import alternate

__all__ = ["Growth", "WrongGradientError", "exponent", "measure", "peers_at_hand"]

# 80 megabytes are enough to see how it grows.
_MOST_MATRIX_CELLS = 10**7
_LONGEST_SECONDS = 0.5
_TOLERANCE = 1e-9


class WrongGradientError(Exception):
    """A contender computes something else; its time would mean nothing."""


@dataclass(frozen=True, slots=True)
class Growth:
    """Seconds per call by contender and size; contenders drop out where they take too much memory or time."""

    case: Case
    seconds: Mapping[str, Mapping[int, float]]

    def exponent(self, contender: str) -> float | None:
        """By which power of the size the contender's time grows, at its largest sizes."""
        return exponent(self.seconds[contender])


def exponent(seconds: Mapping[int, float]) -> float | None:
    """The slope through the last decade of sizes on logarithmic axes; ``None`` for fewer than three sizes."""
    sizes = sorted(seconds)
    last = [size for size in sizes if size * 11 >= sizes[-1]] if sizes else []
    if len(last) < 3:
        return None
    slope, _ = np.polyfit(np.log(last), np.log([seconds[size] for size in last]), 1)
    return float(slope)


def peers_at_hand(wanted: list[str]) -> dict[str, ModuleType]:
    """The peers that are wanted and installed."""
    return {
        name: importlib.import_module(f"benchmarks.sparse.{name}_peer")
        for name in ("torch", "jax")
        if name in wanted and importlib.util.find_spec(name) is not None
    }


def _calls(case: Case, size: int, peers: Mapping[str, Any], going: list[str]) -> dict[str, Callable[[], Any]]:
    arguments, configuration = case.arguments(size)
    calls = {"tcdsl": case.gradient(size)}
    for name, peer in peers.items():
        if name in going and not (case.matrix and size * size > _MOST_MATRIX_CELLS):
            calls[name] = peer.gradient(case.name, case.argnum, arguments, configuration)
    return calls


def measure(case: Case, peers: Mapping[str, Any], seconds: float, largest: int) -> Growth:
    """Compare, then time, size by size up to ``largest``. Raises `WrongGradientError` if two gradients differ."""
    found: dict[str, dict[int, float]] = {name: {} for name in ("tcdsl", *peers)}
    for size in [size for size in case.sizes if size <= largest]:
        going = [name for name in found if all(taken < _LONGEST_SECONDS for taken in found[name].values())]
        calls = _calls(case, size, peers, going)
        wanted = np.asarray(calls["tcdsl"]())
        for name, call in calls.items():
            difference = np.max(np.abs(np.asarray(call()) - wanted)) / max(np.max(np.abs(wanted)), 1e-300)
            if not difference <= _TOLERANCE:
                raise WrongGradientError(f"{name} and tcdsl differ by {difference:.1e} in {case.title}, size {size}")
        for name, timing in alternate(calls, seconds).items():
            found[name][size] = timing.median
    return Growth(case, found)
