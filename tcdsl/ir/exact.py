"""Exact integer arithmetic, on Python's integers: what builds programs, binds sizes and interprets indices agree on
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["EXACT", "INDEX_ARITHMETIC"]

EXACT: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "id": lambda a: a,
        "neg": lambda a: -a,
        "abs": abs,
        "square": lambda a: a * a,
        "not_": lambda a: not a,
        "add": lambda a, b: a + b,
        "sub": lambda a, b: a - b,
        "mul": lambda a, b: a * b,
        "floor_div": lambda a, b: a // b,
        "mod": lambda a, b: a % b,
        "max": max,
        "min": min,
        "lt": lambda a, b: a < b,
        "le": lambda a, b: a <= b,
        "gt": lambda a, b: a > b,
        "ge": lambda a, b: a >= b,
        "eq": lambda a, b: a == b,
        "ne": lambda a, b: a != b,
    }
)

INDEX_ARITHMETIC: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **EXACT,
        "floor_div": lambda a, b: a // b if b else 0,
        "mod": lambda a, b: a % b if b else 0,
        "bit_and": lambda a, b: a & b,
        "bit_or": lambda a, b: a | b,
        "bit_xor": lambda a, b: a ^ b,
        "shift_left": lambda a, b: a << b if b >= 0 else 0,
        "shift_right": lambda a, b: a >> b if b >= 0 else -int(a < 0),
    }
)
"""The same for indices, and bits; what is divided by 0 is 0, and a negative count shifts all bits out, as in the
arithmetic of NumPy's integers."""
