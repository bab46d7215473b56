"""What containers hold, kind by kind: the parts that tell two of them apart, and how each one is found again.

::

    parts_of({"a": 2.0})     # Parts(structure=("a",), items=(2.0,), steps=(Item("a"),))

A subclass is read as its base is, beside the attributes of the object; what its methods do is code, which is read as
all code is (`tcdsl.frontend.surroundings.reachable`).
"""

from __future__ import annotations

import array
import collections
import contextvars
import ctypes
import functools
import types
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Item", "Parts", "is_array", "is_container", "parts_of"]


@dataclass(frozen=True, slots=True)
class Item:
    """The step of a path from a container to what it holds at ``key``."""

    key: Any

    def of(self, container: Any, missing: Any) -> Any:
        """What ``container`` holds there, or ``missing``."""
        try:
            if type(container) in _EXACT:
                return container[self.key]
            if isinstance(container, dict):
                # Without what a `defaultdict` would add.
                return dict.get(container, self.key, missing)
            return _ITEM.get(base_of(type(container)), _itself)(container, self.key)
        except Exception:
            return missing


_EXACT = (list, tuple, dict)


class Parts(NamedTuple):
    """The parts of a container: what they are called, what they are, and how each one is found, if it can be."""

    structure: tuple[Any, ...]
    items: tuple[Any, ...]
    steps: tuple[Item, ...] = ()


def _counted(items: tuple[Any, ...], *structure: Any) -> Parts:
    return Parts(structure, items, tuple(map(Item, range(len(items)))))


def _of_dict(value: dict[Any, Any]) -> Parts:
    ordered = isinstance(value, collections.OrderedDict)
    keys = tuple(collections.OrderedDict.__iter__(value) if ordered else dict.keys(value))
    more = (value.default_factory,) if isinstance(value, collections.defaultdict) else ()
    return Parts(keys + more, tuple(dict.get(value, key) for key in keys), tuple(map(Item, keys)))


def _of_objects(value: np.ndarray) -> Parts:
    steps = tuple(Item(position) for position in np.ndindex(value.shape))
    return Parts((value.dtype, *value.shape), tuple(value.ravel().tolist()), steps)


#: How the parts of each kind are found. The first kind of which a type is a subclass counts.
_KINDS: Mapping[type, Callable[[Any], Parts]] = {
    dict: _of_dict,
    list: lambda value: _counted(tuple(list.__iter__(value))),
    tuple: lambda value: _counted(tuple(tuple.__iter__(value))),
    collections.deque: lambda value: _counted(tuple(collections.deque.__iter__(value)), value.maxlen),
    set: lambda value: Parts((), tuple(set.__iter__(value))),
    frozenset: lambda value: Parts((), tuple(frozenset.__iter__(value))),
    bytearray: lambda value: Parts((), (bytes(value),)),
    memoryview: lambda value: Parts((value.format, *(value.shape or ())), (value.tobytes(),)),
    array.array: lambda value: Parts((value.typecode,), (value.tobytes(),)),
    slice: lambda value: Parts((), (value.start, value.stop, value.step)),
    functools.partial: lambda value: Parts((), (value.func, value.args, value.keywords)),
    functools.partialmethod: lambda value: Parts((), (value.func, value.args, value.keywords)),
    types.MethodType: lambda value: Parts((), (value.__func__, value.__self__)),
    # Methods that are written in C, such as `items.index` and `items.__len__`.
    types.BuiltinFunctionType: lambda value: Parts((value.__name__,), (value.__self__,)),
    types.MethodWrapperType: lambda value: Parts((value.__name__,), (value.__self__,)),
    types.MappingProxyType: lambda value: Parts(tuple(value), tuple(value.values()), tuple(map(Item, value))),
    weakref.ReferenceType: lambda value: Parts((), (value(),)),
    weakref.WeakKeyDictionary: lambda value: Parts(tuple(value.keys()), tuple(value.values())),
    weakref.WeakValueDictionary: lambda value: Parts(tuple(value.keys()), tuple(value.values())),
    contextvars.ContextVar: lambda value: Parts((), (value.get(None),)),
    ctypes.Structure: lambda value: Parts((), (bytes(value),)),
    ctypes.Union: lambda value: Parts((), (bytes(value),)),
    ctypes.Array: lambda value: Parts((), (bytes(value),)),
    type({}.keys()): lambda value: Parts((), tuple(value)),
    type({}.values()): lambda value: Parts((), tuple(value)),
    type({}.items()): lambda value: Parts((), tuple(value)),
    # What Python's library writes in Python, and whose cells are all that it has.
    collections.UserDict: lambda value: Parts((), (value.data,)),
    collections.UserList: lambda value: Parts((), (value.data,)),
    collections.UserString: lambda value: Parts((), (value.data,)),
    collections.ChainMap: lambda value: Parts((), (value.maps,)),
    types.SimpleNamespace: lambda value: Parts((), (dict(vars(value)),)),
}
_ITEM: Mapping[Any, Callable[[Any, Any], Any]] = {
    list: list.__getitem__,
    tuple: tuple.__getitem__,
    collections.deque: collections.deque.__getitem__,
}


