"""What a decorated function read from its surroundings while it was staged, to be compared at the next call.

A re-run notebook cell that changes a global takes effect, because the program that was staged with the old value no
longer matches.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import dataclass, replace
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

from tcdsl.indices import IndexLetter

__all__ = ["Reading", "Surroundings"]

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Reading:
    """One name, or attribute chain such as ``settings.stride``, and the value that staging saw.

    ``root`` is where the first name is looked up: a closure's cell, a module's globals, or the method's instance.
    """

    names: tuple[str, ...]
    root: Any
    seen: Any = None

    def current(self) -> Any:
        """The value as it is now."""
        if isinstance(self.root, CellType):
            try:
                value = self.root.cell_contents
            except ValueError:
                return _MISSING
        elif isinstance(self.root, _Instance):
            value = self.root.value
        else:
            value = self.root.get(self.names[0], _MISSING)
        for attribute in self.names[1:]:
            value = getattr(value, attribute, _MISSING)
        return value

    def unchanged(self) -> bool:
        """Whether staging would see the same value now; arrays are inputs, so only that it is still one."""
        return _same(self.seen, self.current())


@dataclass(frozen=True, slots=True)
class _Instance:
    value: Any


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
    """The globals, closure values and attributes that a function names: `read` them at staging, ask later."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef, own: frozenset[str]) -> None:
        self._function = function
        parameters = [*definition.args.posonlyargs, *definition.args.args]
        self._receiver = parameters[0].arg if parameters else ""
        chains: dict[tuple[str, ...], None] = {}
        for node in ast.walk(definition):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                chains[(node.id,)] = None
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                chain = _chain(node)
                if chain is not None:
                    chains[chain] = None
        self._outer = tuple(chain for chain in chains if chain[0] not in own)
        self._attributes = tuple(chain for chain in chains if chain[0] == self._receiver and len(chain) > 1)

    def read(self, receiver: Any = None) -> tuple[Reading, ...]:
        """The readings as of now; ``receiver`` is the instance whose method the function is."""
        code = self._function.__code__
        cells = dict(zip(code.co_freevars, self._function.__closure__ or (), strict=True))
        places = [(chain, cells.get(chain[0], self._function.__globals__)) for chain in self._outer]
        if receiver is not None:
            places.extend((chain, _Instance(receiver)) for chain in self._attributes)
        readings = []
        for chain, root in places:
            reading = Reading(chain, root)
            value = reading.current()
            plain = isinstance(value, bool | int | float | str | tuple | np.ndarray)
            if isinstance(value, IndexLetter) or (len(chain) > 1 and not plain):
                continue
            readings.append(replace(reading, seen=_snapshot(value)))
        return tuple(readings)


def _chain(node: ast.Attribute) -> tuple[str, ...] | None:
    names = [node.attr]
    base: ast.expr = node.value
    while isinstance(base, ast.Attribute):
        names.append(base.attr)
        base = base.value
    return (base.id, *reversed(names)) if isinstance(base, ast.Name) else None
