"""What a body changes without binding it: ``ys.append(h)``, ``del ys[0]``, names of nested functions and of the module;
and what it unbinds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence

__all__ = [
    "CHANGING",
    "TellingParts",
    "changed_names",
    "deleted_names",
    "names_from_outside",
    "names_given_to_calls",
    "names_of_nested_functions",
    "root_of",
]

_BLOCKS = ast.stmt | ast.ExceptHandler | ast.match_case
_TELLING = ast.Call | ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Yield | ast.YieldFrom | ast.Await

#: The methods of Python's containers that change them.
CHANGING = frozenset(
    (
        "add",
        "append",
        "appendleft",
        "clear",
        "discard",
        "extend",
        "extendleft",
        "insert",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "rotate",
        "setdefault",
        "sort",
        "update",
    )
)


def root_of(node: ast.expr) -> str:
    """The name at which ``self.parts[0].values`` begins; empty if it begins with something else."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


class TellingParts:
    """The parts of a body that say what it does to names, for each statement once: bodies stand in each other."""

    def __init__(self) -> None:
        self._known: dict[ast.AST, list[ast.AST]] = {}

    def of(self, body: Sequence[ast.stmt]) -> list[ast.AST]:
        """Calls, stores, what `del` unbinds, and what hands on control, in the order of the text."""
        return [part for statement in body for part in self._of(statement)]

    def _of(self, statement: ast.AST) -> list[ast.AST]:
        found = self._known.get(statement)
        if found is None:
            found = self._known[statement] = []
            waiting = [statement]
            while waiting:
                node = waiting.pop()
                if node is not statement and isinstance(node, _BLOCKS):
                    found += self._of(node)
                    continue
                if isinstance(node, _TELLING) or isinstance(getattr(node, "ctx", None), ast.Del):
                    found.append(node)
                waiting.extend(reversed(list(ast.iter_child_nodes(node))))
        return found


def changed_names(parts: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The names of containers that methods of theirs, or ``del``, change, and where."""
    for part in parts:
        match part:
            case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in CHANGING:
                pass
            case ast.Subscript(value=value, ctx=ast.Del()):
                pass
            case _:
                continue
        while isinstance(value, ast.Subscript):
            value = value.value
        if isinstance(value, ast.Name):
            yield value.id, part


def names_given_to_calls(parts: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The names that stand as arguments of calls, and where."""
    for part in parts:
        if isinstance(part, ast.Call):
            for each in (*part.args, *(keyword.value for keyword in part.keywords)):
                if isinstance(each, ast.Name):
                    yield each.id, part


def deleted_names(parts: Iterable[ast.AST]) -> Iterator[tuple[str, ast.expr]]:
    """The names that ``del`` unbinds, and where."""
    for part in parts:
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Del):
            yield part.id, part


def names_from_outside(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that ``global`` and ``nonlocal`` give the function with this body, not the functions in it."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.Global | ast.Nonlocal):
            found.update(statement.names)
        elif not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = [each for each in ast.iter_child_nodes(statement) if isinstance(each, _BLOCKS)]
            found |= names_from_outside(inner)  # type: ignore[arg-type]
    return frozenset(found)


def names_of_nested_functions(definition: ast.FunctionDef) -> frozenset[str]:
    """The names of the function that functions in it bind."""
    return frozenset(name for part in ast.walk(definition) if isinstance(part, ast.Nonlocal) for name in part.names)
