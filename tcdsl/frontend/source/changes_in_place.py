"""What a body changes without binding it: ``ys.append(h)``, ``del ys[0]``, names of nested functions and of the module;
and what it unbinds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

__all__ = [
    "CHANGING",
    "changed_names",
    "deleted_names",
    "names_from_outside",
    "names_given_to_calls",
    "names_of_nested_functions",
    "root_of",
]

_BLOCKS = ast.stmt | ast.ExceptHandler | ast.match_case

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


def changed_names(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """The names of containers that methods of theirs, or ``del``, change, and where."""
    for part in ast.walk(ast.Module(list(body), [])):
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


def names_given_to_calls(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """The names that stand as arguments of calls, and where."""
    for part in ast.walk(ast.Module(list(body), [])):
        if isinstance(part, ast.Call):
            for each in (*part.args, *(keyword.value for keyword in part.keywords)):
                if isinstance(each, ast.Name):
                    yield each.id, part


def deleted_names(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    """The names that ``del`` unbinds, and where."""
    for part in ast.walk(ast.Module(list(body), [])):
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
