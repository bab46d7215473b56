"""The source text of a decorated function, as a syntax tree whose positions are those of the user's file."""

from __future__ import annotations

import ast
import inspect
import linecache
import tokenize
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from itertools import chain
from types import CodeType, FunctionType
from typing import Any

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.source.spacing import mark_spacing
from tcdsl.frontend.source.texts import FunctionText, cells_with, named_code, parser_of
from tcdsl.span import Span

__all__ = [
    "FunctionSource",
    "is_plain_python",
    "read_source",
    "readable_source",
    "span_of",
    "text_of",
]

# So cloudpickle calls the file of code that it hands on by value.
_BY_VALUE = "<dynamic-code>"


@dataclass(frozen=True, slots=True)
class FunctionSource:
    """A function's definition: ``definition`` has the line and column numbers of ``filename``."""

    filename: str
    definition: ast.FunctionDef
    text: str


def _fault(function: FunctionType, fact: str, hint: str) -> TcdslError:
    code = function.__code__
    span = Span(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 10_000)
    return DslSyntaxError.at(fact, span, hint)


def _unavailable(function: FunctionType, name: str) -> TcdslError:
    hint = (
        "define it in a file or a notebook cell; where Python keeps no source (exec, standard input, a frozen "
        f'application), give the text: `{name} = op(source="""def {function.__name__}(...): ...""")`'
    )
    if function.__code__.co_filename == _BY_VALUE:
        hint = "the function around it came by value, without its text: put that into a module, or pickle what it gives"
    return _fault(function, f"the source of `{name}` is not available, so its tensor statements cannot be read", hint)


def read_source(function: FunctionType) -> FunctionSource:
    """Read and parse the definition of ``function``.

    Raises `DslSyntaxError` for lambdas, ``async`` functions, generators, and functions whose source is not available.
    """
    name = function.__qualname__
    if function.__name__ == "<lambda>":
        raise _fault(function, "a lambda cannot be decorated", "write it as a `def`")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise _fault(function, f"`{name}` is an async function", "write a plain `def`")
    if inspect.isgeneratorfunction(function):
        raise _fault(function, f"`{name}` is a generator", "return tensors instead of yielding them")
    lines = _lines_of(function)
    if lines is None:
        raise _unavailable(function, name)
    try:
        definition, indented = _parsed(lines, _parser(function))
    except SyntaxError:
        raise _fault(
            function, f"the source of `{name}` cannot be parsed on its own", "put the `def` on lines of its own"
        ) from None
    if not isinstance(definition, ast.FunctionDef) or definition.name != function.__name__:
        raise _fault(
            function,
            f"the source found for `{name}` is not its definition",
            "did the file change since it was imported? Reload it",
        )
    first = function.__code__.co_firstlineno
    _place(definition, first - 1 - indented, lines, indented)
    mark_spacing(definition, lines, first)
    return FunctionSource(function.__code__.co_filename, definition, "".join(lines))


def text_of(function: FunctionType) -> FunctionText | None:
    """The text of ``function``, for another process; ``None`` if it is not available."""
    lines = _lines_of(function)
    if lines is None:
        return None
    return FunctionText(function.__code__.co_filename, tuple(lines), _parser(function))


def _lines_of(function: FunctionType) -> list[str] | None:
    name = function.__code__.co_filename
    # So is called what exec runs, and %%prun, and the text of `python -c`.
    if name == "<string>" and not _is_found_in_cell(function):
        return _block_of(function.__code__, name, linecache.getlines(name))
    for _ in range(2):
        linecache.checkcache(function.__code__.co_filename)
        try:
            return inspect.getsourcelines(function)[0]
        except (OSError, TypeError):
            if not _is_found_in_cell(function):
                break
    # Applications of PyInstaller look for the names of texts among their files.
    name = function.__code__.co_filename
    return _block_of(function.__code__, name, linecache.getlines(name))


def _is_found_in_cell(function: FunctionType) -> bool:
    # Whether its code now has the name of a cell, in which it stands, or of the script from which cloudpickle has taken
    # the function around it, whose globals still say which that was.
    code = function.__code__
    texts = cells_with(code.co_firstlineno)
    if code.co_filename == _BY_VALUE:
        script = str(function.__globals__.get("__file__"))
        linecache.checkcache(script)
        texts = chain([(script, linecache.getlines(script))], texts)
    for name, rows in texts:
        if _block_of(code, name, rows) is not None:
            function.__code__ = named_code(code, name)
            return True
    return False


