"""Whether readings are unchanged, asked again and again: by identity where the objects behind names decide.

::

    staleness = Staleness(entry.readings)
    staleness.unchanged()

A path of names is looked up step by step, each step once for all paths that share it; a container is the same if the
same objects are in it. Where an object is another one, values are compared, and the objects of now are remembered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import is_
from types import BuiltinFunctionType, CellType, FunctionType, MethodWrapperType, SimpleNamespace
from typing import Any

import numpy as np

from tcdsl.frontend.surroundings.containers import Item, is_array, is_container, parts_of
from tcdsl.frontend.surroundings.plain_values import PLAIN
from tcdsl.frontend.surroundings.readings import (
    MISSING,
    AbsentNames,
    Content,
    Instance,
    Layout,
    ReadCells,
    Reading,
    Together,
    attribute,
)

__all__ = ["Staleness"]


class Staleness:
    """Whether ``readings`` are unchanged."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings
        self._begin()

    def _begin(self) -> None:
        # By id, and kept alive: what is made anew at each access could be taken for another one.
        self._steps: dict[tuple[int, Any], Any] = {}
        self._names: list[tuple[Callable[..., Any], Any, Any]] = []
        self._cells: list[tuple[CellType, Any]] = []
        self._attributes: list[tuple[Any, str, Any]] = []
        self._codes: list[tuple[FunctionType, Any]] = []
        self._absent: list[tuple[Callable[[Any], bool], Any]] = []
        self._contents: list[tuple[Callable[[Any], Any], Any, Collection[Any]]] = []
        self._others: list[Reading] = []
        for reading in self._readings:
            self._note(reading)

    def _note(self, reading: Reading) -> None:
        root = reading.root
        value = root.value if isinstance(root, Instance) else MISSING
        if isinstance(reading.seen, AbsentNames):
            self._note_absent(reading, value)
            return
        if isinstance(value, FunctionType) and reading.names[1:] == ("__code__",):
            self._codes.append((value, reading.seen))
            return
        # Arrays are inputs, of which any may stand at the end of the path.
        is_input = is_array(reading.seen) or isinstance(reading.seen, ReadCells | Layout | Together)
        steps = reading.names
        if isinstance(root, CellType):
            value = Reading(steps[:1], root).current()
            if value is MISSING:
                self._others.append(reading)
                return
            if not (is_input and len(steps) == 1) and self._is_new(root, None):
                self._cells.append((root, value))
        elif not isinstance(root, Instance):
            value = root.get(steps[0], MISSING)
            if not (is_input and len(steps) == 1) and self._is_new(root, steps[0]):
                self._names.append((root.get, str(steps[0]), value))
        by_identity = is_array(reading.seen) or not is_input
        for number, step in enumerate(steps[1:], 2):
            if isinstance(step, Item):
                holder, value = value, step.of(value, MISSING)
                if not (is_input and number == len(steps)):
                    by_identity &= self._take_item(holder, step.key, value)
            else:
                holder, value = value, attribute(value, step)
                if not (is_input and number == len(steps)):
                    by_identity &= self._take(holder, step, value)
        if isinstance(reading.seen, Content):
            by_identity &= self._hold(value)
        if not by_identity:
            self._others.append(reading)

    def _note_absent(self, reading: Reading, value: Any) -> None:
        held = attribute(value, "__dict__")
        if isinstance(held, dict):
            self._absent.append((reading.seen.names.isdisjoint, held))
            self._take(value, "__dict__", held)
        else:  # of a class
            self._others.append(reading)

    def _is_new(self, holder: Any, step: Any) -> bool:
        key = id(holder), step
        if key in self._steps:
            return False
        self._steps[key] = holder
        return True

    def _take(self, holder: Any, name: str, value: Any) -> bool:
        # Whether identity decides: what each access makes anew, as `variable.get`, is compared.
        if attribute(holder, name) is not value:
            return False
        if self._is_new(holder, name):
            self._attributes.append((holder, name, value))
        return True

    def _take_item(self, holder: Any, key: Any, value: Any) -> bool:
        # The same for an item; a tuple keeps its own.
        kind = type(holder)
        if kind not in (list, dict, tuple):
            return self._hold(holder)
        if kind is not tuple and self._is_new(holder, Item(key)):
            self._names.append((holder.get if kind is dict else partial(_item, holder), key, value))
        return True

    def _hold(self, value: Any) -> bool:
        # That a container, and the containers in it, hold the objects that they hold now; False where that does not
        # decide, as cells do not, or parts that are made when they are asked for.
        if not is_container(value) or not self._is_new(value, _CONTENT):
            return True
        if type(value) is SimpleNamespace:
            return self._hold(vars(value))
        parts = parts_of(value)
        for read in _quick(value):
            held = tuple(read(value))
            if not all(map(is_, held, read(value))):
                return False
            self._contents.append((read, value, held))
        inner = [item for item in parts.items if type(item) not in PLAIN]
        cells = not parts.steps and any(map(is_array, inner))
        return all(self._hold(item) for item in inner) and not cells

    def unchanged(self) -> bool:
        """Whether staging would see the same now."""
        for get, name, seen in self._names:
            if get(name, MISSING) is not seen:
                return self._compared()
        for function, seen in self._codes:
            if function.__code__ is not seen:
                return self._compared()
        try:
            for cell, seen in self._cells:
                if cell.cell_contents is not seen:
                    return self._compared()
            for holder, name, seen in self._attributes:
                if getattr(holder, name, MISSING) is not seen:
                    return self._compared()
        except Exception:  # a variable that was deleted; `__getattr__` of the user's may raise anything
            return self._compared()
        for isdisjoint, held in self._absent:
            if not isdisjoint(held):
                return self._compared()
        for read, container, seen in self._contents:
            now = read(container)
            if len(now) != len(seen) or not all(map(is_, now, seen)):
                return self._compared()
        return not self._others or all(reading.unchanged() for reading in self._others)

    def _compared(self) -> bool:
        # Other objects may hold the same, which are those to be asked for from now on.
        if not all(reading.unchanged() for reading in self._readings):
            return False
        self._begin()
        return True


_CONTENT = object()


def _item(items: list[Any], number: int, missing: Any) -> Any:
    try:
        return items[number]
    except IndexError:
        return missing


def _itself(container: Any) -> Any:
    return container


def _all_parts(container: Any) -> tuple[Any, ...]:
    parts = parts_of(container)
    return (*parts.structure, *parts.items)


#: How the parts of common containers are read without making anything. Some never change.
_QUICK: dict[type, tuple[Callable[[Any], Any], ...]] = {
    list: (_itself,),
    tuple: (),
    frozenset: (),
    BuiltinFunctionType: (),
    MethodWrapperType: (),
    set: (_itself,),
    deque: (_itself,),
    dict: (_itself, dict.values),
}


def _quick(container: Any) -> tuple[Callable[[Any], Any], ...]:
    return (_objects,) if isinstance(container, np.ndarray) else _QUICK.get(type(container), (_all_parts,))


def _objects(array: np.ndarray) -> list[Any]:
    cells: list[Any] = array.ravel().tolist()
    return cells
