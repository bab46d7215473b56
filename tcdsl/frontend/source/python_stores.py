"""What Python does for its operators, and for stores: into an item of a container, or onto what a name holds."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.symbols import SymbolicArray

__all__ = ["OPERATORS", "augmented", "store_item"]

_BINARY: Mapping[type[ast.operator], str] = MappingProxyType(
    {
        ast.Add: "add",
        ast.Sub: "sub",
        ast.Mult: "mul",
        ast.Div: "truediv",
        ast.FloorDiv: "floordiv",
        ast.Mod: "mod",
        ast.Pow: "pow",
        ast.RShift: "rshift",
        ast.LShift: "lshift",
        ast.BitOr: "or",
        ast.BitAnd: "and",
        ast.BitXor: "xor",
        ast.MatMult: "matmul",
    }
)
_UNARY: Mapping[type[ast.AST], str] = MappingProxyType(
    {ast.UAdd: "pos", ast.USub: "neg", ast.Not: "not", ast.Invert: "invert"}
)
_COMPARISONS: Mapping[type[ast.AST], str] = MappingProxyType(
    {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
)

OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = MappingProxyType(
    {
        kind: getattr(operator, f"__{word}__")
        for kind, word in (*_BINARY.items(), *_UNARY.items(), *_COMPARISONS.items())
    }
)
"""Python's functions of binary and unary operators and of comparisons."""

_IN_PLACE: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = MappingProxyType(
    {kind: getattr(operator, f"__i{word}__") for kind, word in _BINARY.items()}
)


def augmented(kind: type[ast.operator], current: Any, value: Any) -> Any:
    """``current <kind>= value`` in a decorated function, where a value of the program gives way to another one."""
    is_memory = isinstance(current, SymbolicArray) and getattr(current, "memory", False)
    is_value = isinstance(current, SymbolicArray | GraphTensor) and not is_memory
    return (OPERATORS if is_value else _IN_PLACE)[kind](current, value)


def store_item(node: ast.stmt, container: Any, key: Any, value: Any) -> Any:
    """``container[key] = value``, or ``+=`` and its kin; the container."""
    if isinstance(node, ast.AugAssign):
        value = augmented(type(node.op), container[key], value)
    container[key] = value
    return container