def _block_of(code: CodeType, name: str, rows: Sequence[str]) -> list[str] | None:
    # The lines of a function's code in the text of a name, if it is made of that text.
    try:
        lines = list(inspect.getblock(rows[code.co_firstlineno - 1 :]))
        definition, indented = _parsed(lines, parser_of(name))
        ast.increment_lineno(definition, code.co_firstlineno - 1 - indented)
        made = compile(ast.Module([definition], []), name, "exec", dont_inherit=True).co_consts
    except (SyntaxError, ValueError, AttributeError, IndexError, tokenize.TokenError):
        return None
    return lines if any(isinstance(each, CodeType) and _looks(each) == _looks(code) for each in made) else None


def _looks(code: CodeType) -> tuple[Any, ...]:
    # What does not depend on which names around it are those of a function. A cell that was edited may differ in a
    # number, or in a name, alone.
    names = {*code.co_names, *code.co_freevars, *code.co_cellvars}
    constants = [_looks(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return code.co_name, code.co_varnames, names, constants, {place for place in code.co_positions() if place[3]}


def _parsed(lines: list[str], parser: Callable[[str], ast.Module]) -> tuple[ast.stmt, bool]:
    # An indented definition is parsed inside a block of its own, so that columns, and strings over several lines, stay.
    text = "".join(lines)
    indented = text[:1].isspace()
    with warnings.catch_warnings():
        # Python has given them when it compiled the file.
        warnings.simplefilter("ignore")
        module = parser("if True:\n" + text if indented else text)
    first = module.body[0]
    return (first.body[0] if isinstance(first, ast.If) else first), indented


def _read_lambda(function: FunctionType) -> FunctionSource | None:
    """The definition of a plain lambda, as a function that returns its value; ``None`` where it is not the only one
    with its parameters in its line.
    """
    code = function.__code__
    linecache.checkcache(code.co_filename)
    rows = linecache.getlines(code.co_filename)
    try:
        module = _parser(function)("".join(rows))
    except SyntaxError:
        return None
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Lambda)
        and node.lineno == code.co_firstlineno
        and tuple(each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)) == parameters
    ]
    if len(found) != 1:
        return None
    body: list[ast.stmt] = [ast.copy_location(ast.Return(found[0].body), found[0].body)]
    definition = ast.FunctionDef(function.__name__, found[0].args, body, [], None, None)
    _place(found[0], 0, rows, False)
    return FunctionSource(code.co_filename, ast.copy_location(definition, found[0]), ast.unparse(found[0]))


def readable_source(function: FunctionType) -> FunctionSource | None:
    """The definition of a function that the user calls, a lambda included; ``None`` if it cannot be read."""
    if function.__name__ == "<lambda>":
        return _read_lambda(function)
    try:
        return read_source(function)
    except TcdslError:
        return None


def _parser(function: FunctionType) -> Callable[[str], ast.Module]:
    # A module that Python's own loader has loaded is plain Python, whatever it was before it was reloaded.
    spec = function.__globals__.get("__spec__")
    filename = function.__code__.co_filename
    if type(getattr(spec, "loader", None)) is SourceFileLoader and getattr(spec, "origin", None) == filename:
        return ast.parse
    return parser_of(filename)


def is_plain_python(function: FunctionType) -> bool:
    """Whether the text of ``function`` is Python, and not of another spelling."""
    return _parser(function) is ast.parse


def _place(tree: ast.AST, shift: int, rows: list[str], indented: bool) -> None:
    # ast counts columns in UTF-8 bytes; the user's editor counts characters.
    def characters(line: int, column: int) -> int:
        row = rows[line - 1 - indented]
        return column if row.isascii() else len(row.encode()[:column].decode(errors="ignore"))

    for node in ast.walk(tree):
        if hasattr(node, "lineno"):
            placed: ast.expr = node  # type: ignore[assignment]
            placed.col_offset = characters(placed.lineno, placed.col_offset)
            placed.lineno += shift
            if placed.end_lineno is not None and placed.end_col_offset is not None:
                placed.end_col_offset = characters(placed.end_lineno, placed.end_col_offset)
                placed.end_lineno += shift


def span_of(node: ast.AST, filename: str) -> Span | None:
    """The place of a node of a `FunctionSource`; ``None`` for nodes without one (operators, contexts)."""
    if not hasattr(node, "lineno"):
        return None
    placed: ast.expr = node  # type: ignore[assignment]
    end_line = placed.end_lineno or placed.lineno
    end_column = placed.col_offset + 1 if placed.end_col_offset is None else placed.end_col_offset
    return Span(filename, placed.lineno, placed.col_offset, end_line, end_column)
