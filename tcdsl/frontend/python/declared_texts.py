"""Strings in the text of a function that may declare parameters, ``"w" @ x + "b"[hid]``."""

from __future__ import annotations

import ast
from collections.abc import Sequence

__all__ = ["ORDER", "asks_numbers", "declared_names", "is_declaration", "may_declare"]

ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def _is_name_text(node: ast.AST) -> bool:
    """Whether this is a string that could be the name of a parameter."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()


def is_declaration(node: ast.AST) -> bool:
    """Whether this is such a string with the parameter's output axes."""
    return isinstance(node, ast.Subscript) and _is_name_text(node.value)


def may_declare(node: ast.AST) -> bool:
    """Whether this is such a string, with output axes or without."""
    return _is_name_text(node) or is_declaration(node)


def asks_numbers(kind: ast.cmpop) -> bool:
    """Whether this comparison has no meaning for a string and a number: ``"w" > 0``, and not ``mode == 0``."""
    return isinstance(kind, ORDER) and not isinstance(kind, ast.Eq | ast.NotEq)


def declared_names(definition: ast.FunctionDef) -> frozenset[str]:
    """The strings that stand where an operand or an argument does, bare or with output axes, or are bound with axes."""
    found: set[str] = set()
    for node in ast.walk(definition):
        for place in _operands(node):
            inner = place.value if isinstance(place, ast.Subscript) else place
            if isinstance(inner, ast.Constant) and _is_name_text(inner):
                found.add(str(inner.value))
    return frozenset(found)


def _operands(node: ast.AST) -> Sequence[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.Call(args=arguments):
            return arguments
        case ast.Attribute(value=value, attr=name) if not hasattr(str, name):
            return [value]
        case ast.Assign(value=value) | ast.Return(value=ast.expr() as value) | ast.Expr(value=value):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
            return [each for each in parts if isinstance(each, ast.Subscript)]
    return []
