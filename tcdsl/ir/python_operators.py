"""Which primitive each operator of Python's syntax is, read off the table of primitives: ``ast.Add`` is ``add``."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from types import MappingProxyType

from tcdsl.ir.primitives import PRIMITIVES, Primitive

__all__ = ["PYTHON_OPERATORS"]


def _operator(row: Primitive) -> type[ast.AST]:
    match ast.parse(f"{row.operator} a" if row.arity == 1 else f"a {row.operator} b", mode="eval").body:
        case ast.Compare(ops=[operator]) | ast.UnaryOp(op=operator) | ast.BinOp(op=operator) | ast.BoolOp(op=operator):
            return type(operator)
    raise TypeError(f"{row.operator} is no operator of Python")


PYTHON_OPERATORS: Mapping[type[ast.AST], str] = MappingProxyType(
    {_operator(row): row.name for row in PRIMITIVES.values() if row.operator}
)
"""By their classes: binary and unary ones, comparisons, and ``and`` and ``or``. (``+x`` has none: it is ``x``.)"""
