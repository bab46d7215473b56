"""What a tensor statement writes, as its syntax tree says."""

from __future__ import annotations

import ast
from typing import Any

__all__ = ["is_whole", "target_name", "target_of"]


def target_of(node: ast.stmt) -> ast.expr:
    """The target of an assignment, an augmented one, or a call of ``assign``."""
    if isinstance(node, ast.Expr):
        found: ast.expr = node.value.args[0]  # type: ignore[attr-defined]
    else:
        found = node.targets[0] if isinstance(node, ast.Assign) else node.target  # type: ignore[attr-defined]
    return found


def target_name(node: ast.stmt) -> str:
    """The name of the tensor that a statement writes."""
    target = target_of(node)
    base: Any = target.value if isinstance(target, ast.Subscript) else target
    return str(base.id)


def is_whole(node: ast.stmt) -> bool:
    """Whether a statement is ``T[...] = e`` or ``T[:] = e``, which store into every cell."""
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if not isinstance(target, ast.Subscript):
        return False
    key = target.slice
    if isinstance(key, ast.Constant) and key.value is Ellipsis:
        return True
    return isinstance(key, ast.Slice) and key.lower is None and key.upper is None and key.step is None
