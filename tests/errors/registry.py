"""Functions that raise, by name: what modules of faulty programs register."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["registry"]

Fault = Callable[[], Any]


def registry() -> tuple[dict[str, Fault], Callable[[Fault], Fault]]:
    """An empty table, and the decorator that registers a function that raises under its name."""
    faults: dict[str, Fault] = {}

    def fault(function: Fault) -> Fault:
        faults[function.__name__] = function
        return function

    return faults, fault
