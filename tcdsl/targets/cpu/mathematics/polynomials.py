"""Polynomials, and products with a sum, which processors round once if they can."""

from __future__ import annotations

from collections.abc import Sequence

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar

__all__ = ["multiply_add", "polynomial"]


def multiply_add(a: Scalar, b: Scalar | float, c: Scalar | float) -> Scalar:
    """``a * b + c``, rounded once where that is no slower, twice elsewhere."""
    return a.intrinsic("fmuladd", a.lift(b), a.lift(c))


def polynomial(x: Scalar, coefficients: Sequence[float]) -> Scalar:
    """``polynomial(x, (1, 2, 3))`` is ``1 + 2 * x + 3 * x**2``, by Horner's scheme."""
    result = x.constant(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = multiply_add(result, x, coefficient)
    return result
