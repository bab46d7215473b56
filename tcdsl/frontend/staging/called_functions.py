"""What the plain functions that a decorated function may call read from their own surroundings.

``return activation(x)`` depends on the globals that ``activation`` reads, and on those of the functions that it calls
in turn. Names are found in the bytecode, without running anything. Functions of Python's library and of installed
packages are not looked into.
"""

from __future__ import annotations

import dis
import functools
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tcdsl.frontend.staging.readings import MISSING, Instance, Reading, is_compared, snapshot
from tcdsl.indices import IndexLetter
from tcdsl.installation import FOLDER

__all__ = ["Chain", "called_readings", "chains", "is_installed", "users_function"]

_FIRST = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST", "LOAD_FAST_BORROW"))
# From Python 3.13 on two names are loaded at once, the second of which may be followed by attributes.
_PAIRS = frozenset(("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_LOAD_FAST"))
_CALL = frozenset(("PRECALL", "CALL"))
_NEXT = frozenset(("LOAD_ATTR", "LOAD_METHOD"))


def called_readings(values: Iterable[Any], given: Any = None) -> list[Reading]:
    """What the functions among ``values``, and all that these may call, read: globals, closures, and attributes.

    The function ``given`` is looked into wherever it comes from.
    """
    readings: list[Reading] = []
    waiting = [*values, given]
    known: set[tuple[int, int]] = set()
    while waiting:
        value = waiting.pop()
        if isinstance(value, list | tuple | set | frozenset | dict):
            items = value.values() if isinstance(value, dict) else value
            waiting.extend(item for item in items if callable(item))
            continue
        function, receiver = users_function(value)
        if function is None or (id(function), id(receiver)) in known:
            continue
        if value is not given and is_installed(function.__code__.co_filename):
            continue
        known.add((id(function), id(receiver)))
        # A module that is loaded anew may give the same function other code.
        readings.append(Reading((function.__name__, "__code__"), Instance(function), function.__code__))
        for reading in _readings(function, receiver):
            value = reading.current()
            waiting.append(value)
            if isinstance(getattr(value, "__self__", None), np.ndarray):
                readings.append(Reading(reading.names[:-1], reading.root).with_cells())
            if len(reading.names) == 1 or is_compared(value):
                readings.append(replace(reading, seen=snapshot(value)))
    return readings


def users_function(value: Any) -> tuple[FunctionType | None, Any]:
    """The function that a call of ``value`` runs, and its instance if it is a method."""
    while isinstance(value, functools.partial):
        value = value.func
    receiver = None
    if isinstance(value, MethodType):
        value, receiver = value.__func__, value.__self__
    elif not isinstance(value, FunctionType | type):
        call = next((found for kind in type(value).__mro__ if (found := vars(kind).get("__call__"))), None)
        if isinstance(call, FunctionType):
            value, receiver = call, value
    return (value, receiver) if isinstance(value, FunctionType) else (None, None)


@functools.cache
def is_installed(filename: str) -> bool:
    """Whether a file belongs to Python, to an installed package, or to this one."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = [Path(FOLDER), *map(Path, filter(None, paths))]
    return filename.startswith("<frozen") or any(folder in Path(filename).parents for folder in folders)


def _readings(function: FunctionType, receiver: Any) -> Iterator[Reading]:
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    own = code.co_varnames[0] if receiver is not None and code.co_argcount else None
    for names in dict.fromkeys(chain.names for chain in chains(code)):
        first = names[0]
        if first == own:
            if len(names) > 1:
                yield Reading(names, Instance(receiver))
        elif first in cells:
            yield Reading(names, cells[first])
        elif _may_change(function.__globals__.get(first, MISSING), names):
            yield Reading(names, function.__globals__)


def _may_change(value: Any, names: tuple[str, ...]) -> bool:
    # Builtins and index letters do not, nor do installed modules and what is in them.
    if value is MISSING or isinstance(value, IndexLetter):
        return False
    return not isinstance(value, ModuleType) or (
        len(names) > 1 and not is_installed(getattr(value, "__file__", None) or "<frozen>")
    )


@dataclass(frozen=True, slots=True)
class Chain:
    """A name that code loads, with the attributes taken from it, and where.

    ``position`` is the first and last line, and the columns there. ``bare_call`` says that it is called with nothing.
    """

    names: tuple[str, ...]
    position: tuple[int, int, int, int]
    bare_call: bool


@functools.lru_cache(maxsize=1024)
def chains(code: CodeType) -> tuple[Chain, ...]:
    """What ``code``, and the code inside it, loads by name."""
    found: list[Chain] = []
    names: tuple[str, ...] = ()
    position = (1, 1, 0, 0)
    for instruction in dis.get_instructions(code):
        if instruction.opname in _NEXT and names:
            names = (*names, str(instruction.argval))
        else:
            if names:
                bare = instruction.opname in _CALL and instruction.arg == 0
                found.append(Chain(names, position, bare))
            names = (str(instruction.argval),) if instruction.opname in _FIRST else ()
            if instruction.opname in _PAIRS:
                names = (str(instruction.argval[-1]),)
        if names and instruction.positions is not None:
            line, end_line, column, end_column = instruction.positions
            line = line or code.co_firstlineno
            position = (line, end_line or line, column or 0, end_column or 0)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            found.extend(chains(inner))
    return tuple(found)
