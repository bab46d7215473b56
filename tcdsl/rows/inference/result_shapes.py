"""The shapes of results: pointwise operations, composition, transposition."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcdsl.rows.inference.equations.row_equations import Meeting, equate_rows
from tcdsl.rows.inference.equations.row_joins import join_rows
from tcdsl.rows.inference.variables.origin import Origin
from tcdsl.rows.inference.variables.row import EMPTY
from tcdsl.rows.inference.variables.shape import Shape
from tcdsl.rows.inference.variables.transaction import Transaction
from tcdsl.rows.spec import ROWS

__all__ = ["compose", "describe", "names_of", "pointwise", "transpose"]


def pointwise(operands: Sequence[Shape], origin: Origin) -> Shape:
    """``100 | 2`` and ``2`` give ``100 | 2``: the least shape that all operands broadcast to, each row by itself.

    Rows are aligned at the right. An axis of size 1 stretches. `ShapeError` where two other sizes, or two labels, meet.
    """
    if not operands:
        raise ValueError("a pointwise operation has operands")
    with Transaction(origin, describe(operands, origin)) as transaction:
        rows = [
            join_rows(transaction, [shape.rows[place] for shape in operands], row) for place, row in enumerate(ROWS)
        ]
    return Shape(rows[0].resolved, rows[1].resolved, rows[2].resolved)


def compose(left: Shape, right: Shape, origin: Origin) -> Shape:
    """``3 -> 5`` after ``100 | 2 -> 3`` is ``100 | 2 -> 5``: the logic ``"@"``.

    The output axes of ``right`` are the input axes of ``left``, one by one. They do not stretch: what is summed over is
    said by both operands, since a sum of copies is hardly ever meant. Batch rows broadcast.
    """
    names = names_of((left, right), origin)
    with Transaction(origin, describe((left, right), origin)) as transaction:
        hint = _NO_INPUT if left.input == EMPTY else _NO_BATCH if right.batch == EMPTY else ""
        meeting = Meeting(names[0], names[1], "input", "output", hint=hint)
        equate_rows(transaction, left.input, right.output, meeting)
        batch = join_rows(transaction, [left.batch, right.batch], "batch")
    return Shape(batch.resolved, right.input.resolved, left.output.resolved)


def transpose(operand: Shape, origin: Origin) -> Shape:
    """``100 | 2 -> 3`` becomes ``100 | 3 -> 2``: the logic ``"T"``. Nothing can go wrong, whatever ``origin`` is."""
    del origin
    return Shape(operand.batch, operand.output, operand.input)


_NO_INPUT = (
    "`@` sums over the input axes of what is on its left; `tensor(x, input=1)` says how many trailing axes of an array "
    "are input axes"
)
_NO_BATCH = (
    "all axes of a plain array are output axes; `tensor(x, batch=1)` says how many leading ones count the samples of a "
    "batch"
)


def names_of(shapes: Sequence[Shape], origin: Origin) -> list[str]:
    """How messages call the operands."""
    given = [*origin.operands, *([""] * len(shapes))]
    found = []
    for place, shape in enumerate(shapes):
        name = given[place] or shape.name
        found.append(f"`{name}`" if name else f"operand {place + 1}")
    return found


def describe(shapes: Sequence[Shape], origin: Origin) -> Callable[[], list[str]]:
    """The lines that show the operands' shapes in a message: ``x: 100 | 2``."""

    def lines() -> list[str]:
        names = [name.strip("`") for name in names_of(shapes, origin)]
        return [f"{name}: {shape}" for name, shape in zip(names, shapes, strict=True)]

    return lines
