"""The source text of a decorated function, as a syntax tree whose positions are those of the user's file."""

from __future__ import annotations

import ast
import inspect
import linecache
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from types import CellType, FunctionType

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.source.spacing import mark_spacing
from tcdsl.span import Span

__all__ = [
    "FunctionSource",
    "check_decorators",
    "is_plain_python",
    "read_source",
    "readable_source",
    "register_parser",
    "span_of",
]

# Files that are not plain Python, by name, with what parses their text: the literal spelling's files are entered here
# when they are compiled.
_PARSERS: dict[str, Callable[[str], ast.Module]] = {}


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
    return _fault(
        function,
        f"the source of `{name}` is not available, so its tensor statements cannot be read",
        "define it in a file or a notebook cell (not through exec, standard input or a frozen application)",
    )


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
    linecache.checkcache(function.__code__.co_filename)
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError):
        raise _unavailable(function, name) from None
    text = "".join(lines)
    # An indented definition is parsed inside a block of its own, so that columns, and strings over several lines, stay.
    indented = text[:1].isspace()
    try:
        with warnings.catch_warnings():
            # Python has given them when it compiled the file.
            warnings.simplefilter("ignore")
            module = _parser(function)("if True:\n" + text if indented else text)
    except SyntaxError:
        raise _fault(
            function, f"the source of `{name}` cannot be parsed on its own", "put the `def` on lines of its own"
        ) from None
    definition = module.body[0].body[0] if isinstance(module.body[0], ast.If) else module.body[0]
    if not isinstance(definition, ast.FunctionDef) or definition.name != function.__name__:
        if function.__code__.co_filename == "<string>":
            # What exec runs has the name under which Python 3.13 keeps the text of ``python -c``.
            raise _unavailable(function, name)
        raise _fault(
            function,
            f"the source found for `{name}` is not its definition",
            "did the file change since it was imported? Reload it",
        )
    _place(definition, first - 1 - indented, lines, indented)
    mark_spacing(definition, lines, first)
    return FunctionSource(function.__code__.co_filename, definition, text)


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


def register_parser(filename: str, parser: Callable[[str], ast.Module]) -> None:
    """Say how the text of ``filename`` is parsed, of which a module or notebook cell has been compiled.

    ``parser`` returns a tree with positions in that text, as `ast.parse` does.
    """
    _PARSERS[filename] = parser


def _parser(function: FunctionType) -> Callable[[str], ast.Module]:
    # A module that Python's own loader has loaded is plain Python, whatever it was before it was reloaded.
    spec = function.__globals__.get("__spec__")
    filename = function.__code__.co_filename
    if type(getattr(spec, "loader", None)) is SourceFileLoader and getattr(spec, "origin", None) == filename:
        return ast.parse
    return _PARSERS.get(filename, ast.parse)


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


def check_decorators(
    function: FunctionType, source: FunctionSource, decorators: tuple[object, ...], methods: Sequence[str] = ()
) -> None:
    """Raise `DslSyntaxError` unless one of ``decorators`` stands directly above the ``def``, or none at all.

    ``methods`` are decorators that are known by their names, because they are attributes, as in ``@f.defvjp``.
    """
    definition, filename = source.definition, source.filename
    if not definition.decorator_list:
        return
    nearest = definition.decorator_list[-1]
    base = nearest.func if isinstance(nearest, ast.Call) else nearest
    if isinstance(base, ast.Attribute) and base.attr in methods:
        return
    names = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    known = {name: cell.cell_contents for name, cell in names.items() if _is_filled(cell)}
    try:
        # The decorator's own expression, which Python has evaluated once already.
        found = eval(compile(ast.Expression(base), filename, "eval"), function.__globals__, known)  # noqa: S307
    except NameError:
        # A name of the function around, imported there: what it was is gone, but for how it is spelled.
        spelled = ast.unparse(base).rpartition(".")[2]
        found = next((each for each in decorators if getattr(each, "__name__", None) == spelled), None)
    except Exception:  # any error of the user's expression means that it is not one of ours
        found = None
    if not any(found is decorator for decorator in decorators):
        raise DslSyntaxError.at(
            f"the decorator `{ast.unparse(nearest)}` stands between `def {definition.name}` and tcdsl's",
            span_of(nearest, filename),
            "put @op or @cd directly above `def`; other decorators go above it",
        )


def _is_filled(cell: CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018  # reading it is the test
    except ValueError:
        return False
    return True
