"""Exact integer arithmetic, on Python's integers: what builds programs, binds sizes and interprets indices agree on
it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

__all__ = ["EXACT", "INDEX_ARITHMETIC"]

_OPERATORS = ("neg", "abs", "not_", "add", "sub", "mul", "mod", "lt", "le", "gt", "ge", "eq", "ne")

EXACT: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **{name: getattr(operator, name) for name in _OPERATORS},
        "id": lambda a: a,
        "square": lambda a: a * a,
        "floor_div": operator.floordiv,
        "max": max,
        "min": min,
    }
)

INDEX_ARITHMETIC: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **EXACT,
        "floor_div": lambda a, b: a // b if b else 0,
        "mod": lambda a, b: a % b if b else 0,
        "bit_and": operator.and_,
        "bit_or": operator.or_,
        "bit_xor": operator.xor,
        "shift_left": lambda a, b: a << b if b >= 0 else 0,
        "shift_right": lambda a, b: a >> b if b >= 0 else -int(a < 0),
    }
)
"""The same for indices, and bits; what is divided by 0 is 0, and a negative count shifts all bits out, as in the
arithmetic of NumPy's integers."""
