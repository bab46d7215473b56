"""What a decorated function read from its surroundings while it was staged, to be compared at the next call.

A re-run notebook cell that changes a global takes effect, because the program that was staged with the old value no
longer matches.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tcdsl.indices import IndexLetter

__all__ = ["Surroundings"]

_MISSING = object()


@dataclass(frozen=True, slots=True)
class _Reading:
    """One name, or attribute chain such as ``settings.stride``, and the value that staging saw."""

    names: tuple[str, ...]
    cell: CellType | None
    globals: dict[str, Any]
    seen: Any

    def current(self) -> Any:
        root, *attributes = self.names
        if self.cell is not None:
            try:
                value = self.cell.cell_contents
            except ValueError:
                return _MISSING
        else:
            value = self.globals.get(root, _MISSING)
        for attribute in attributes:
            value = getattr(value, attribute, _MISSING)
        return value

    def unchanged(self) -> bool:
        return _same(self.seen, self.current())


def _same(seen: Any, now: Any) -> bool:
    if seen is now:
        return not isinstance(now, list | dict | set)
    if type(seen) is not type(now) or isinstance(now, np.ndarray | ModuleType | FunctionType | type):
        # Arrays are inputs, read at every call; their type and rank are checked with the other arguments.
        return isinstance(seen, np.ndarray) and isinstance(now, np.ndarray)
    try:
        return bool(seen == now)
    except Exception:  # a comparison that raises says that the values are not plainly equal
        return False


def _snapshot(value: Any) -> Any:
    # Containers may be changed in place, so their present contents are kept.
    return copy.deepcopy(value) if isinstance(value, list | dict | set) else value


class Surroundings:
    """The globals and closure values that a function names: `read` them at staging, `unchanged` asks later."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef, own: frozenset[str]) -> None:
        self._function = function
        chains: dict[tuple[str, ...], None] = {}
        for node in ast.walk(definition):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in own:
                chains[(node.id,)] = None
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                chain = _chain(node)
                if chain is not None and chain[0] not in own:
                    chains[chain] = None
        self._chains = tuple(chains)

    def read(self) -> tuple[_Reading, ...]:
        """The readings as of now: what later calls compare with."""
        code = self._function.__code__
        cells = dict(zip(code.co_freevars, self._function.__closure__ or (), strict=True))
        readings = []
        for chain in self._chains:
            reading = _Reading(chain, cells.get(chain[0]), self._function.__globals__, None)
            value = reading.current()
            if isinstance(value, IndexLetter) or (
                len(chain) > 1 and not isinstance(value, bool | int | float | str | tuple)
            ):
                continue
            readings.append(_Reading(chain, reading.cell, reading.globals, _snapshot(value)))
        return tuple(readings)


def _chain(node: ast.Attribute) -> tuple[str, ...] | None:
    names = [node.attr]
    base: ast.expr = node.value
    while isinstance(base, ast.Attribute):
        names.append(base.attr)
        base = base.value
    return (base.id, *reversed(names)) if isinstance(base, ast.Name) else None
