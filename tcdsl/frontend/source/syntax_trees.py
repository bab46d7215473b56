"""Copies of syntax trees: rewriting changes trees in place, while what the user wrote is still asked for."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

__all__ = ["copied"]

_Node = TypeVar("_Node", bound=ast.AST)


def copied(node: _Node) -> _Node:
    """A tree like ``node`` that shares nothing with it that can change: `copy.deepcopy` takes five times as long."""
    made = type(node).__new__(type(node))
    made.__dict__.update({name: _copied_part(part) for name, part in node.__dict__.items()})
    return made


def _copied_part(part: Any) -> Any:
    if isinstance(part, ast.AST):
        return copied(part)
    return [_copied_part(each) for each in part] if isinstance(part, list) else part
