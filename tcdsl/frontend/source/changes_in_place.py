"""What a body changes without binding it: ``ys.append(h)``, ``self.h = h``, and names of nested functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

__all__ = ["CHANGING", "changed_names", "names_of_nested_functions", "root_of"]

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
    """The names of containers that methods of theirs change, and where."""
    for part in ast.walk(ast.Module(list(body), [])):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr in CHANGING:
            value = part.func.value
            while isinstance(value, ast.Subscript):
                value = value.value
            if isinstance(value, ast.Name):
                yield value.id, part


def names_of_nested_functions(definition: ast.FunctionDef) -> frozenset[str]:
    """The names of the function that functions in it bind."""
    return frozenset(name for part in ast.walk(definition) if isinstance(part, ast.Nonlocal) for name in part.names)
