"""The names that decorated functions may use without importing them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["BOUNDARY_NAMES", "CONSTANT_NAMES", "LANGUAGE_NAMES", "STATEMENT_NAMES"]

BOUNDARY_NAMES = ("clamp", "wrap", "reflect", "symmetric", "get")
STATEMENT_NAMES = ("assign", "output", "stop_gradient")
CONSTANT_NAMES: Mapping[str, float] = MappingProxyType({"pi": 3.141592653589793, "inf": float("inf")})

# Builtins (abs, max, min, sum, round, pow) are found as builtins.
LANGUAGE_NAMES = (
    frozenset(PRIMITIVES) - {"abs", "max", "min", "round", "pow"}
    | frozenset(STATEMENT_NAMES)
    | frozenset(CONSTANT_NAMES)
    | frozenset(DTYPES) - {"bool"}
)
