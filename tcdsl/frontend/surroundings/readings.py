"""Names that staging read, with the values that it saw, to be compared at the next call.

Values are the same if they have the same type and content, all the way down: 1, 1.0 and True differ, so do the two
zeros, and not-a-number is itself. Containers are compared by what they hold (`tcdsl.frontend.surroundings.containers`).
Arrays are inputs, read at every call, unless Python has read their cells. Any other object is the same only if it is
the same one, and what staging read of it has readings of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from types import CellType, FunctionType, MemberDescriptorType, ModuleType
from typing import Any

import numpy as np

from tcdsl.frontend.surroundings.containers import Item, is_array, is_container, parts_of
from tcdsl.frontend.surroundings.plain_values import PLAIN, same_plain

__all__ = [
    "MISSING",
    "AbsentNames",
    "Content",
    "Inside",
    "Instance",
    "Layout",
    "PresentNames",
    "ReadCells",
    "Reading",
    "Related",
    "Together",
    "same",
    "same_configuration",
    "snapshot",
]

#: What a name that does not exist holds.
MISSING = object()
#: A container that stands in itself.
AGAIN = object()


@dataclass(frozen=True, slots=True)
class Reading:
    """One name, or a path such as ``settings.stride`` or ``weights[0]``, and the value that staging saw.

    ``root`` is where the first name is looked up: a closure's cell, a module's globals, or an `Instance`, of which the
    first name is what it is called.
    """

    names: tuple[str | Item, ...]
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
        for step in self.names[1:]:
            value = step.of(value, MISSING) if isinstance(step, Item) else attribute(value, step)
        return value

    @property
    def holder(self) -> Any:
        """Where the last name is looked up."""
        return Reading(self.names[:-1], self.root).current() if len(self.names) > 1 else self.root

    @property
    def place(self) -> tuple[int, str | Item]:
        """The same for names of one place: of ``TABLE`` in the module ``tables``, and of ``tables.TABLE`` elsewhere."""
        holder = self.holder
        return id(vars(holder) if isinstance(holder, ModuleType) else holder), self.names[-1]

    @property
    def key(self) -> tuple[Any, ...]:
        """The same for readings of one value."""
        root = self.root.value if isinstance(self.root, Instance) else self.root
        is_of_value = not isinstance(self.seen, Seen) or isinstance(self.seen, Content | Layout | Together)
        return id(root), self.names, None if is_of_value else type(self.seen)

    @property
    def label(self) -> str:
        """What the program calls an array that is read here."""
        name = ""
        for step in self.names:
            name = f"{name}_{step.key}" if isinstance(step, Item) else step
        return name if name.isidentifier() else next(step for step in self.names[::-1] if isinstance(step, str))

    def unchanged(self) -> bool:
        """Whether staging would see the same value now; arrays are inputs, so only that it is still one."""
        return same(self.seen, self.current())

    def with_cells(self) -> Reading:
        """The same name, of an array that Python reads while staging."""
        return replace(self, seen=snapshot(self.current(), cells=True))

    def with_layout(self) -> Reading:
        """The same name, of an array of which a view is an input."""
        current = self.current()
        return replace(self, seen=Layout(current)) if isinstance(current, np.ndarray) else self.with_cells()

    def renewed(self) -> list[Reading]:
        """The same name with the value that it holds now, and attributes that an object has got since."""
        current = self.current()
        if isinstance(self.seen, Related):
            return [replace(self, seen=type(self.seen)(current))]
        if isinstance(self.seen, PresentNames):
            held, seen = attribute(current, "__dict__"), PresentNames(current)
            added = [name for name in seen.names if name not in self.seen.names]
            return [replace(self, seen=seen), *(self.of_name(name, held) for name in added)]
        if not isinstance(self.seen, AbsentNames):
            return [replace(self, seen=snapshot(current))]
        held = attribute(current, "__dict__")
        present = sorted(self.seen.names & held.keys())
        return [
            replace(self, seen=AbsentNames(self.seen.names.difference(present))),
            *(self.of_name(name, held) for name in present),
        ]

    def of_name(self, name: str, held: Mapping[str, Any]) -> Reading:
        """The reading of an attribute, which is in ``held``."""
        return Reading((*self.names, name), self.root, snapshot(held[name]))


@dataclass(frozen=True, slots=True)
class Instance:
    """The root of paths such as ``self.width``."""

    value: Any


@dataclass(frozen=True, slots=True)
class Inside(Instance):
    """The same, of an object of another package, of which all may be what its methods read."""


class Seen(ABC):
    """What was seen of a value, where that is not the value itself."""

    __slots__ = ()

    @abstractmethod
    def same(self, now: Any) -> bool:
        """Whether the same is seen of ``now``."""


class Related(Seen):
    """What stands around a value and is no part of it, such as the classes below a class."""

    __slots__ = ()

    @abstractmethod
    def __init__(self, value: Any) -> None: ...


class ReadCells(Seen):
    """What an array held when Python read it while staging, which no input of the program brings up to date."""

    __slots__ = ("_bytes", "_labels", "_type")

    def __init__(self, array: Any) -> None:
        cells = _cells(array)
        self._type = cells.dtype, cells.shape, cells.flags.writeable
        self._bytes = bytearray(_in_bytes(cells))
        self._labels = snapshot(_labels(array))

    def same(self, now: Any) -> bool:
        """Bit by bit: not-a-number equals itself."""
        try:
            cells = _cells(now)
        except Exception:  # such as a tensor of PyTorch that requires gradients by now
            return False
        # A bytearray compares memory without a copy.
        return (
            self._type == (cells.dtype, cells.shape, cells.flags.writeable)
            and self._bytes == _in_bytes(cells).data
            and same(self._labels, _labels(now))
        )


class Layout(Seen):
    """How the cells of an array lay in memory, of which a view is an input of the program."""

    __slots__ = ("_layout",)

    def __init__(self, array: np.ndarray) -> None:
        self._layout = array.dtype, array.shape, array.strides

    def same(self, now: Any) -> bool:
        """Whether the view can be made of ``now``."""
        return type(now) is np.ndarray and (now.dtype, now.shape, now.strides) == self._layout


class Together(Seen):
    """The same array as that of another reading, which one input of the program stands for."""

    __slots__ = ("reading",)

    def __init__(self, reading: Reading) -> None:
        self.reading = reading

    def same(self, now: Any) -> bool:
        """Whether it still is."""
        return now is self.reading.current()


class Content(Seen):
    """What a container held: its type, what its parts are called, and their values."""

    __slots__ = ("kind", "seen", "structure")

    def __init__(self, value: Any, cells: bool, around: tuple[int, ...] = ()) -> None:
        parts = parts_of(value)
        around = (*around, id(value))
        self.kind = type(value)
        # Keys are compared as values are.
        self.structure = tuple(snapshot(each, around=around) for each in parts.structure)
        # Arrays inside that can be asked for by a path have readings of their own.
        self.seen = [snapshot(item, cells or not parts.steps, around) for item in parts.items]

    @property
    def is_plain(self) -> bool:
        """Whether it is made of numbers and texts alone."""
        return all(
            each.is_plain if isinstance(each, Content) else type(each) in PLAIN
            for each in (*self.structure, *self.seen)
        )

    def same(self, now: Any) -> bool:
        """Whether ``now`` holds the same."""
        if type(now) is not self.kind:
            return False
        parts = parts_of(now)
        return (
            len(parts.structure) == len(self.structure)
            and len(parts.items) == len(self.seen)
            and all(map(same, self.structure, parts.structure))
            and all(map(same, self.seen, parts.items))
        )


class AbsentNames(Seen):
    """Attributes that an object did not have."""

    __slots__ = ("names",)

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def same(self, now: Any) -> bool:
        """Whether ``now`` has none of them."""
        held = attribute(now, "__dict__")
        return held is MISSING or self.names.isdisjoint(held)


class PresentNames(Seen):
    """The attributes that an object had, in their order, where code may list them."""

    __slots__ = ("names",)

    def __init__(self, value: Any) -> None:
        self.names = _listed(value)

    def same(self, now: Any) -> bool:
        """Whether ``now`` has the same ones."""
        return _listed(now) == self.names


def attribute(value: Any, name: str) -> Any:
    """An attribute, or `MISSING`."""
    try:
        return getattr(value, name, MISSING)
    except Exception:  # a property that fails; the function may never ask for it
        return MISSING


def snapshot(value: Any, cells: bool = False, around: tuple[int, ...] = ()) -> Any:
    """``value`` as it is now: containers may be changed in place, so their present contents are kept.

    With ``cells``, those of arrays too. ``around`` are the containers that it stands in, by id.
    """
    if is_container(value):
        return AGAIN if id(value) in around else Content(value, cells, around)
    if cells and is_array(value):
        try:
            return ReadCells(value)
        except Exception:  # what cannot be read has no cells to compare
            return value
    return value


def same(seen: Any, now: Any) -> bool:
    """Whether ``now`` is what a snapshot of it has seen."""
    if isinstance(seen, Seen):
        return seen.same(now)
    if seen is AGAIN:
        return is_container(now)
    # Arrays are inputs; their type and rank are checked with the other arguments.
    return seen is now or (is_array(seen) and is_array(now)) or same_plain(seen, now)


def same_configuration(known: Any, other: Any, around: tuple[tuple[int, int], ...] = ()) -> bool:
    """Whether two values of configuration are the same, all the way down, also where they are not the same object.

    ``around`` are the pairs in which these stand, by id.
    """
    if known is other or (id(known), id(other)) in around:
        return True
    same_inside = partial(same_configuration, around=(*around, (id(known), id(other))))
    if type(known) is not type(other):
        return False
    if is_container(known):
        one, two = parts_of(known), parts_of(other)
        pairs = ((one.structure, two.structure), (one.items, two.items))
        return all(len(a) == len(b) and all(map(same_inside, a, b)) for a, b in pairs)
    if is_array(known):
        return ReadCells(known).same(other)
    if same_plain(known, other):
        return True
    if isinstance(known, type | FunctionType | ModuleType) or not _are_equal(known, other):
        return False
    every = [each for kind in type(known).__mro__ for each in vars(kind).items()]
    # What an object has computed of the rest and kept is no part of what it is.
    computed = {name for name, each in every if isinstance(each, cached_property)}
    states = [
        tuple({name: held for name, held in state.items() if name not in computed} for state in both)
        for both in [(attribute(known, "__dict__"), attribute(other, "__dict__"))]
        if all(isinstance(state, dict) for state in both)
    ]
    slots = [(_held(each, known), _held(each, other)) for _, each in every if isinstance(each, MemberDescriptorType)]
    return bool(states or slots) and all(same_inside(*pair) for pair in (*states, *slots))


def _are_equal(known: Any, other: Any) -> bool:
    try:
        return bool(known == other)
    except Exception:  # such as an array that `==` gives: then what they hold decides
        return True


def _held(slot: MemberDescriptorType, value: Any) -> Any:
    try:
        return slot.__get__(value)
    except AttributeError:
        return MISSING


def _listed(value: Any) -> list[str]:
    # Those with underscores come and go by themselves, and have readings of their own where they matter.
    held = attribute(value, "__dict__")
    return [] if held is MISSING else [name for name in held if not name.startswith("__")]


def _in_bytes(cells: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(cells).reshape(-1).view(np.uint8)


def _labels(value: Any) -> Any:
    # What an array has beside its cells: a mask, the labels of its axes, a name.
    if type(value) is np.ndarray:
        return None
    if isinstance(value, np.ma.MaskedArray):
        return np.ma.getmaskarray(value).tobytes()
    match str(type(value).__module__).partition(".")[0]:
        case "pandas":
            return attribute(value, "name"), tuple(map(tuple, getattr(value, "axes", ())))
        case "xarray":
            labels = {name: np.asarray(each).ravel().tolist() for name, each in value.coords.items()}
            return value.name, value.dims, labels
        case _:
            return None


def _cells(value: Any) -> np.ndarray:
    # Of a tensor of PyTorch too that keeps gradients or has a type that NumPy does not have.
    if not hasattr(value, "detach"):
        return np.asarray(value)
    try:
        return np.asarray(value.detach())
    except Exception:
        return np.asarray(value.detach().double())
