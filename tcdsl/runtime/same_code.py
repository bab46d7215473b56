"""Programs for functions that are made anew again and again, as the lambda of ``tc.grad(lambda w: loss(w, x))(w)`` is.

All of them have one code. What was staged for one of them serves another one if everything that staging read is the
same there, in the closure of the new function and of the functions in it. For that, an entry is kept without the
function: what it read from is noted by its place (`parts`), and values that the function held are not held here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from types import CellType, CodeType, FunctionType
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

import numpy as np

from tcdsl.frontend.staging.program_inputs import CapturedArray
from tcdsl.frontend.surroundings.readings import Content, Instance, Reading, Together
from tcdsl.runtime.calling.entries import Entry

__all__ = ["entries_for", "keep_entry"]

_ENTRIES = 16  # So many are kept for each code.
_PLAIN = (bool, int, float, str, bytes, type(None))


@dataclass(frozen=True, slots=True)
class _CodePart:
    """The part of a function with this number."""

    number: int


@dataclass(frozen=True, slots=True)
class _Default:
    """A default of a function in the closure: the same one, or an equal plain value, makes the same function."""

    value: Any


_Family = list[tuple[Hashable, Sequence[object], Entry]]
_FAMILIES: WeakKeyDictionary[CodeType, tuple[ReferenceType[CodeType], _Family]] = WeakKeyDictionary()


def entries_for(function: Callable[..., Any], key: Hashable) -> list[Entry]:
    """The entries that were kept under ``key`` for functions of the same code, as those of ``function``.

    Whether they serve a call is to be asked as of any entry.
    """
    family = _family(function)
    if not family or not isinstance(function, FunctionType):
        return []
    parts = _parts(function)
    kinds = [_kind(part) for part in parts]
    return [_attached(entry, parts) for other, known, entry in family if other == key and _same_kinds(known, kinds)]


def keep_entry(function: Callable[..., Any], key: Hashable, entry: Entry) -> None:
    """Keep ``entry``, which was staged for ``function``, for functions of the same code."""
    family = _family(function)
    if family is None or not isinstance(function, FunctionType):
        return
    parts = _parts(function)
    detached = _detached(entry, {id(part): number for number, part in enumerate(parts)})
    if detached is not None:
        family.insert(0, (key, [_weak(_kind(part)) for part in parts], detached))
        del family[_ENTRIES:]


def _family(function: Callable[..., Any]) -> _Family | None:
    if not isinstance(function, FunctionType):
        return None
    code = function.__code__
    found = _FAMILIES.get(code)
    # Equal code may stand in different places; only the same one is the same function.
    if found is None or found[0]() is not code:
        found = _FAMILIES[code] = ref(code), []
    return found[1]


def _parts(function: FunctionType) -> list[Any]:
    """The function, its globals and the cells of its closure; then the same, and defaults, of each function in these.

    Its own defaults are arguments of a call like others.
    """
    parts: list[Any] = []
    waiting = [function]
    known: set[int] = set()
    while waiting:
        one = waiting.pop(0)
        if id(one) in known:
            continue
        known.add(id(one))
        parts += [one, one.__globals__, *(one.__closure__ or ())]
        if one is not function:
            parts += map(_Default, (*(one.__defaults__ or ()), *(one.__kwdefaults__ or {}).values()))
        waiting += [held for cell in one.__closure__ or () if type(held := _held(cell)) is FunctionType]
    return parts


def _held(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _kind(part: object) -> object:
    # What two parts must share to be in each other's place.
    if isinstance(part, FunctionType):
        return part.__code__
    if isinstance(part, _Default):
        # Containers may change.
        return object() if isinstance(part.value, list | dict | set | tuple) else part.value
    return type(part)


def _same_kinds(known: Sequence[object], kinds: Sequence[object]) -> bool:
    if len(known) != len(kinds):
        return False
    pairs = [(_strong(one), other) for one, other in zip(known, kinds, strict=True)]
    return all(
        one is other or (isinstance(one, _PLAIN) and type(one) is type(other) and one == other) for one, other in pairs
    )


def _weak(value: object) -> object:
    # Held weakly, where that can be done, and if it is not a plain value.
    if isinstance(value, _PLAIN):
        return value
    try:
        return ref(value)
    except TypeError:
        return value


def _strong(value: object) -> object:
    if isinstance(value, ReferenceType):
        held = value()
        return value if held is None else held
    return value


def _detached(entry: Entry, numbers: dict[int, int]) -> Entry | None:
    # Without what belongs to the function. None if what it holds could not be let go.
    if any(isinstance(each, CapturedArray) and each.reading is None for each in entry.inputs):
        return None

    def root(value: Any) -> Any:
        return _CodePart(numbers[id(value)]) if id(value) in numbers else value

    detached = _moved(entry, root, lambda value: _noted(value, numbers))
    return (
        None
        if any(isinstance(each.seen, Content) and not each.seen.is_plain for each in detached.readings)
        else detached
    )


def _attached(entry: Entry, parts: Sequence[Any]) -> Entry:
    def found(value: Any) -> Any:
        return parts[value.number] if isinstance(value, _CodePart) else _strong(value)

    return _moved(entry, found, found)


def _moved(entry: Entry, root: Callable[[Any], Any], held: Callable[[Any], Any]) -> Entry:
    # Read from other places: ``root`` of where names are looked up, and with ``held`` of the values there.
    def moved(reading: Reading) -> Reading:
        inner = reading.root
        place = Instance(held(inner.value)) if isinstance(inner, Instance) else root(inner)
        seen = reading.seen
        return Reading(
            reading.names, place, Together(moved(seen.reading)) if isinstance(seen, Together) else held(seen)
        )

    inputs = tuple(
        replace(each, value=None, reading=moved(each.reading))
        if isinstance(each, CapturedArray) and each.reading is not None
        else each
        for each in entry.inputs
    )
    return replace(entry, readings=tuple(map(moved, entry.readings)), inputs=inputs, _changed=None)


def _noted(value: Any, numbers: dict[int, int]) -> Any:
    if isinstance(value, np.ndarray):
        return np.empty(0)  # arrays are inputs: that it is one is all that counts
    return _CodePart(numbers[id(value)]) if id(value) in numbers else _weak(value)
