"""Primitives of constants, computed before a program runs."""

from __future__ import annotations

import numpy as np

from tcdsl.ir.build import constant
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Apply, Constant
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["evaluated"]

_UNDEFINED_FOR_ZERO = ("floor_div", "mod")


def evaluated(step: Apply) -> Constant | None:
    """``evaluated(Apply("sqrt", (4.0,)))`` is ``2.0``: computed in the type of the operands, as NumPy computes it.

    None where an operand is no constant, and where there is no answer, as in a division of integers by 0. Integers of
    any size are computed by `tcdsl.ir.build.apply` already.
    """
    values = []
    for argument in step.arguments:
        if not isinstance(argument, Constant) or argument.dtype == INTEGER:
            return None
        values.append(np.dtype(argument.dtype).type(argument.value))
    if step.primitive in _UNDEFINED_FOR_ZERO and values[1] == 0:
        return None
    with np.errstate(all="ignore"):
        try:
            number = np.asarray(PRIMITIVES[step.primitive].evaluate(*values)).astype(step.dtype).item()
        except (ArithmeticError, ValueError):
            return None
    return constant(number, step.dtype, step.span)
