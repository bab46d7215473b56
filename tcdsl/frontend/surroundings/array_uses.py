"""Whether all that a function does with an array of its surroundings became part of the program.

What Python computed of its cells, such as ``np.mean(table)`` beside ``x * table``, stays in the program as it was: such
a program serves only while the cells are the same. Python does not say when it reads an array, but the program knows
what it took: wherever the user's code loads the array, alone or in a container, what is done with it must end in
expressions in which it was captured. The ways there are those of `Uses`: other names, items, rounds, views.
"""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tcdsl.frontend.surroundings.code_runs import CodeRuns, Spot
from tcdsl.frontend.surroundings.containers import Item, is_array
from tcdsl.frontend.surroundings.plain_values import PLAIN
from tcdsl.frontend.surroundings.readings import Instance, Reading
from tcdsl.frontend.surroundings.value_uses import Key, Keys, Tree, Uses

__all__ = ["ArrayUses", "owner_of"]

_LISTED: Any = list | tuple | dict
_MANY = 1000  # items: in longer containers no array is looked for


class ArrayUses:
    """``uses.note(array, frame)`` whenever an array is captured, ``uses.captured(...)`` at the end.

    ``definitions`` are those of decorated functions, by their code, ``outside`` the code that runs what is staged:
    frames around it have nothing to do with it.
    """

    def __init__(self) -> None:
        self.definitions: dict[CodeType, ast.FunctionDef] = {}
        self.outside: CodeType | None = None
        self.runs = CodeRuns(self._begun)
        # By array: where it was captured, and the parameters that held it, behind which keys.
        self._captured: defaultdict[int, set[Spot]] = defaultdict(set)
        self._given: defaultdict[int, set[tuple[CodeType, str, Keys]]] = defaultdict(set)
        self._read: set[int] = set()
        #: Whether what holds arrays is too long to look for them.
        self._is_hidden = False
        # What values are, or hold, by id: arrays, behind which keys; and the arrays whose memory one is.
        self._known: defaultdict[int, set[tuple[int, Keys]]] = defaultdict(set)
        self._shared: defaultdict[int, set[int]] = defaultdict(set)

    def expect(self, readings: Iterable[Reading]) -> None:
        """These readings may lead to arrays, whose uses count from here on."""
        for reading in readings:
            if is_array(reading.seen):
                self._known[id(reading.seen)].add((id(reading.seen), ()))
                if isinstance(reading.seen, np.ndarray):
                    self._shared[id(_base(reading.seen))].add(id(reading.seen))
                for holder, keys in _holders(reading):
                    self._known[id(holder)].add((id(reading.seen), keys))
                self.runs.begin()

    def note(self, array: Any, frame: FrameType | None) -> None:
        """An array was captured, as a whole or as a view, by what is being executed from ``frame`` on."""
        captured = self._captured[id(array)]
        while frame is not None and frame.f_code is not self.outside:
            spot = self.runs.note(frame)
            if spot is not None:
                captured.add(spot)
            frame = frame.f_back

    def _begun(self, frame: FrameType) -> None:
        # A function of the user's is called: its parameters may hold arrays.
        for name in _parameters(frame.f_code):
            for array, keys in self._held(frame.f_locals.get(name)):
                self._given[array].add((frame.f_code, name, keys))

    def _held(self, value: Any) -> Iterable[tuple[int, Keys]]:
        if id(value) in self._known:
            return self._known[id(value)]
        if isinstance(value, np.ndarray):
            return [(array, ()) for array in self._shared.get(id(_base(value)), ())]
        if not isinstance(value, _LISTED) or type(value).__module__ != "builtins":
            return ()
        if len(value) > _MANY:
            self._is_hidden |= any(
                type(each) not in PLAIN for each in (value.values() if type(value) is dict else value)
            )
            return ()
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [
            (array, (_key(value, key), *keys)) for key, item in items for array, keys in self._known.get(id(item), ())
        ]

    def note_read(self, value: Any) -> None:
        """Python has this value in an expression whose result the program depends on."""
        self._read.add(id(value))

    def captured(
        self, reading: Reading, readings: Iterable[Reading], definition_of: Callable[[FunctionType], Any]
    ) -> Reading:
        """What the program depends on of the array of ``reading``, wherever code has loaded it.

        That is nothing where it was captured everywhere, its shape where that was asked for, or a view was captured,
        and else its cells. ``readings`` tell which plain functions could run, whose text ``definition_of`` gives.
        """
        holder = reading.holder
        is_object = not isinstance(holder, type | ModuleType | dict)
        kinds = [each.__qualname__ for each in type(holder).__mro__] if is_object else []
        every: set[Spot] = set().union(*self._captured.values())
        uses = Uses(self._captured.get(id(reading.seen), ()), every, self.runs, kinds)
        if not self._all_captured(uses, reading, readings, definition_of) or not uses.is_loaded:
            return reading.with_cells()
        return reading.with_layout() if uses.of_layout else reading

    def _all_captured(
        self, uses: Uses, reading: Reading, readings: Iterable[Reading], definition_of: Callable[[FunctionType], Any]
    ) -> bool:
        key = id(reading.seen)
        place = _name_of(reading)
        if self._is_hidden or key in self._read or place is None:
            return False
        name, keys, owner = place
        trees: dict[CodeType, Tree] = {code: _tree(code, self.definitions.get, code) for code in self.definitions}
        for each in readings:
            if isinstance(each.seen, CodeType) and isinstance(each.root, Instance):
                tree = _tree(each.seen, definition_of, each.root.value)
                if tree is not None:
                    trees[each.seen] = tree
                elif _mentions(each.seen, name):
                    return False
        for code, tree in trees.items():
            if owner is not None:
                if code is owner and not uses.of_local(tree, name, keys):
                    return False
            elif not uses.of_name(tree, name, keys):
                return False
        for code, local, inside in self._given.get(key, ()):
            around = next((tree for known, tree in trees.items() if _is_within(code, known)), None)
            if around is None or not uses.of_local(around, local, inside):
                return False
        return True


