"""Where arrays lie."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["HOST", "MemorySpace"]


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """``MemorySpace("host", (1, 0))``: memory that a target can allocate; ``device`` is what DLPack calls it."""

    name: str
    device: tuple[int, int]


HOST = MemorySpace("host", (1, 0))
"""The memory of the process, where NumPy's arrays lie. All arguments and results of calls do."""
