"""The names that code loads, with the attributes and items that it takes from them: ``model.layers[0].rate``.

Of decorated functions they are found in the syntax tree, where index variables are left out, and of plain functions in
the bytecode; nothing is run.
"""

from __future__ import annotations

import ast
import dis
import functools
import pathlib
import sysconfig
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, MethodType
from typing import Any

from tcdsl.frontend.surroundings.containers import Item
from tcdsl.installation import FOLDER

__all__ = [
    "Chain",
    "Path",
    "chains",
    "is_installed",
    "is_of_numba",
    "named_paths",
    "outer_names",
    "spelled",
    "users_function",
]

#: A name, with the attributes and items that are taken from it.
Path = tuple[str | Item, ...]


def spelled(path: Path) -> str:
    """A path as the user writes it."""
    return "".join(f"[{step.key!r}]" if isinstance(step, Item) else f".{step}" for step in path)[1:]


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


def _outer_names(node: ast.AST, decided: Collection[ast.AST]) -> Iterator[Path]:
    """The paths that are read under ``node``, index variables left out."""
    # In the order of the source, without recursion: generators inside generators would pass a name on for each level.
    nothing: frozenset[str] = frozenset()
    waiting = [(each, nothing) for each in _children(node) if each not in decided]
    while waiting:
        child, letters = waiting.pop()
        if isinstance(child, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
            letters |= _index_letters(child)
        path = _path(child)
        if path is None:
            waiting.extend((each, letters) for each in _children(child))
        elif path[0] not in letters:
            yield path


def _children(node: ast.AST) -> list[ast.AST]:
    return list(ast.iter_child_nodes(node))[::-1]


def named_paths(definition: ast.FunctionDef) -> tuple[Path, ...]:
    """The names that a function reads, with the attributes and items that are taken from them.

    Not those of its decorators, which Python has evaluated before.
    """
    return tuple(dict.fromkeys(_outer_names(definition, definition.decorator_list)))


def outer_names(definition: ast.FunctionDef, own: Collection[str]) -> dict[str, None]:
    """The names that a function reads and that are not its ``own``."""
    return dict.fromkeys(str(path[0]) for path in named_paths(definition) if path[0] not in own)


def _path(node: ast.AST) -> Path | None:
    # `model.layers[0].rate`, read.
    steps: list[str | Item] = []
    while isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Load):
        if isinstance(node, ast.Attribute):
            steps.append(node.attr)
        elif isinstance(node.slice, ast.Constant) and type(node.slice.value) in _KEYS:
            steps.append(Item(node.slice.value))
        else:
            return None
        node = node.value
    return (node.id, *reversed(steps)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else None


_KEYS = (int, str)
_FIRST = frozenset(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST", "LOAD_FAST_BORROW"))
# From Python 3.13 on two names are loaded at once, the second of which may be followed by attributes.
_PAIRS = frozenset(("LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW", "STORE_FAST_LOAD_FAST"))
_CALL = frozenset(("PRECALL", "CALL"))
_NEXT = frozenset(("LOAD_ATTR", "LOAD_METHOD"))
_CONSTANT = frozenset(("LOAD_CONST", "LOAD_SMALL_INT"))
_SILENT = frozenset(("CACHE", "EXTENDED_ARG"))


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


def is_of_numba(function: Any) -> bool:
    """Whether Numba has compiled ``function``: what that reads around it is a part of its code."""
    is_of = type(function).__module__.partition(".")[0] == "numba"
    return is_of and any(hasattr(function, name) for name in ("py_func", "_dispatcher", "_pyfunc"))


@functools.lru_cache(maxsize=4096)
def is_installed(filename: str) -> bool:
    """Whether a file belongs to Python, to an installed package, or to this one."""
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    folders = [pathlib.Path(FOLDER), *map(pathlib.Path, filter(None, paths))]
    return filename.startswith("<frozen") or any(folder in pathlib.Path(filename).parents for folder in folders)


@dataclass(frozen=True, slots=True)
class Chain:
    """A name that code loads, with the attributes and items taken from it, and where.

    ``position`` is the first and last line, and the columns there. ``bare_call`` says that it is called with nothing,
    and ``local`` that the code binds the name itself.
    """

    names: Path
    position: tuple[int, int, int, int]
    bare_call: bool
    local: bool


@functools.lru_cache(maxsize=1024)
def chains(code: CodeType) -> tuple[Chain, ...]:
    """What ``code``, and the code inside it, loads by name."""
    found: list[Chain] = []
    names: Path = ()
    key: list[Item] = []
    position = (1, 1, 0, 0)
    local = False
    for instruction in dis.get_instructions(code):
        kind = instruction.opname
        if kind in _NEXT and names and not key:
            names = (*names, str(instruction.argval))
        elif kind in _CONSTANT and names and not key and type(instruction.argval) in _KEYS:
            key = [Item(instruction.argval)]
        elif (kind == "BINARY_SUBSCR" or (kind == "BINARY_OP" and instruction.argrepr == "[]")) and key:
            names, key = (*names, *key), []
        elif kind in _SILENT:
            continue
        else:
            if names:
                bare = kind in _CALL and instruction.arg == 0
                found.append(Chain(names, position, bare, local))
            names, key = ((str(instruction.argval),) if kind in _FIRST else ()), []
            local = "FAST" in kind or bool(names and names[0] in code.co_cellvars)
            if kind in _PAIRS:
                names = (str(instruction.argval[-1]),)
        if names and not key and instruction.positions is not None:
            line, end_line, column, end_column = instruction.positions
            line = line or code.co_firstlineno
            position = (line, end_line or line, column or 0, end_column or 0)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            bound = {*code.co_cellvars} & {*inner.co_freevars}
            found.extend(replace(each, local=each.local or each.names[0] in bound) for each in chains(inner))
    return tuple(found)
