"""All tables of hard cases."""

from __future__ import annotations

import pytest

from tests.autodiff.hard_cases import accesses, boundaries, data, extrema, poles, products, statements

__all__ = ["ONE_OF_EACH", "ROWS"]

ROWS = [
    row for module in (products, extrema, poles, accesses, boundaries, data, statements) for row in module.TABLE.rows
]

# For what depends on programs more than on values: each function at its first row, and at the others by hand.
FIRST = {id(row): row for row in {row.function: row for row in reversed(ROWS) if not row.broadcast}.values()}
ONE_OF_EACH = [
    pytest.param(row, marks=() if id(row) in FIRST else pytest.mark.long) for row in ROWS if not row.broadcast
]
