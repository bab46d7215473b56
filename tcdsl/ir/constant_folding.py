"""Primitives of constants, computed before a program runs: numbers as Python computes them, typed ones as NumPy."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from tcdsl.ir.dtypes import INTEGER, is_integer
from tcdsl.ir.exact import EXACT
from tcdsl.ir.expressions import Apply, Constant
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["evaluated", "fold"]

_UNDEFINED_FOR_ZERO = ("floor_div", "mod")

_PYTHON: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        **EXACT,
        "div": operator.truediv,
        "pow": operator.pow,
        "fst": lambda a, b: a,
        "snd": lambda a, b: b,
        "fma": lambda a, b, c: a * b + c,
        "relu": lambda a: a if a > 0 else type(a)(0),
        "sat01": lambda a: type(a)(1) if a > 1 else a if a > 0 else type(a)(0),
        "sign": lambda a: type(a)((a > 0) - (a < 0)),
        "max": lambda a, b: a + b if a == b == 0 else max(a, b),
        "min": lambda a, b: -(-a - b) if a == b == 0 else min(a, b),
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
    """``fold("mul", (2, math.pi))`` is 6.28...: a Python number, computed as Python computes it.

    ``None`` where a number is unknown, or Python has no answer (``1 / 0``).
    """
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
                result = PRIMITIVES[primitive].evaluate(*(np.float64(number) for number in known)).item()
    except (ArithmeticError, TypeError, ValueError):
        return None
    fits = isinstance(result, float) or (isinstance(result, int) and abs(result) < _LARGEST_INTEGER)
    return result if fits else None


def _is_nan(number: Any) -> bool:
    return isinstance(number, float) and math.isnan(number)


def evaluated(step: Apply) -> Constant | None:
    """``evaluated(Apply("sqrt", (4.0,)))`` is ``2.0``: computed in the type of the operands, as NumPy computes it.

    None where an operand is no constant, and where there is no answer, as in a division of integers by 0. Integers of
    any size are computed by `tcdsl.ir.build.apply` already.
    """
    values = []
    for argument in step.arguments:
        if not isinstance(argument, Constant) or argument.dtype == INTEGER:
            return None
        if is_integer(argument.dtype) and not _fits(argument):
            return None  # of an index, which is as large as it is
        values.append(np.dtype(argument.dtype).type(argument.value))
    if step.primitive in _UNDEFINED_FOR_ZERO and values[1] == 0:
        return None
    with np.errstate(all="ignore"):
        try:
            number = np.asarray(PRIMITIVES[step.primitive].evaluate(*values)).astype(step.dtype).item()
        except (ArithmeticError, ValueError):
            return None
    return Constant(math.nan if _is_nan(number) else number, step.dtype, step.span)


def _fits(number: Constant) -> bool:
    ends = np.iinfo(number.dtype)
    return bool(ends.min <= number.value <= ends.max)
