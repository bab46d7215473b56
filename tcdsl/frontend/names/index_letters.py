"""Which letters a local definition may take for index variables where they stand outside of subscripts.

::

    fy = (y + 0.5) / H          y is an index variable, whatever it means outside of the function, because
    O[y, x] = A[y, x] * fy      a later statement indexes with it
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping

from tcdsl.frontend.names.name_resolution import is_letter
from tcdsl.frontend.source.statement_targets import is_of_names

__all__ = ["LetterUses", "letters_outside_subscripts"]

_Position = tuple[int, int]
_LAST = (sys.maxsize, 0)


class LetterUses:
    """Where a function's body indexes with one-letter names, and what it indexes."""

    def __init__(self, definition: ast.FunctionDef) -> None:
        self._uses: list[tuple[_Position, str, str]] = []
        self._loops = [
            (_start(node), _end(node)) for node in ast.walk(definition) if isinstance(node, ast.For | ast.While)
        ]
        for statement in definition.body:
            self._collect(statement, frozenset())

    def _collect(self, node: ast.AST, hidden: frozenset[str], defines: bool = False) -> None:
        if isinstance(node, ast.Assign):
            defines = all(map(is_of_names, node.targets))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return
        if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            hidden |= {name.id for clause in node.generators for name in _names(clause.target)}
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            for name in _names(node.slice):
                if is_letter(name.id) and name.id not in hidden:
                    # A local definition indexes where it is used, which is after it and after whatever is before that.
                    self._uses.append((_LAST if defines else _start(node), name.id, node.value.id))
        for child in ast.iter_child_nodes(node):
            self._collect(child, hidden, defines)

    def after(self, statement: ast.stmt) -> Mapping[str, frozenset[str]]:
        """The letters that what runs after ``statement`` indexes with, and the names of what they index."""
        since = _end(statement)
        for start, end in self._loops:
            if start <= _start(statement) < end:
                since = min(since, start)
        found: dict[str, frozenset[str]] = {}
        for position, letter, base in self._uses:
            if position >= since:
                found[letter] = found.get(letter, frozenset()) | {base}
        return found


def letters_outside_subscripts(node: ast.AST) -> Iterator[str]:
    """The one-letter names of an expression that stand for values in it."""
    match node:
        case ast.Name(id=name):
            if is_letter(name):
                yield name
        case ast.Subscript(value=base) | ast.Attribute(value=base):
            if not isinstance(base, ast.Name):
                yield from letters_outside_subscripts(base)
        case ast.Call(args=arguments):
            for argument in arguments:
                yield from letters_outside_subscripts(argument)
        case ast.GeneratorExp() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.Lambda():
            return  # they have names of their own
        case _:
            for child in ast.iter_child_nodes(node):
                yield from letters_outside_subscripts(child)


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Name))


def _start(node: ast.stmt | ast.expr) -> _Position:
    return node.lineno, node.col_offset


def _end(node: ast.stmt | ast.expr) -> _Position:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
