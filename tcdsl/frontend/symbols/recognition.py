"""Which Python objects mean a primitive, a reduction, a cast or a boundary of the language.

``np.exp``, ``math.exp`` and tcdsl's own ``exp`` are the primitive ``exp``; the builtin ``sum`` and ``np.sum`` are the
reduction ``sum``; ``float`` and ``np.float64`` are the cast ``float64``. Functions of the language carry their name in
the attribute ``__tcdsl_name__``, which is how tcdsl's own exports are told from a user's function called ``relu``.
"""

from __future__ import annotations

import builtins
import copy
import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from tcdsl.ir.dtypes import DTYPES

__all__ = [
    "BOUNDARIES",
    "CASTS",
    "COMBINING",
    "CONSTANTS",
    "REDUCTIONS",
    "name_of_ufunc",
    "names_axes",
    "of_one_cell",
    "recognize",
]

REDUCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "sum": "add",
        "prod": "multiply",
        "max": "max",
        "min": "min",
        "any": "or",
        "all": "and",
        "mean": "mean",
        "argmax": "argmax",
        "argmin": "argmin",
    }
)
COMBINING = MappingProxyType({name: REDUCTIONS[name] for name in ("sum", "prod", "max", "min", "any", "all")})
"""Those that an accumulator alone computes, so that a statement may be one."""
BOUNDARIES = ("clamp", "wrap", "reflect", "symmetric")
CASTS: Mapping[str, str] = MappingProxyType({**{name: name for name in DTYPES}, "float": "float64", "int": "int64"})
CONSTANTS: Mapping[str, float] = MappingProxyType({"pi": math.pi, "inf": math.inf})

_NUMPY_NAMES = {
    "copy": "id",
    "negative": "neg",
    "absolute": "abs",
    "reciprocal": "recip",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "arctan2": "atan2",
    "add": "add",
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "floor_divide": "floor_div",
    "remainder": "mod",
    "power": "pow",
    "maximum": "max",
    "minimum": "min",
    "amax": "max",
    "amin": "min",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
    "equal": "eq",
    "not_equal": "ne",
    "logical_and": "and_",
    "logical_or": "or_",
    "logical_not": "not_",
    "bitwise_and": "bit_and",
    "bitwise_or": "bit_or",
    "bitwise_xor": "bit_xor",
    "invert": "bit_not",
    "left_shift": "shift_left",
    "right_shift": "shift_right",
}
_SAME_IN_NUMPY = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sqrt", "floor",
    "ceil", "round", "sign", "square", "where", *REDUCTIONS,
)  # fmt: skip
_MATH_NAMES = {"fabs": "abs", "fsum": "sum"}
_SAME_IN_MATH = (
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh",
    "asinh", "acosh", "atanh", "atan2", "sqrt", "erf", "floor", "ceil", "pow", "prod",
)  # fmt: skip
_SAME_IN_BUILTINS = ("abs", "round", "pow", "id", "sum", "max", "min", "any", "all", "bool")


def _table() -> dict[int, tuple[object, str]]:
    found: dict[int, tuple[object, str]] = {}

    def enter(module: object, name: str, meaning: str) -> None:
        function = getattr(module, name, None)
        if function is not None:
            # The object is kept beside its id, so that the id stays its own.
            found[id(function)] = (function, meaning)

    for name, meaning in {**{name: name for name in _SAME_IN_NUMPY}, **_NUMPY_NAMES}.items():
        enter(np, name, meaning)
    for name, meaning in {**{name: name for name in _SAME_IN_MATH}, **_MATH_NAMES}.items():
        enter(math, name, meaning)
    for name in _SAME_IN_BUILTINS:
        enter(builtins, name, name)
    for dtype in DTYPES:
        enter(np, dtype, dtype)
    enter(np, "bool_", "bool")
    enter(copy, "copy", "id")
    enter(copy, "deepcopy", "id")
    enter(builtins, "float", "float64")
    enter(builtins, "int", "int64")
    return found


_RECOGNIZED = _table()


def recognize(function: object) -> str | None:
    """The name in the language of a Python function: ``recognize(np.maximum)`` is ``"max"``; ``None`` if none."""
    entry = _RECOGNIZED.get(id(function))
    if entry is not None:
        return entry[1]
    name = getattr(function, "__tcdsl_name__", None) if not isinstance(function, type) else None
    return name if isinstance(name, str) else None


def name_of_ufunc(ufunc: np.ufunc) -> str:
    """What users write for it, ``np.exp``; for a ufunc of another package, which does not say of which, its name."""
    name = str(ufunc.__name__)
    return f"np.{name}" if getattr(np, name, None) is ufunc else name


def names_axes(function: object, arguments: Sequence[object]) -> bool:
    """Whether a call of a reduction names axes: the second argument in ``np.max(x, 0)``, and not in ``max(x, 0)``."""
    return len(arguments) > 1 and hasattr(function, "_implementation")


def of_one_cell(name: str) -> tuple[str, str]:
    """What is wrong with ``np.max(x[i], 0)``, and what to write instead."""
    instead = f"; write `np.{name}imum(a, b)` for the {name}imum of two numbers" if name in ("max", "min") else ""
    return f"np.{name} with an axis, of one cell", f"it takes whole arrays, as in `np.{name}(x, 0)`{instead}"
