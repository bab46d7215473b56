"""The table of accumulators: how a statement combines a new value with what a cell holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tcdsl.ir.dtypes import is_boolean, is_integer

__all__ = ["ACCUMULATORS", "CHOICES", "Accumulator", "neutral_element"]


@dataclass(frozen=True, slots=True)
class Accumulator:
    """One row: ``Accumulator("add", "+=", "+", ...)``.

    ``symbol`` is what a plain Python statement and the printed program use, ``literal`` the operator of the literal
    spelling and of ``assign(T, "=:+", ...)`` after its ``=:``. ``primitive`` computes the new cell from the old cell
    and the value. An ``ordered`` accumulator takes values in row-major order of the domain; the others may take them in
    any order.
    """

    name: str
    symbol: str
    literal: str
    primitive: str
    neutral: float
    ordered: bool = False


_ROWS = (
    Accumulator("assign", "=", "", "snd", 0),
    Accumulator("add", "+=", "+", "add", 0),
    Accumulator("subtract", "-=", "-", "sub", 0),
    Accumulator("multiply", "*=", "*", "mul", 1),
    Accumulator("divide", "/=", "/", "div", 1, ordered=True),
    Accumulator("power", "**=", "**", "pow", 1, ordered=True),
    Accumulator("max", ">>=", "@^", "max", -np.inf),
    Accumulator("min", "<<=", "^^", "min", np.inf),
    Accumulator("or", "|=", "||", "or_", 0),
    Accumulator("and", "&=", "&&", "and_", 1),
    Accumulator("relu_gate", "?/=", "?/", "relu_gate", 1, ordered=True),
    Accumulator("sat01_gate", "?^=", "?^", "sat01_gate", 0.5, ordered=True),
)

ACCUMULATORS: Mapping[str, Accumulator] = MappingProxyType({row.name: row for row in _ROWS})

CHOICES = "`+=` (sum), `*=` (product), `>>=` (max), `<<=` (min), `|=` (any) or `&=` (all)"
"""What to write instead of a plain ``=`` where values meet in one cell."""


def neutral_element(accumulator: str, dtype: str) -> bool | int | float:
    """The value that a cell of ``dtype`` starts from: ``neutral_element("max", "int8")`` is -128.

    -inf and +inf become the ends of an integer type; 0 and 1 become False and True for bool.
    """
    value = ACCUMULATORS[accumulator].neutral
    if is_boolean(dtype):
        return value > 0
    if is_integer(dtype):
        if np.isinf(value):
            ends = np.iinfo(dtype)
            return int(ends.min if value < 0 else ends.max)
        return int(value)
    return float(value)
