"""Syntax trees: copies, and changes of a function's own statements.

Rewriting changes trees in place, while what the user wrote is still asked for.
"""

from __future__ import annotations

import ast
from typing import TypeVar

__all__ = ["OwnStatements", "copied"]

_Node = TypeVar("_Node", bound=ast.AST)


def copied(node: _Node) -> _Node:
    """A tree like ``node`` that shares nothing with it that can change: `copy.deepcopy` takes five times as long.

    What others have hung on nodes is left behind: what shows tracebacks gives each its ``parent``, also those nodes,
    such as `ast.Load`'s, of which Python has one for all trees.
    """
    if not node._fields:
        return node  # such as `ast.Load`: there is nothing to change
    made = type(node).__new__(type(node))
    held, given = node.__dict__, made.__dict__
    for name in node._fields:
        if name in held:
            part = held[name]
            if isinstance(part, ast.AST):
                part = copied(part)
            elif isinstance(part, list):
                part = [copied(each) if isinstance(each, ast.AST) else each for each in part]
            given[name] = part
    for name in node._attributes:
        if name in held:
            given[name] = held[name]
    return made


class OwnStatements(ast.NodeTransformer):
    """Base of what changes a function's own statements: a nested function is ordinary Python, and stays as it is."""

    def _kept(self, node: ast.stmt) -> ast.stmt:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _kept  # noqa: N815  # names of `ast`
