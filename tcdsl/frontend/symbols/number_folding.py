"""Primitives on numbers that Python knows at staging: ``2 * pi`` is one constant, computed as Python computes it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["fold"]

_PYTHON: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "id": operator.pos,
        "neg": operator.neg,
        "abs": abs,
        "square": lambda a: a * a,
        "add": operator.add,
        "sub": operator.sub,
        "mul": operator.mul,
        "div": operator.truediv,
        "floor_div": operator.floordiv,
        "mod": operator.mod,
        "pow": operator.pow,
        "max": max,
        "min": min,
        "fst": lambda a, b: a,
        "snd": lambda a, b: b,
        "fma": lambda a, b, c: a * b + c,
        "relu": lambda a: a if a > 0 else 0 * a,
        "sat01": lambda a: min(max(a, 0), 1),
        "sign": lambda a: (a > 0) - (a < 0),
        "lt": operator.lt,
        "le": operator.le,
        "gt": operator.gt,
        "ge": operator.ge,
        "eq": operator.eq,
        "ne": operator.ne,
        "not_": operator.not_,
        "and_": lambda a, b: bool(a) and bool(b),
        "or_": lambda a, b: bool(a) or bool(b),
        "bit_and": operator.and_,
        "bit_or": operator.or_,
        "bit_xor": operator.xor,
        "bit_not": lambda a: not a if isinstance(a, bool) else ~a,
        "shift_left": operator.lshift,
        "shift_right": operator.rshift,
        "where": lambda c, a, b: a if c else b,
        "floor": lambda a: a if isinstance(a, int) else float(np.floor(a)),
        "ceil": lambda a: a if isinstance(a, int) else float(np.ceil(a)),
        "round": lambda a: a if isinstance(a, int) else float(np.rint(a)),
    }
)
# Exponents and shifts beyond this are left to the program, where they have a fixed width.
_LARGEST_INTEGER = 2**64
_MANY_BITS = 64


def fold(primitive: str, numbers: Sequence[bool | int | float | None]) -> bool | int | float | None:
    """The result as a Python number, or ``None``: a number is unknown, or Python has no answer (``1 / 0``)."""
    if any(number is None for number in numbers):
        return None
    known: list[Any] = list(numbers)
    if primitive in ("pow", "shift_left", "shift_right") and (known[1] < 0 or known[1] > _MANY_BITS):
        return None
    if primitive in ("max", "min", "sat01", "relu", "sign") and any(map(_is_nan, known)):
        return None
    try:
        if primitive in _PYTHON:
            result = _PYTHON[primitive](*known)
        else:
            with np.errstate(all="ignore"):
                result = PRIMITIVES[primitive].evaluate(*(np.float64(number) for number in known))
    except (ArithmeticError, TypeError, ValueError):
        return None
    return _plain(result)


def _is_nan(number: Any) -> bool:
    return isinstance(number, float) and math.isnan(number)


def _plain(result: Any) -> bool | int | float | None:
    if isinstance(result, np.generic | np.ndarray):
        result = result.item()
    if isinstance(result, int) and abs(result) >= _LARGEST_INTEGER:
        return None
    return result if isinstance(result, bool | int | float) else None