def _itself(container: Any, key: Any) -> Any:
    return container[key]


_BASES: weakref.WeakKeyDictionary[type, type | None] = weakref.WeakKeyDictionary()
_CELLS: weakref.WeakKeyDictionary[type, bool] = weakref.WeakKeyDictionary()


def base_of(kind: type) -> type | None:
    """The kind of container that ``kind`` is, if it is one."""
    try:
        if kind not in _BASES:
            _BASES[kind] = next((base for base in _KINDS if issubclass(kind, base)), None)
        return _BASES[kind]
    except TypeError:  # a class of classes that cannot be hashed
        return None


def is_array(value: Any) -> bool:
    """Whether a value is an array of NumPy or of another library, which has cells and no objects in them."""
    if isinstance(value, np.ndarray):
        return not value.dtype.hasobject
    kind = type(value)
    try:
        if kind not in _CELLS:
            _CELLS[kind] = _has_cells(kind)
        return _CELLS[kind]
    except TypeError:  # a class of classes that cannot be hashed
        return False


def _has_cells(kind: type) -> bool:
    # Tables have columns, each with a type of its own; tensors of graphs are nodes, and scalars are plain values.
    return (
        any(hasattr(kind, name) for name in ("__array__", "__dlpack__"))
        and not issubclass(kind, np.generic | type)
        and not _is_table(kind)
        and not kind.__module__.startswith("tcdsl.")
    )


def _is_table(kind: type) -> bool:
    library = str(kind.__module__).partition(".")[0]
    return any(library == name and hasattr(kind, columns) for name, columns, _ in _TABLES)


# The libraries of tables, what they call the names of the columns, and what stands beside them.
_TABLES = (
    ("pandas", "columns", ("index", "attrs")),
    ("polars", "columns", ()),
    ("xarray", "data_vars", ("coords", "attrs")),
)


def _of_table(value: Any) -> Parts:
    library = str(type(value).__module__).partition(".")[0]
    title, others = next((title, others) for name, title, others in _TABLES if name == library)
    names = tuple(getattr(value, title))
    columns: list[Any] = [np.asarray(value[name]) for name in names]
    for other in others:
        beside = getattr(value, other)
        columns += [np.asarray(beside)] if hasattr(beside, "__array__") else [dict(beside)]
    dimensions = tuple((value[name].dims) for name in names) if library == "xarray" else ()
    return Parts((*names, *dimensions), tuple(columns))


def _reader(value: Any) -> Callable[[Any], Parts] | None:
    if isinstance(value, np.ndarray):
        return _of_objects if value.dtype.hasobject else None
    kind = type(value)
    if kind is types.BuiltinFunctionType and isinstance(value.__self__, types.ModuleType | type | None):
        return None
    base = base_of(kind)
    if base is not None:
        return _KINDS[base]
    return _of_table if _is_table(kind) else None


def is_container(value: Any) -> bool:
    """Whether a value is compared by what it holds."""
    return _reader(value) is not None


def _attributes(value: Any) -> Any:
    try:
        return value.__dict__
    except Exception:  # `__getattr__` of the user's may raise anything
        return None


def parts_of(value: Any) -> Parts:
    """The parts of a container, with the attributes of an object of a subclass behind them."""
    reader = _reader(value)
    if reader is None:
        raise TypeError(type(value))
    parts = reader(value)
    own = _attributes(value) if type(value).__module__ not in _LIBRARY else None
    if not own:
        return parts
    # Behind what has a place, without which no path leads to it.
    steps = parts.steps if len(parts.steps) == len(parts.items) else ()
    return Parts((*parts.structure, "attributes"), (*parts.items, dict(own)), steps)


_LIBRARY = frozenset(("builtins", "collections", "functools", "types", "weakref", "array", "numpy"))
