"""Cells at constant indices, ``O[i] += I[-1] * I[N]``: Tile's in a statement, NumPy's everywhere else.

``I[-1]`` alone does not say which it is: Python computes it before the statement is known. The user's source says it:
a statement whose target is a `TensorOutput` combines it by ``*``, ``+``, ``==`` or ``cond``. What is computed in any
other way, or bound to a name before, is NumPy's.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import FrameType
from typing import Any

import numpy as np

from tcdsl.frontend.symbols.symbols import SymbolicNumber, SymbolicSize
from tcdsl.frontend.tile.cells import access
from tcdsl.frontend.tile.user_lines import enclosing_frames, location
from tcdsl.span import Span

__all__ = ["cell_or_view"]


def cell_or_view(view: Callable[[Any, Any], Any], array: Any, key: Any) -> Any:
    """``array[key]``: cells where a statement of Tile reads them at constant indices, else what ``view`` makes."""
    given = key if isinstance(key, tuple) else (key,)
    if given and all(map(_is_constant, given)) and _in_statement():
        return access(array, key)
    return view(array, key)


def _is_constant(value: object) -> bool:
    if isinstance(value, SymbolicNumber):
        # A number of the call; what the program computes is data.
        return bool(value.parameters) and value.weak_kind == "int"
    return isinstance(value, int | np.integer | SymbolicSize) and not isinstance(value, bool)


def _in_statement() -> bool:
    # Whether the user's expression that is being executed is a cell of a statement of Tile.
    frames = enclosing_frames()
    if not any(_is_output(each) for frame in frames for each in frame.f_locals.values()):
        return False
    span = location()
    if span is None:
        return False
    source = "".join(linecache.getlines(span.filename))
    names = _targets_of_cells(source).get(_place_of(span), ())
    return any(_is_output(_held(name, frames)) for name in names)


def _is_output(value: object) -> bool:
    # An output, or a list of some.
    first = value[0] if isinstance(value, list | tuple) and value else value
    return hasattr(type(first), "contract")


def _held(name: str, frames: list[FrameType]) -> object:
    return next((frame.f_locals[name] for frame in frames if name in frame.f_locals), None)


_Place = tuple[int, int, int, int]


def _place_of(span: Span) -> _Place:
    return span.line, span.column, span.end_line, span.end_column


@lru_cache(maxsize=8)
def _targets_of_cells(source: str) -> dict[_Place, tuple[str, ...]]:
    # For each access that is a part of what is stored into another: the names in what is stored into.
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return {}
    found: dict[_Place, tuple[str, ...]] = {}
    for node in ast.walk(tree):
        match node:
            case (
                ast.Assign(targets=[ast.Subscript() as target], value=value)
                | ast.AugAssign(target=ast.Subscript() as target, value=value)
            ):
                pass
            case ast.Compare(left=ast.Subscript() as target, ops=[ast.GtE() | ast.LtE()], comparators=[value]):
                pass
            case _:
                continue
        names = tuple(each.id for each in ast.walk(target.value) if isinstance(each, ast.Name))
        for cell in _cells(value):
            place = (cell.lineno, cell.col_offset, cell.end_lineno or 0, cell.end_col_offset or 0)
            found[place] = names
    return found


def _cells(value: ast.expr) -> Iterator[ast.Subscript]:
    # The accesses in what `*`, `+`, `==` and `cond` combine.
    match value:
        case ast.Subscript():
            yield value
        case ast.BinOp(left=left, op=ast.Mult() | ast.Add(), right=right):
            yield from _cells(left)
            yield from _cells(right)
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            yield from _cells(left)
            yield from _cells(right)
        case ast.Call(func=ast.Name(id="cond") | ast.Attribute(attr="cond")):
            for part in value.args:
                yield from _cells(part)
