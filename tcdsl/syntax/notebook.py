"""The literal spelling in IPython and Jupyter: ``%load_ext tcdsl``.

Cells are transformed when they are entered: what IPython runs is the plain form. Its syntax tree then gets the
positions of the literal text, and that text is what tracebacks and ``inspect.getsource`` find.
"""

from __future__ import annotations

import ast
import codeop
import linecache
import tokenize
import warnings
from dataclasses import dataclass
from typing import Any

from tcdsl.comprehensions import notebook as comprehension_cells
from tcdsl.frontend.source.texts import is_run_by_magic, name_of_running_cell, register_parser, store_cell
from tcdsl.syntax.grammar.edits import Edited
from tcdsl.syntax.grammar.parsing import carrier_text, desugared, parse
from tcdsl.syntax.grammar.tokens import Lines

__all__ = ["LiteralCells", "load_ipython_extension", "unload_ipython_extension"]


def load_ipython_extension(shell: Any) -> None:
    """``%load_ext tcdsl``: functions decorated with ``op`` and ``cd`` may be written in the literal spelling, and cells
    that begin with ``%%tc`` in the language of Tensor Comprehensions.
    """
    if _loaded(shell) is None:
        cells = LiteralCells(shell)
        shell.input_transformers_cleanup.append(cells.transform)
        # Before other transformers, which would find the trees changed.
        shell.ast_transformers.insert(0, cells)
        comprehension_cells.register(shell)


def unload_ipython_extension(shell: Any) -> None:
    """``%unload_ext tcdsl``: cells are plain Python again."""
    cells = _loaded(shell)
    if cells is not None:
        shell.input_transformers_cleanup.remove(cells.transform)
        shell.ast_transformers.remove(cells)
        comprehension_cells.unregister(shell)


def _loaded(shell: Any) -> LiteralCells | None:
    return next((found for found in shell.ast_transformers if isinstance(found, LiteralCells)), None)


@dataclass(frozen=True, slots=True)
class _Function:
    """A decorated function of the cell that was entered last: its tree in the places of the literal text, and rows."""

    placed: ast.FunctionDef
    line: int
    plain: tuple[str, ...]
    literal: tuple[str, ...]


class LiteralCells:
    """What IPython calls for each cell: ``transform`` on its lines, then ``visit`` on its syntax tree."""

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        self._functions: dict[str, _Function] = {}

    def transform(self, lines: list[str]) -> list[str]:
        """The plain form of a cell. Cells that are unfinished, or a cell magic's, stay as they are."""
        self._functions = {}
        if not any("@" in line for line in lines) or lines[0].startswith("%%"):
            return lines
        magics = _magics(lines)
        text = "".join("\n" if number in magics else line for number, line in enumerate(lines))
        name = f"In[{self._shell.execution_count}]"
        # While it is not known what IPython calls the cell, faults show its lines by the name that the user sees.
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        try:
            plain = desugared(text, name)
        except SyntaxError as error:
            carrier = carrier_text(text)
            if not _is_unfinished(carrier):
                error.filename = name  # IPython would call it a string
                raise
            # A console asks whether more lines are to come.
            return _with_magics(Lines(carrier).rows, lines, magics)
        finally:
            linecache.cache.pop(name, None)
        return lines if plain.text == text else self._entered(plain, lines, magics)

    def _entered(self, plain: Edited, lines: list[str], magics: set[int]) -> list[str]:
        rows = plain.lines.rows
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # IPython gives them
            tree = ast.parse(plain.text)
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        dumps = [(ast.dump(node), node, _first_line(node), node.end_lineno or 0) for node in functions]
        plain.place(tree)
        for dump, node, first, last in dumps:
            shown = tuple(rows[first - 1 : last]), tuple(plain.original.rows[first - 1 : last])
            if shown[0] != shown[1]:
                self._functions[dump] = _Function(node, first, *shown)
        return _with_magics(rows, lines, magics)

    def visit(self, tree: ast.AST) -> ast.AST:
        """Put the functions of a cell in the places of their literal text, and that text before who asks for it."""
        definitions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)] if self._functions else []
        for node in definitions:
            function = self._functions.get(ast.dump(node))
            if function is not None:
                first = _first_line(node)
                self._show(function, first)
                _move(node, function, first - function.line)
        return tree

    def _show(self, function: _Function, first: int) -> None:
        if is_run_by_magic():
            # What a magic such as %%time runs is stored nowhere.
            text = "\n" * (first - 1) + "".join(function.literal)
            register_parser(store_cell(self._shell, text), parse)
            return
        # IPython has just stored the plain cell, under a name of its own.
        name = name_of_running_cell()
        entry = linecache.cache.get(name or "", ())
        if name is None or len(entry) != 4:
            return
        _, _, rows, path = entry
        last = first - 1 + len(function.plain)
        shown = [*rows[: first - 1], *function.literal, *rows[last:]]
        linecache.cache[name] = (sum(map(len, shown)), None, shown, path)
        register_parser(name, parse)


def _with_magics(rows: list[str], lines: list[str], magics: set[int]) -> list[str]:
    return [lines[number] if number in magics else row for number, row in enumerate(rows)]


def _is_unfinished(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return codeop.compile_command(text, symbol="exec") is None
    except (SyntaxError, ValueError, OverflowError):
        return False


def _first_line(node: ast.FunctionDef) -> int:
    return min(node.lineno, *(part.lineno for part in node.decorator_list), node.lineno)


def _move(node: ast.FunctionDef, function: _Function, shift: int) -> None:
    for part, placed in zip(ast.walk(node), ast.walk(function.placed), strict=True):
        if hasattr(placed, "lineno"):
            ast.copy_location(part, placed)
            part.lineno += shift  # type: ignore[attr-defined]
            part.end_lineno += shift  # type: ignore[attr-defined]


def _magics(lines: list[str]) -> set[int]:
    # The lines that are IPython's own; whatever they contain need not be Python's tokens.
    found: set[int] = set()
    while True:
        rows = ["\n" if number in found else line for number, line in enumerate(lines)]
        magic = _first_magic(rows)
        if magic is None or magic in found:
            return found
        found.add(magic)
        while lines[magic].rstrip("\n").endswith("\\") and magic + 1 < len(lines):
            magic += 1
            found.add(magic)


def _first_magic(rows: list[str]) -> int | None:
    layout = (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE)
    before = ""
    source = iter(rows)
    try:
        for token in tokenize.generate_tokens(lambda: next(source, "")):
            if token.string.isspace() and token.type == tokenize.ERRORTOKEN:
                continue
            begins = before == "" and token.type not in layout
            if begins and token.string[:1] in tuple("%!?,;/"):
                return token.start[0] - 1
            after = token.line[token.end[1] :]
            if before == "=" and (token.string == "%" or (token.string == "!" and after[:1] != ".")):
                return token.start[0] - 1
            if token.string == "?" and not after.strip():
                return token.start[0] - 1
            if token.type == tokenize.NEWLINE:
                before = ""
            elif token.type not in layout:
                before = token.string
    except (tokenize.TokenError, SyntaxError):
        return None
    return None
