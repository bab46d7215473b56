"""Where reads out of range go: one rule for each boundary of the language, in any arithmetic of integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tcdsl.ir.build import apply, cast, constant
from tcdsl.ir.expressions import Boundary, Expr

__all__ = ["moved", "moved_index"]

Integer = TypeVar("Integer")


def moved(
    index: Integer,
    extent: Integer,
    boundary: Boundary,
    compute: Callable[..., Integer],
    number: Callable[[int], Integer],
) -> Integer:
    """The cell that ``index`` finds on an axis of ``extent`` > 0 cells: ``index`` itself if it is in range.

    ``compute("sub", a, b)`` is the arithmetic, by the names of primitives, ``number(1)`` its numbers.
    """
    match boundary:
        case Boundary.CLAMP:
            last = compute("sub", extent, number(1))
            return compute("min", compute("max", index, number(0)), last)
        case Boundary.WRAP:
            return compute("mod", index, extent)
        case Boundary.REFLECT:
            # For one cell the period would be 0; with period 1 the result is 0.
            last = compute("sub", extent, number(1))
            period = compute("max", compute("mul", number(2), last), number(1))
            phase = compute("mod", index, period)
            return compute("min", phase, compute("sub", period, phase))
        case Boundary.SYMMETRIC:
            period = compute("mul", number(2), extent)
            phase = compute("mod", index, period)
            return compute("min", phase, compute("sub", compute("sub", period, number(1)), phase))
        case _:
            return index


def moved_index(index: Expr, extent: Expr, boundary: Boundary) -> Expr:
    """``moved_index(i - 1, N, Boundary.CLAMP)`` is ``min(max(i - 1, 0), N - 1)``, in the type of the index."""
    dtype = index.dtype
    return moved(index, cast(extent, dtype), boundary, apply, lambda number: constant(number, dtype))
