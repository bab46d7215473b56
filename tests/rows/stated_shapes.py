"""Shapes that are open, and equations between shapes: what tests state of them besides operations."""

from __future__ import annotations

from tcdsl.rows.inference import Origin, Shape
from tcdsl.rows.inference.equations.row_equations import Meeting, equate_rows
from tcdsl.rows.inference.result_shapes import describe, names_of
from tcdsl.rows.inference.variables.row import Row, RowVariable
from tcdsl.rows.inference.variables.transaction import Transaction
from tcdsl.rows.spec import ROWS


def unknown(name: str = "") -> Shape:
    """The shape of something of which nothing is known."""
    return Shape(Row((), RowVariable()), Row((), RowVariable()), Row((), RowVariable()), name)


def equal(left: Shape, right: Shape, origin: Origin) -> None:
    """State that both shapes are the same, axis by axis."""
    names = names_of((left, right), origin)
    with Transaction(origin, describe((left, right), origin)) as transaction:
        for row, here, there in zip(ROWS, left.rows, right.rows, strict=True):
            equate_rows(transaction, here, there, Meeting(names[0], names[1], row, row))
