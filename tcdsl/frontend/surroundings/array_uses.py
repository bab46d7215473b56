"""Whether all that a function does with an array of its surroundings became part of the program.

What Python computed of its cells, such as ``np.mean(table)`` beside ``x * table``, stays in the program as it was: such
a program serves only while the cells are the same. Python does not say when it reads an array, but the program knows
what it took: wherever the user's code loads the array, alone or in a container, what is done with it must end in
expressions in which it was captured. The ways there are those of `Uses`: other names, items, rounds, views.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from tcdsl.frontend.surroundings.containers import Item
from tcdsl.frontend.surroundings.named_values import is_installed
from tcdsl.frontend.surroundings.readings import Instance, Reading
from tcdsl.frontend.surroundings.value_uses import Key, Keys, Place, Spot, Tree, Uses

__all__ = ["ArrayUses", "owner_of"]

_LISTED: Any = list | tuple | dict
_MANY = 1000  # items: in longer containers no array is looked for


class ArrayUses:
    """``uses.note(array, held, readings, frame)`` whenever an array is captured, ``uses.captured(...)`` at the end.

    ``definitions`` are those of decorated functions, by their code, ``filenames`` where they come from, and
    ``outside`` the code that runs what is staged: frames around it have nothing to do with it.
    """

    def __init__(self) -> None:
        self.definitions: dict[CodeType, ast.FunctionDef] = {}
        #: How often each of them has run.
        self.runs: Counter[CodeType] = Counter()
        self.filenames: set[str] = set()
        self.outside: CodeType | None = None
        # By array: where it was captured, and the local names that held it, behind which keys.
        self._captured: defaultdict[int, set[Spot]] = defaultdict(set)
        self._local: defaultdict[int, set[tuple[CodeType, str, Keys]]] = defaultdict(set)
        self._read: set[int] = set()

    def note(self, array: Any, held: Any, readings: Iterable[Reading], frame: FrameType | None) -> None:
        """An array was captured, as a whole or as its view ``held``, by what is being executed from ``frame`` on.

        ``readings`` are those that lead to it.
        """
        captured, local = self._captured[id(array)], self._local[id(array)]
        keys: dict[int, Keys] = {id(array): (), id(held): ()}
        for reading in readings:
            keys.update((id(holder), inner) for holder, inner in _holders(reading))
        while frame is not None and frame.f_code is not self.outside:
            code = frame.f_code
            if code.co_filename in self.filenames or not is_installed(code.co_filename):
                place = _place(list(code.co_positions())[frame.f_lasti // 2])
                if place is not None:
                    captured.add((code.co_filename, place))
                for name in self._given(code):
                    value = frame.f_locals.get(name)
                    found = self._keys(value, array, keys)
                    if found is not None:
                        local.add((code, name, found))
            frame = frame.f_back

    def _given(self, code: CodeType) -> Collection[str]:
        # The variables that may hold what a call has given. Others are followed from where they are bound.
        return _parameters(code) if code in self.definitions or not _rebinds(code) else code.co_varnames

    def _keys(self, value: Any, array: Any, known: Mapping[int, Keys]) -> Keys | None:
        # Where in ``value`` the array is, if it is there.
        if id(value) in known:
            return known[id(value)]
        if isinstance(value, np.ndarray):
            return () if isinstance(array, np.ndarray) and _base(value) is _base(array) else None
        if isinstance(value, _LISTED) and type(value).__module__ == "builtins":
            if len(value) > _MANY:
                self._read.add(id(array))
                return None
            items = value.items() if isinstance(value, dict) else enumerate(value)
            return next(((_key(value, key), *known[id(item)]) for key, item in items if id(item) in known), None)
        return None

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
        others: set[Spot] = set().union(*self._captured.values())
        uses = Uses(self._captured.get(id(reading.seen), ()), others, kinds)
        if not self._all_captured(uses, reading, readings, definition_of) or not uses.is_loaded:
            return reading.with_cells()
        return reading.with_layout() if uses.of_layout else reading

    def _all_captured(
        self, uses: Uses, reading: Reading, readings: Iterable[Reading], definition_of: Callable[[FunctionType], Any]
    ) -> bool:
        key = id(reading.seen)
        place = _name_of(reading)
        if key in self._read or place is None:
            return False
        name, keys, owner = place
        trees: dict[CodeType, Tree] = {code: _tree(code, self.definitions.get, code) for code in self.definitions}
        for code, tree in trees.items():
            tree.runs = self.runs[code]
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
        for code, local, inside in self._local.get(key, ()):
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


@functools.lru_cache(maxsize=1024)
def _rebinds(code: CodeType) -> bool:
    # Whether a parameter becomes another value.
    stores = (each.argval for each in dis.get_instructions(code) if each.opname.startswith(("STORE_", "DELETE_")))
    return any(name in _parameters(code) for each in stores for name in (each if isinstance(each, tuple) else (each,)))


def _is_within(inner: CodeType, outer: CodeType) -> bool:
    return inner is outer or any(_is_within(inner, each) for each in outer.co_consts if isinstance(each, CodeType))


def _place(positions: Any) -> Place | None:
    # None where Python keeps no columns.
    line, last_line, column, last_column = positions or (None,) * 4
    if line is None or last_line is None or column is None or last_column is None:
        return None
    return line, column, last_line, last_column
