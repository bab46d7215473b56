"""What the names of a function hold that is running, read one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from types import CellType, FrameType, FunctionType
from typing import Any

__all__ = ["HeldNames"]


class HeldNames:
    """``HeldNames(frame, parts).get("a", None)``: what the name holds, or the default where it is not bound.

    ``parts`` are functions inside the one that runs in ``frame``. They hold the variables that they read, so most names
    of a statement are found there. Before Python 3.13 ``f_locals`` copies all variables, and in time that is quadratic
    in their number where inner functions read them.
    """

    def __init__(self, frame: FrameType, parts: Iterable[Callable[[], Any] | None]) -> None:
        self._frame = frame
        self._cells: dict[str, CellType] = {}
        for part in parts:
            if isinstance(part, FunctionType):
                self._cells.update(zip(part.__code__.co_freevars, part.__closure__ or (), strict=True))

    def get(self, name: str, default: object) -> object:
        """What ``name`` holds."""
        cell = self._cells.get(name)
        if cell is None:
            return self._all.get(name, default)
        try:
            return cell.cell_contents
        except ValueError:
            return default

    @cached_property
    def _all(self) -> dict[str, Any]:
        return self._frame.f_locals