def owner_of(view: Any, arrays: Iterable[Any]) -> Any:
    """The one of ``arrays`` of which an array is a view; None unless it is the only one."""
    if type(view) is not np.ndarray or view.base is None:
        return None
    found = {id(each): each for each in arrays if type(each) is np.ndarray and _base(each) is _base(view)}
    owners = [each for each in found.values() if each.flags.c_contiguous and np.may_share_memory(each, view)]
    return owners[0] if len(owners) == 1 and _contains(owners[0], view) else None


def _contains(array: np.ndarray, view: np.ndarray) -> bool:
    (low, high), (first, last) = np.lib.array_utils.byte_bounds(array), np.lib.array_utils.byte_bounds(view)
    return bool(low <= first and last <= high)


def _base(array: np.ndarray) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array if array.base is None else array.base


def _key(holder: Any, key: Any) -> Key:
    return Key(key, len(holder) if isinstance(holder, list | tuple) else 0)


def _holders(reading: Reading) -> list[tuple[Any, Keys]]:
    # The containers at the end of a path, the innermost first, with the keys behind which they hold what it leads to.
    found: list[tuple[Any, Keys]] = []
    keys: Keys = ()
    for number in range(len(reading.names) - 1, 0, -1):
        step = reading.names[number]
        if not isinstance(step, Item):
            break
        holder = Reading(reading.names[:number], reading.root).current()
        keys = (_key(holder, step.key), *keys)
        found.append((holder, keys))
    return found


def _name_of(reading: Reading) -> tuple[str, Keys, CodeType | None] | None:
    # The name at the end of a path, the keys behind it, and the code whose parameter it is, if it is one.
    holders = _holders(reading)
    keys = holders[-1][1] if holders else ()
    number = len(reading.names) - 1 - len(holders)
    step = reading.names[number]
    function = reading.root.value if isinstance(reading.root, Instance) else None
    if isinstance(function, FunctionType) and step in ("__defaults__", "__kwdefaults__") and keys and keys[0]:
        code, key = function.__code__, keys[0].value
        if step == "__defaults__":
            key = code.co_varnames[code.co_argcount - len(function.__defaults__ or ()) + key]
        return str(key), keys[1:], code
    # What stands at the root of an object is called so by nobody.
    return None if isinstance(reading.root, Instance) and number == 0 else (str(step), keys, None)


_TREES: WeakKeyDictionary[CodeType, Tree | None] = WeakKeyDictionary()


def _tree(code: CodeType, definition_of: Callable[[Any], Any], function: Any) -> Any:
    if code not in _TREES:
        definition = definition_of(function)
        _TREES[code] = None if definition is None else Tree(definition, code)
    return _TREES[code]


def _mentions(code: CodeType, name: str) -> bool:
    named = name in code.co_names or name in code.co_freevars or name in code.co_consts
    return named or any(_mentions(each, name) for each in code.co_consts if isinstance(each, CodeType))


def _parameters(code: CodeType) -> tuple[str, ...]:
    more = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + more]


def _is_within(inner: CodeType, outer: CodeType) -> bool:
    return inner is outer or any(_is_within(inner, each) for each in outer.co_consts if isinstance(each, CodeType))
