"""What Python does for a store: into an item of a container, and with an operator onto what a name holds."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["augmented", "store_item"]

_OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = MappingProxyType(
    {
        ast.Add: operator.iadd,
        ast.Sub: operator.isub,
        ast.Mult: operator.imul,
        ast.Div: operator.itruediv,
        ast.FloorDiv: operator.ifloordiv,
        ast.Mod: operator.imod,
        ast.Pow: operator.ipow,
        ast.RShift: operator.irshift,
        ast.LShift: operator.ilshift,
        ast.BitOr: operator.ior,
        ast.BitAnd: operator.iand,
        ast.BitXor: operator.ixor,
        ast.MatMult: operator.imatmul,
    }
)


def augmented(kind: type[ast.operator], current: Any, value: Any) -> Any:
    """``current <kind>= value``."""
    return _OPERATORS[kind](current, value)


def store_item(node: ast.stmt, container: Any, key: Any, value: Any) -> Any:
    """``container[key] = value``, or ``+=`` and its kin; the container."""
    if isinstance(node, ast.AugAssign):
        value = _OPERATORS[type(node.op)](container[key], value)
    container[key] = value
    return container
