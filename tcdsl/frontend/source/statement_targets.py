"""What a tensor statement writes, as its syntax tree says."""

from __future__ import annotations

import ast

__all__ = ["is_memory_attribute", "is_of_names", "may_be_logic", "slices_as_calls", "target_of", "value_of"]


def target_of(node: ast.stmt) -> ast.expr:
    """The target of an assignment, an augmented one, or a call of ``assign``."""
    if isinstance(node, ast.Expr):
        found: ast.expr = node.value.args[0]  # type: ignore[attr-defined]
    else:
        found = node.targets[0] if isinstance(node, ast.Assign) else node.target  # type: ignore[attr-defined]
    return found


def value_of(node: ast.stmt) -> ast.expr | None:
    """What it writes; ``None`` for a call of ``assign`` that does not say it."""
    if isinstance(node, ast.Expr):
        return next(iter(node.value.args[2:]), None)  # type: ignore[attr-defined]
    found: ast.expr = node.value  # type: ignore[attr-defined]
    return found


_MEMORY = frozenset(("value", "grad", "merge"))


def is_memory_attribute(node: ast.AST) -> bool:
    """Whether a node is `p.value`, `p.grad`, `p.grad.merge`: the memory of a tensor, if ``p`` is one."""
    return isinstance(node, ast.Attribute) and node.attr in _MEMORY


def is_of_names(target: ast.expr) -> bool:
    """Whether a target is names alone, however they are nested; what a starred name takes is a list."""
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(is_of_names, target.elts))
    return isinstance(target, ast.Name)


def may_be_logic(target: ast.expr) -> bool:
    """Whether the subscript could be a string: one that is written there, or what a name holds."""
    if not isinstance(target, ast.Subscript):
        return False
    key = target.slice
    if isinstance(key, ast.Constant):
        return isinstance(key.value, str)
    return isinstance(key, ast.Name | ast.Attribute | ast.JoinedStr)


def slices_as_calls(key: ast.expr) -> ast.expr:
    """``key`` where `a:b` may not stand: `slice(a, b, None)`."""
    if isinstance(key, ast.Slice):
        bounds: list[ast.expr] = [
            ast.Constant(None) if part is None else part for part in (key.lower, key.upper, key.step)
        ]
        return ast.Call(ast.Name("slice", ast.Load()), bounds, [])
    if isinstance(key, ast.Tuple):
        return ast.Tuple([slices_as_calls(part) for part in key.elts], ast.Load())
    return key
