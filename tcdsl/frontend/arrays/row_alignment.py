"""Rows in whole-array arithmetic: each of batch, output and input axes is aligned at the right for itself.

An array with batch or input axes is given axes of extent 1, so that the flat broadcasting of
`tcdsl.frontend.arrays.arithmetic` does the rest::

    1 batch, 1 output axis      x[n, d]      x[n, d, 0]
    1 output, 1 input axis      w[o, i]      w[0, o, i]
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tcdsl.frontend.symbols.symbols import SymbolicArray
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import integer
from tcdsl.ir.expressions import Expr, IndexValue, substitute
from tcdsl.rows.ranks import RowRanks

__all__ = ["axis_variable", "cell_at", "common_rows", "rows_of", "with_rows"]

AlignedOperand = tuple[Value, tuple[Expr, ...]]
"""The value of a cell, in terms of `axis_variable`s, and the extents of an array."""


def axis_variable(k: int) -> str:
    """The index variable of the axis that is k-th from the right in whole-array arithmetic."""
    return f"axis_{k}"


def cell_at(expr: Expr, indices: Sequence[Expr]) -> Expr:
    """The cell of a whole array at one index for each axis."""
    return substitute(expr, {IndexValue(axis_variable(k)): index for k, index in enumerate(reversed(indices))})


def rows_of(operand: object, extents: Sequence[Expr]) -> RowRanks:
    """The rows of an operand of arithmetic; those of NumPy are plain."""
    return operand.rows if isinstance(operand, SymbolicArray) else RowRanks(output=len(extents))


def common_rows(operands: Sequence[object], parts: Sequence[AlignedOperand]) -> tuple[list[AlignedOperand], RowRanks]:
    """The operands' cells on the axes of their common rows, and these rows."""
    rows = [rows_of(operand, extents) for operand, (_, extents) in zip(operands, parts, strict=True)]
    common = reduce(RowRanks.joined, rows)
    return [with_rows(part, own, common) for part, own in zip(parts, rows, strict=True)], common


def with_rows(part: AlignedOperand, own: RowRanks, common: RowRanks) -> AlignedOperand:
    """A part with axes of extent 1 on the left of each of its rows, up to ``common``."""
    if own.plain and common.plain:
        return part
    value, extents = part
    if not extents:
        return part
    cells: dict[Expr, Expr] = {}
    result: list[Expr] = []
    place = len(extents)
    for row in ("input", "output", "batch"):
        count = own.of(row)
        for k in range(count):
            old = len(extents) - place + k
            cells[IndexValue(axis_variable(old))] = IndexValue(axis_variable(len(result) + k))
        missing = [integer(1)] * (common.of(row) - count)
        result[:0] = [*missing, *extents[place - count : place]]
        place -= count
    return value.mapped(lambda expr: substitute(expr, cells)), tuple(result)
