"""What operands look like: strings that declare parameters, and lists that are arrays or Python's."""

from __future__ import annotations

import ast
from collections.abc import Sequence

__all__ = ["ORDER", "declared_names", "is_declaration", "is_display", "is_name_text", "may_be_lists"]

ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


def is_name_text(node: ast.AST) -> bool:
    """Whether this is a string that could be the name of a parameter."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()


def is_declaration(node: ast.AST) -> bool:
    """Whether this is such a string with the parameter's output axes."""
    return isinstance(node, ast.Subscript) and is_name_text(node.value)


def is_display(node: ast.AST) -> bool:
    """Whether this is a list, a tuple or a batch that is written where it is used."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "batch"
    return isinstance(node, ast.List | ast.Tuple)


def may_be_lists(node: ast.BinOp) -> bool:
    """Whether this may join or repeat lists, as far as the text shows."""
    constants = [each.value for each in (node.left, node.right) if isinstance(each, ast.Constant)]
    if isinstance(node.op, ast.Mult):
        return not any(isinstance(value, float) for value in constants)
    return isinstance(node.op, ast.Add) and not constants


def declared_names(definition: ast.FunctionDef) -> frozenset[str]:
    """The strings that stand where an operand or an argument does, bare or with output axes."""
    found: set[str] = set()
    for node in ast.walk(definition):
        for place in _operands(node):
            inner = place.value if isinstance(place, ast.Subscript) else place
            if isinstance(inner, ast.Constant) and is_name_text(inner):
                found.add(str(inner.value))
    return frozenset(found)


def _operands(node: ast.AST) -> Sequence[ast.expr]:
    match node:
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case ast.UnaryOp(operand=operand):
            return [operand]
        case ast.Call(args=arguments):
            return arguments
    return []
