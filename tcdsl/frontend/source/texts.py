"""The texts of functions that stand in no file: of cells that a magic runs, and of functions from another process.

::

    %%time                     # IPython runs the cell by exec, under the name `<timed exec>`
    @op
    def f(x): ...

Such a text gets a file name that is its own, under which tracebacks and messages find its lines, and the code of the
function gets that name.
"""

from __future__ import annotations

import ast
import linecache
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from types import CodeType, FrameType, FunctionType

__all__ = [
    "FunctionText",
    "cells_with",
    "is_run_by_magic",
    "named_code",
    "parser_of",
    "place_text",
    "register_parser",
    "remember_cell",
]

Parser = Callable[[str], ast.Module]

# Files that are not plain Python, by name, with what parses their text: the literal spelling's files are entered here
# when they are compiled.
_PARSERS: dict[str, Parser] = {}
# The names of cells whose code has another name; the last one first.
_CELLS: deque[str] = deque(maxlen=256)


def register_parser(filename: str, parser: Parser) -> None:
    """Say how the text of ``filename`` is parsed, of which a module or notebook cell has been compiled.

    ``parser`` returns a tree with positions in that text, as `ast.parse` does.
    """
    _PARSERS[filename] = parser


def parser_of(filename: str) -> Parser:
    """How the text of ``filename`` is parsed."""
    return _PARSERS.get(filename, ast.parse)


# -- functions from another process ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FunctionText:
    """The lines of a function, which another process need not have: ``parser`` reads them."""

    filename: str
    rows: tuple[str, ...]
    parser: Parser


def place_text(function: FunctionType, text: FunctionText) -> None:
    """Have ``function`` stand in the lines of ``text``: in the file of that name if it has them, or there is none."""
    first = function.__code__.co_firstlineno - 1
    last = first + len(text.rows)
    names = (text.filename if version == 0 else f"<{text.filename}, version {version}>" for version in count())
    name = next(each for each in names if _has_room(each, first, text.rows))
    known = linecache.getlines(name)
    if tuple(known[first:last]) != text.rows:
        known = [*known, *["\n"] * (last - len(known))]
        known[first:last] = text.rows
        linecache.cache[name] = (sum(map(len, known)), None, known, name)
    if text.parser is not ast.parse:
        register_parser(name, text.parser)
    function.__code__ = named_code(function.__code__, name)


def _has_room(name: str, first: int, rows: tuple[str, ...]) -> bool:
    linecache.checkcache(name)
    there = linecache.getlines(name)[first : first + len(rows)]
    return tuple(there) == rows or (not os.path.exists(name) and not any(map(str.strip, there)))


def named_code(code: CodeType, filename: str) -> CodeType:
    """The same code in another file, with all functions inside it."""
    constants = [named_code(each, filename) if isinstance(each, CodeType) else each for each in code.co_consts]
    return code.replace(co_filename=filename, co_consts=tuple(constants))


# -- cells that a magic runs -------------------------------------------------------------------------------------


def remember_cell(filename: str) -> None:
    """Say that code which has no file may be that of ``filename``."""
    if filename not in _CELLS:
        _CELLS.appendleft(filename)


def cells_with(line: int) -> Iterator[tuple[str, Sequence[str]]]:
    """The names and lines of cells where a function in line ``line`` of code without a file may stand."""
    for name in (*_CELLS, *_running_cell()):
        rows = linecache.getlines(name)
        if len(rows) >= line:
            yield name, rows


def is_run_by_magic() -> bool:
    """Whether what IPython runs now is given to it by a magic, and not as a cell."""
    return _magic() is not None


def _running_cell() -> Iterator[str]:
    # The cell that a magic such as %%time is running, under the name by which the user sees it: In[3].
    frame = _magic()
    if frame is not None:
        shell, cell = frame.f_locals["self"], frame.f_locals["cell"]
        name = shell.compile.cache(shell.transform_cell(cell), shell.execution_count, raw_code=cell)
        remember_cell(name)
        yield name


def _magic() -> FrameType | None:
    # IPython's function that runs a magic and has the text, unless the magic has IPython run that as a cell.
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_name
        own = str(frame.f_globals.get("__name__")).startswith("IPython.core.interactiveshell")
        if own and name in ("run_cell_magic", "run_cell_async"):
            return frame if name == "run_cell_magic" else None
        frame = frame.f_back
    return None
