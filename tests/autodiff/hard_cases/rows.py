"""All tables of hard cases."""

from __future__ import annotations

from tests.autodiff.hard_cases import accesses, boundaries, data, extrema, poles, products, statements

__all__ = ["ROWS"]

ROWS = [
    row for module in (products, extrema, poles, accesses, boundaries, data, statements) for row in module.TABLE.rows
]
