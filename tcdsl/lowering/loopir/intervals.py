"""What integers can be: the smallest and the largest value of an expression, given those of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from tcdsl.ir.dtypes import is_boolean

__all__ = ["Interval", "interval_of", "interval_of_dtype"]


class Interval(NamedTuple):
    """``low <= value <= high``, in integers of any size."""

    low: int
    high: int

    @property
    def bits(self) -> int:
        """The bits of a signed integer that holds every value."""
        low, high = self
        return max(low if low >= 0 else ~low, high if high >= 0 else ~high).bit_length() + 1

    def union(self, other: Interval) -> Interval:
        """The interval around both."""
        return Interval(min(self.low, other.low), max(self.high, other.high))

    def within(self, other: Interval) -> Interval:
        """The values that are in ``other`` too; an end of ``other`` if there are none."""
        low, high = (min(max(end, other.low), other.high) for end in self)
        return Interval(low, high)


@cache
def interval_of_dtype(dtype: str) -> Interval:
    """All values of an integer type; a truth value is 0 or 1."""
    if is_boolean(dtype):
        return Interval(0, 1)
    ends = np.iinfo(dtype)
    return Interval(int(ends.min), int(ends.max))


def interval_of(primitive: str, parts: Sequence[Interval]) -> Interval:
    """What the arithmetic of indices makes of integers in ``parts``; what is divided by 0 is 0."""
    first, last = parts[0], parts[-1]
    match primitive:
        case "add":
            return Interval(first.low + last.low, first.high + last.high)
        case "sub":
            return Interval(first.low - last.high, first.high - last.low)
        case "neg":
            return Interval(-first.high, -first.low)
        case "abs":
            return Interval(0, max(abs(first.low), abs(first.high)))
        case "mul":
            return _around([one * other for one, other in product(first, last)])
        case "square":
            return Interval(0, max(end * end for end in first))
        case "max":
            return Interval(max(first.low, last.low), max(first.high, last.high))
        case "min":
            return Interval(min(first.low, last.low), min(first.high, last.high))
        case "floor_div":
            if last.low > 0:
                return _around([one // other for one, other in product(first, last)])
            largest = max(abs(first.low), abs(first.high))
            return Interval(-largest, largest)
        case "mod":
            return Interval(min(last.low + 1, 0), max(last.high - 1, 0))
        case "bit_and" | "bit_or" | "bit_xor" | "shift_left" | "shift_right":
            return _of_bits(primitive, first, last)
        case "where":
            return parts[1].union(last)
    return first  # id


def _of_bits(primitive: str, first: Interval, last: Interval) -> Interval:
    match primitive:
        case "shift_left":
            scale = 2 ** max(last.high, 0)
            return Interval(min(first.low * scale, 0), max(first.high * scale, 0))
        case "shift_right":
            return Interval(min(first.low, 0), max(first.high, 0))
        case "bit_and" if first.low >= 0 or last.low >= 0:
            return Interval(0, min(part.high for part in (first, last) if part.low >= 0))
    most = 2 ** (max(first.bits, last.bits) - 1) - 1
    return Interval(0 if min(first.low, last.low) >= 0 else -most - 1, most)


def _around(values: Sequence[int]) -> Interval:
    return Interval(min(values), max(values))
