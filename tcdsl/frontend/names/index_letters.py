"""Which letters a local definition may take for index variables where they stand outside of subscripts.

::

    fy = (y + 0.5) / H          y is an index variable, whatever it means outside of the function, because
    O[y, x] = A[y, x] * fy      a later statement indexes with it
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from typing import Protocol

from tcdsl.frontend.names.function_scope import FunctionScope
from tcdsl.frontend.names.name_resolution import is_letter
from tcdsl.frontend.source.statement_targets import is_of_names

__all__ = ["LetterUses", "letters_outside_subscripts", "value_letters"]

_Position = tuple[int, int]
_LAST = (sys.maxsize, 0)


class BoundNames(Protocol):
    """What a function binds."""

    @property
    def own_names(self) -> frozenset[str]:
        """All of its own names."""

    @property
    def targets(self) -> frozenset[str]:
        """Those that nothing else than tensor statements binds."""


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


def value_letters(
    node: ast.stmt, bound: BoundNames, uses: Mapping[str, frozenset[str]], scope: FunctionScope
) -> frozenset[str]:
    """The letters that are index variables in the value of a local definition.

    They are those that are imported from `tcdsl.indices`, and those that index tensors afterwards, as ``uses`` says.
    """
    named = set(letters_outside_subscripts(node.value)) - bound.own_names  # type: ignore[attr-defined]
    return frozenset(
        name
        for name in named
        if scope.is_index_letter(name)
        or any(base in bound.targets or scope.may_be_tensor(base) for base in uses.get(name, ()))
    )


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Name))


def _start(node: ast.stmt | ast.expr) -> _Position:
    return node.lineno, node.col_offset


def _end(node: ast.stmt | ast.expr) -> _Position:
    return node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
