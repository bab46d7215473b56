"""What a decorated function read from its surroundings while it was staged, to be compared at the next call.

A re-run notebook cell that changes a global takes effect, because the program that was staged with the old value no
longer matches. So does what the plain functions that a decorated function may call read from their own surroundings:
``return activation(x)`` depends on the globals that ``activation`` reads, and on those of the functions that it calls
in turn. Names are found in the bytecode, without running anything. Functions of Python's library and of installed
packages are not looked into.
"""

from __future__ import annotations

import ast
import dis
import functools
import sysconfig
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from tcdsl.frontend.surroundings.readings import MISSING, Instance, Reading, is_compared, snapshot
from tcdsl.indices import IndexLetter
from tcdsl.installation import FOLDER

__all__ = ["Chain", "Surroundings", "called_readings", "chains", "is_installed", "outer_chains", "users_function"]


def _index_letters(statement: ast.stmt) -> frozenset[str]:
    """The one-letter names that stand bare in a subscript: index variables, whatever they are outside the function."""
    letters: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript):
            used_otherwise = {id(base) for inner in ast.walk(node.slice) if (base := _base(inner)) is not None}
            letters.update(
                inner.id
                for inner in ast.walk(node.slice)
                if isinstance(inner, ast.Name)
                and len(inner.id) == 1
                and inner.id.islower()
                and id(inner) not in used_otherwise
            )
    return frozenset(letters)


def _base(node: ast.AST) -> ast.expr | None:
    # What is called, subscripted or followed by a dot follows the rule for values even inside a subscript.
    match node:
        case ast.Call(func=base) | ast.Subscript(value=base) | ast.Attribute(value=base):
            return base
        case _:
            return None


def _outer_names(node: ast.AST) -> Iterator[tuple[str, ...]]:
    """The names and attribute chains that are read under ``node``, index variables left out."""
    # In the order of the source, without recursion: generators inside generators would pass a name on for each level.
    waiting = list(ast.iter_child_nodes(node))[::-1]
    while waiting:
        child = waiting.pop()
        if isinstance(child, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
            letters = _index_letters(child)
            yield from (chain for chain in _chains(child) if chain[0] not in letters)
        else:
            yield from _chains(child, deep=False)
            waiting.extend(list(ast.iter_child_nodes(child))[::-1])


def _chains(node: ast.AST, deep: bool = True) -> Iterator[tuple[str, ...]]:
    for inner in ast.walk(node) if deep else (node,):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield (inner.id,)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Load):
            chain = _chain(inner)
            if chain is not None:
                yield chain


def outer_chains(definition: ast.FunctionDef, own: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """The names that a function reads and that are not its ``own``, with the attributes taken from them."""
    return _others(dict.fromkeys(_outer_names(definition)), own)


def _others(chains: Iterable[tuple[str, ...]], own: Collection[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(chain for chain in chains if chain[0] not in own)


class Surroundings:
    """The globals, closure values and attributes that a function names: `read` them at staging, ask later."""

    def __init__(self, function: FunctionType, definition: ast.FunctionDef, own: frozenset[str]) -> None:
        self._function = function
        parameters = [*definition.args.posonlyargs, *definition.args.args]
        self._receiver = parameters[0].arg if parameters else ""
        every = dict.fromkeys(_outer_names(definition))
        self._outer = _others(every, own)
        self._attributes = tuple(chain for chain in every if chain[0] == self._receiver and len(chain) > 1)

    def read(self, receiver: Any = None) -> tuple[Reading, ...]:
        """The readings as of now, those of plain functions that are read included.

        ``receiver`` is the instance whose method the function is.
        """
        code = self._function.__code__
        cells = dict(zip(code.co_freevars, self._function.__closure__ or (), strict=True))
        places: list[tuple[tuple[str, ...], Any]] = [
            (chain, cells.get(chain[0], self._function.__globals__)) for chain in self._outer
        ]
        if receiver is not None:
            places.extend((chain, Instance(receiver)) for chain in self._attributes)
        readings: list[Reading] = []
        values = []
        for chain, root in places:
            reading = Reading(chain, root)
            value = reading.current()
            values.append(value)
            readings.extend(seen(reading, value))
        return (*readings, *called_readings(values))


def _chain(node: ast.Attribute) -> tuple[str, ...] | None:
    names = [node.attr]
    base: ast.expr = node.value
    while isinstance(base, ast.Attribute):
        names.append(base.attr)
        base = base.value
    return (base.id, *reversed(names)) if isinstance(base, ast.Name) else None


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
            readings.extend(seen(reading, value))
    return readings


def seen(reading: Reading, value: Any) -> Iterator[Reading]:
    """What is to be compared of a name that stands for ``value``, and of its attributes."""
    if isinstance(getattr(value, "__self__", None), np.ndarray):
        # `table.sum()`: Python asks an array for what it holds.
        yield Reading(reading.names[:-1], reading.root).with_cells()
    if isinstance(value, IndexLetter):
        return
    if len(reading.names) == 1 or is_compared(value):
        yield replace(reading, seen=snapshot(value))
    elif callable(value):
        # `model.layer(x)`: another model has another method.
        holder = Reading(reading.names[:-1], reading.root)
        yield replace(holder, seen=holder.current())


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
    for names, local in dict.fromkeys((chain.names, chain.local) for chain in chains(code)):
        first = names[0]
        if first == own:
            if len(names) > 1:
                yield Reading(names, Instance(receiver))
        elif first in cells:
            yield Reading(names, cells[first])
        elif not local and _may_change(function.__globals__.get(first, MISSING), names):
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

    ``position`` is the first and last line, and the columns there. ``bare_call`` says that it is called with nothing,
    and ``local`` that the code binds the name itself.
    """

    names: tuple[str, ...]
    position: tuple[int, int, int, int]
    bare_call: bool
    local: bool


@functools.lru_cache(maxsize=1024)
def chains(code: CodeType) -> tuple[Chain, ...]:
    """What ``code``, and the code inside it, loads by name."""
    found: list[Chain] = []
    names: tuple[str, ...] = ()
    position = (1, 1, 0, 0)
    local = False
    for instruction in dis.get_instructions(code):
        if instruction.opname in _NEXT and names:
            names = (*names, str(instruction.argval))
        else:
            if names:
                bare = instruction.opname in _CALL and instruction.arg == 0
                found.append(Chain(names, position, bare, local))
            names = (str(instruction.argval),) if instruction.opname in _FIRST else ()
            local = "FAST" in instruction.opname or bool(names and names[0] in code.co_cellvars)
            if instruction.opname in _PAIRS:
                names = (str(instruction.argval[-1]),)
        if names and instruction.positions is not None:
            line, end_line, column, end_column = instruction.positions
            line = line or code.co_firstlineno
            position = (line, end_line or line, column or 0, end_column or 0)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            bound = {*code.co_cellvars} & {*inner.co_freevars}
            found.extend(replace(each, local=each.local or each.names[0] in bound) for each in chains(inner))
    return tuple(found)
