"""Whether readings are unchanged, asked again and again: by identity where the objects behind names decide.

::

    staleness = Staleness(entry.readings)
    staleness.unchanged()

A path of names is looked up step by step, each step once for all paths that share it; a container is the same if the
same objects are in it. Where an object is another one, values are compared, and the objects of now are remembered.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Sequence
from keyword import iskeyword
from operator import is_
from types import BuiltinFunctionType, CellType, MethodWrapperType, SimpleNamespace
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
    PresentNames,
    ReadCells,
    Reading,
    Related,
    Together,
    attribute,
)
from tcdsl.runtime.calling.argument_code import GuardCode

__all__ = ["Staleness"]

_MOST_PATIENCE = 64


class Staleness:
    """Whether ``readings`` are unchanged."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self._readings = readings
        self._quick: Callable[[], bool] | None = None
        self._others: Sequence[Reading] = ()
        #: What decides alone, by identity, if anything does; an exception says no more than False.
        self.decisive: Callable[[], bool] | None = None
        self._changed: Reading | None = None
        # How often values are compared before identity is asked; more often where it has not decided.
        self._patience = self._waiting = 1

    def unchanged(self) -> bool:
        """Whether staging would see the same now."""
        if self._quick is not None:
            try:
                if self._quick():
                    return not self._others or all(reading.unchanged() for reading in self._others)
            except Exception:  # an item that was deleted; `__getattr__` of the user's may raise anything
                return self._compared()
        return self._compared()

    def _compared(self) -> bool:
        # What was otherwise the last time is asked first: it is most often so again.
        if self._changed is not None and not self._changed.unchanged():
            return False
        self._changed = next((reading for reading in self._readings if not reading.unchanged()), None)
        if self._changed is not None:
            return False
        # Other objects may hold the same, which are those to be asked for from now on.
        if self._quick is not None:
            self._quick = self.decisive = None
            self._waiting = self._patience = min(2 * self._patience, _MOST_PATIENCE)
        self._waiting -= 1
        if self._waiting <= 0:
            identities = _Identities()
            self._others = [reading for reading in self._readings if not identities.decide(reading)]
            self._quick = identities.guards.function()
            self.decisive = None if self._others else self._quick
        return True


class _Identities:
    """What is asked by identity, in ``guards``."""

    def __init__(self) -> None:
        self.guards = GuardCode()
        # By id, and kept alive: what is made anew at each access could be taken for another one.
        self._steps: dict[tuple[int, Any], Any] = {}

    def decide(self, reading: Reading) -> bool:
        """Ask what says whether a reading is unchanged; False where identity does not decide."""
        root, seen = reading.root, reading.seen
        value = root.value if isinstance(root, Instance) else MISSING
        if isinstance(seen, AbsentNames):
            return self._absent(seen.names, value)
        if isinstance(seen, PresentNames):
            return self._present(value)
        if isinstance(seen, Related):
            return False
        # Arrays are inputs, of which any may stand at the end of the path.
        is_input = is_array(seen) or isinstance(seen, ReadCells | Layout | Together)
        steps = reading.names
        last = len(steps) if is_input else 0
        if isinstance(root, CellType):
            value = Reading(steps[:1], root).current()
            if value is MISSING:
                return False
            if last != 1 and self._is_new(root, None):
                self.guards.ask("{0}.cell_contents is {1}", root, value)
        elif not isinstance(root, Instance):
            value = root.get(steps[0], MISSING)
            if last != 1 and self._is_new(root, steps[0]):
                self._item(root, steps[0], value)
        decided = is_array(seen) or not is_input
        for number, step in enumerate(steps[1:], 2):
            holder = value
            value = step.of(value, MISSING) if isinstance(step, Item) else attribute(value, step)
            if number != last:
                taken = (
                    self._take_item(holder, step, value) if isinstance(step, Item) else self._take(holder, step, value)
                )
                decided &= taken
        return decided and (not isinstance(seen, Content) or self._hold(value))

    def _absent(self, names: frozenset[str], value: Any) -> bool:
        if isinstance(value, type):
            # A name that is added stands last. To look at all of a class takes longer than a call.
            held = vars(value)
            self.guards.ask("len({0}) == {1}", held, len(held))
            self.guards.ask("{0}({1}({2})) is {3}", next, reversed, held, next(reversed(held)))
            return True
        if not isinstance(attribute(value, "__dict__"), dict):
            return False
        self.guards.ask("{0}({1}.__dict__)", names.isdisjoint, value)
        return True

    def _present(self, value: Any) -> bool:
        held = attribute(value, "__dict__")
        if held is not MISSING:
            self.guards.ask("{0}({1}.__dict__) == {2}", tuple, value, tuple(held))
        return True

    def _is_new(self, holder: Any, step: Any) -> bool:
        key = id(holder), step
        if key in self._steps:
            return False
        self._steps[key] = holder
        return True

    def _item(self, holder: Any, key: Any, value: Any) -> None:
        if value is not MISSING:
            self.guards.ask("{0}[{1}] is {2}", holder, key, value)
        elif type(holder) is list:
            self.guards.ask("len({0}) == {1}", holder, len(holder))
        else:
            self.guards.ask("{1} not in {0}", holder, key)

    def _take(self, holder: Any, name: str, value: Any) -> bool:
        # Whether identity decides: what each access makes anew, as `variable.get`, is compared.
        if attribute(holder, name) is not value:
            return False
        if self._is_new(holder, name):
            if name == "__class__" and type(holder) is value:
                self.guards.ask("type({0}) is {1}", holder, value)
            elif value is not MISSING and name.isidentifier() and not iskeyword(name):
                self.guards.ask(f"{{0}}.{name} is {{1}}", holder, value)
            else:
                self.guards.ask("{0}({1}, {2}) is {3}", attribute, holder, name, value)
        return True

    def _take_item(self, holder: Any, step: Item, value: Any) -> bool:
        # The same for an item; a tuple keeps its own.
        kind = type(holder)
        if kind not in (list, dict, tuple):
            return self._hold(holder)
        if kind is not tuple and self._is_new(holder, step):
            self._item(holder, step.key, value)
        return True

    def _hold(self, value: Any) -> bool:
        # That a container, and the containers in it, hold the objects that they hold now; False where that does not
        # decide, as cells do not, or parts that are made when they are asked for.
        if not is_container(value) or not self._is_new(value, _CONTENT):
            return True
        if type(value) is SimpleNamespace:
            return self._hold(vars(value))
        if type(value) in _QUICK and not value:
            self.guards.ask("not {0}", value)
            return True
        parts = parts_of(value)
        for read in _quick(value):
            held = tuple(read(value))
            if not all(map(is_, held, read(value))):
                return False
            self.guards.ask("{0}({1}({2}), {3})", _are_same, read, value, held)
        inner = [item for item in parts.items if type(item) not in PLAIN]
        cells = not parts.steps and any(map(is_array, inner))
        return all(self._hold(item) for item in inner) and not cells


_CONTENT = object()


def _are_same(now: Collection[Any], seen: tuple[Any, ...]) -> bool:
    return len(now) == len(seen) and all(map(is_, now, seen))


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
    Counter: (_itself, dict.values),
    OrderedDict: (_itself, OrderedDict.values),
}


def _quick(container: Any) -> tuple[Callable[[Any], Any], ...]:
    return (_objects,) if isinstance(container, np.ndarray) else _QUICK.get(type(container), (_all_parts,))


def _objects(array: np.ndarray) -> list[Any]:
    cells: list[Any] = array.ravel().tolist()
    return cells
