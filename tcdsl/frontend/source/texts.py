"""The texts of functions that stand in no file: of cells that a magic runs, of `python -c`, of functions from another
process, and those that users give.

::

    %%time                     # IPython runs the cell by exec, under the name `<timed exec>`
    @op
    def f(x): ...

Such a text gets a file name that is its own, under which tracebacks and messages find its lines, and the code of the
function gets that name.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import os
import sys
import textwrap
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count
from types import CodeType, FrameType, FunctionType
from typing import Any

from tcdsl.errors import ConfigurationError, DslSyntaxError

__all__ = [
    "FunctionText",
    "cells_with",
    "function_of_text",
    "is_run_by_magic",
    "name_of_running_cell",
    "named_code",
    "parser_of",
    "place_text",
    "register_parser",
    "store_cell",
]

Parser = Callable[[str], ast.Module]

# Files that are not plain Python, by name, with what parses their text: the literal spelling's files are entered here
# when they are compiled.
_PARSERS: dict[str, Parser] = {}
_COMMAND = "<python -c>"
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
    others = (f"<{text.filename.strip('<>')}, version {version}>" for version in count(1))
    names = chain((text.filename,), others)
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


# -- texts that users give ---------------------------------------------------------------------------------------

# Annotations stay text, because they may name what the language alone knows.
_TEXT_ANNOTATIONS = __future__.annotations.compiler_flag


def function_of_text(text: object, names: dict[str, Any]) -> FunctionType:
    """The function that ``text`` defines, one `def`, with ``names`` around it. `DslSyntaxError` for other texts."""
    if not isinstance(text, str):
        raise ConfigurationError(f"a {type(text).__name__} as source; give the text of a function")
    given = textwrap.dedent(text).strip("\n") + "\n"
    try:
        module = ast.parse(given)
    except SyntaxError as error:
        line = [*given.splitlines(), ""][(error.lineno or 1) - 1]
        raise DslSyntaxError(f"line {error.lineno} of the source is no Python: {error.msg}\n    {line}") from None
    if len(module.body) != 1 or not isinstance(module.body[0], ast.FunctionDef) or module.body[0].decorator_list:
        fact = "the source is not one function without decorators"
        raise DslSyntaxError(f"{fact}\ngive one `def`, to which `op` and `cd` do what they do to a function under them")
    name = module.body[0].name
    code = compile(given, f"<source of {name}>", "exec", flags=_TEXT_ANNOTATIONS, dont_inherit=True)
    made: dict[str, FunctionType] = {}
    exec(code, names, made)  # noqa: S102  # the user's function
    place_text(made[name], FunctionText(code.co_filename, tuple(given.splitlines(keepends=True)), ast.parse))
    return made[name]


def _command(line: int) -> Iterator[tuple[str, Sequence[str]]]:
    # The text of `python -c`, among the arguments; which of them it is, the caller finds out.
    for each in sys.orig_argv[1:]:
        if "\n" in each:
            rows = (each.partition("c")[2] if each.startswith("-") else each).splitlines(keepends=True)
            if len(rows) >= line:
                linecache.cache[_COMMAND] = (len(each), None, rows, _COMMAND)
                yield _COMMAND, rows


# -- cells that a magic runs -------------------------------------------------------------------------------------


def store_cell(shell: Any, text: str) -> str:
    """Have ``text`` be found as the cell that IPython runs, and give its name, which is that of no other text.

    Code which has no file may be that of this cell.
    """
    frame = _running(("run_cell_async",))
    # IPython counts on before it runs a cell.
    number = shell.execution_count if frame is None else frame.f_locals.get("execution_count", shell.execution_count)
    name: str = shell.compile.cache(text, number, raw_code=text)
    if name in _CELLS:
        _CELLS.remove(name)
    _CELLS.appendleft(name)
    return name


def cells_with(line: int) -> Iterator[tuple[str, Sequence[str]]]:
    """The names and lines of cells, and of `python -c`, where a function in line ``line`` of no file may stand."""
    # The running one first: an equal one that ran before has another number.
    for name in chain(_running_cell(), tuple(_CELLS)):
        rows = linecache.getlines(name)
        if len(rows) >= line:
            yield name, rows
    yield from _command(line)


def is_run_by_magic() -> bool:
    """Whether what IPython runs now is given to it by a magic, and not as a cell."""
    return _magic() is not None


def name_of_running_cell() -> str | None:
    """The name under which IPython has stored the cell that it runs now. Equal cells may have several names."""
    frame = _running(("run_cell_async",))
    return None if frame is None else frame.f_locals.get("cell_name")


def _running_cell() -> Iterator[str]:
    # The cell that a magic such as %%time is running, under the name by which the user sees it: In[3].
    frame = _magic()
    if frame is not None:
        shell = frame.f_locals["self"]
        yield store_cell(shell, shell.transform_cell(frame.f_locals["cell"]))


def _magic() -> FrameType | None:
    # IPython's function that runs a magic and has the text, unless the magic has IPython run that as a cell.
    frame = _running(("run_cell_magic", "run_cell_async"))
    return frame if frame is not None and frame.f_code.co_name == "run_cell_magic" else None


def _running(names: tuple[str, ...]) -> FrameType | None:
    # The innermost of these functions of IPython that runs.
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        own = str(frame.f_globals.get("__name__")).startswith("IPython.core.interactiveshell")
        if own and frame.f_code.co_name in names:
            return frame
        frame = frame.f_back
    return None
