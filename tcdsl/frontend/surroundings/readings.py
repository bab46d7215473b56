"""Names that staging read, with the values that it saw, to be compared at the next call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import CellType, FunctionType, ModuleType
from typing import Any

import numpy as np

__all__ = ["MISSING", "Instance", "ReadCells", "Reading", "is_compared", "snapshot"]

#: What a name that does not exist holds.
MISSING = object()


@dataclass(frozen=True, slots=True)
class Reading:
    """One name, or attribute chain such as ``settings.stride``, and the value that staging saw.

    ``root`` is where the first name is looked up: a closure's cell, a module's globals, or an `Instance`.
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
                return MISSING
        elif isinstance(self.root, Instance):
            value = self.root.value
        else:
            value = self.root.get(self.names[0], MISSING)
        for attribute in self.names[1:]:
            try:
                value = getattr(value, attribute, MISSING)
            except Exception:  # a property that fails; the function may never ask for it
                return MISSING
        return value

    @property
    def place(self) -> tuple[int, str]:
        """The same for names of one place: of ``TABLE`` in the module ``tables``, and of ``tables.TABLE`` elsewhere."""
        *holders, name = self.names
        holder = Reading(tuple(holders), self.root).current() if holders else self.root
        return id(vars(holder) if isinstance(holder, ModuleType) else holder), name

    def unchanged(self) -> bool:
        """Whether staging would see the same value now; arrays are inputs, so only that it is still one."""
        return _same(self.seen, self.current())

    def with_cells(self) -> Reading:
        """The same name, of an array that Python reads while staging."""
        value = self.current()
        return replace(self, seen=ReadCells(value)) if isinstance(value, np.ndarray) else self

    def renewed(self) -> Reading:
        """The same name with the value that it holds now."""
        return replace(self, seen=snapshot(self.current()))


class ReadCells:
    """What an array held when Python read it while staging, which no input of the program brings up to date."""

    __slots__ = ("_copy",)

    def __init__(self, array: np.ndarray) -> None:
        self._copy = np.array(array, order="C")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, np.ndarray):
            return isinstance(other, ReadCells) and self == other._copy
        held = self._copy
        if (held.dtype, held.shape) != (other.dtype, other.shape):
            return False
        # Bit by bit: not-a-number equals itself.
        return bool(not held.dtype.hasobject and held.tobytes() == other.tobytes())

    __hash__ = None  # type: ignore[assignment]


@dataclass(frozen=True, slots=True)
class Instance:
    """The root of chains such as ``self.width``."""

    value: Any


def _same(seen: Any, now: Any) -> bool:
    if isinstance(now, list | dict | set):
        return _same_container(seen, now)
    if seen is now:
        return True
    if isinstance(seen, ReadCells):
        return bool(seen == now)
    if type(seen) is not type(now) or isinstance(now, np.ndarray | ModuleType | FunctionType | type):
        # Arrays are inputs, read at every call; their type and rank are checked with the other arguments.
        return isinstance(seen, np.ndarray) and isinstance(now, np.ndarray)
    try:
        return bool(seen == now)
    except Exception:  # a comparison that raises says that the values are not plainly equal
        return False


def _same_container(seen: Any, now: Any) -> bool:
    # An array in a container became an input as the object that it was, so it must still be that object.
    if type(seen) is not type(now) or len(seen) != len(now):
        return False
    if isinstance(now, list):
        return all(map(_same_item, seen, now))
    if isinstance(now, dict):
        return all(key in seen and _same_item(seen[key], item) for key, item in now.items())
    return bool(seen == now)


def _same_item(seen: Any, now: Any) -> bool:
    return seen is now if isinstance(now, np.ndarray) else _same(seen, now)


def is_compared(value: Any) -> bool:
    """Whether an attribute that has this value is asked for again, and compared.

    Other objects may be made anew by each access, as the sizes of a tensor are in a function that is being staged.
    """
    if isinstance(value, tuple):
        from tcdsl.frontend.symbols.symbols import SymbolicSize

        return not any(isinstance(item, SymbolicSize) for item in value)
    return isinstance(value, bool | int | float | str | np.ndarray)


def snapshot(value: Any) -> Any:
    """``value`` as it is now: containers may be changed in place, so their present contents are kept."""
    if isinstance(value, list):
        return [snapshot(item) for item in value]
    if isinstance(value, dict):
        return {key: snapshot(item) for key, item in value.items()}
    return set(value) if isinstance(value, set) else value
