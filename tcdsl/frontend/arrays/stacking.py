"""Arrays side by side along a new axis, array literals, and the same array with its axes in other rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DtypeError, ShapeError
from tcdsl.frontend.arrays.arithmetic import broadcast, element_of, record_elementwise, staged_operand
from tcdsl.frontend.arrays.array_literals import (
    NO_NUMBER,
    axes_of_literal,
    leaves_of,
    level_of,
    literal_array,
    parts_of,
)
from tcdsl.frontend.arrays.array_stores import store_elementwise
from tcdsl.frontend.arrays.row_alignment import axis_variable, cell_at, common_rows, rows_of
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, View
from tcdsl.frontend.symbols.values import Value, stored_dtype
from tcdsl.ir.build import apply, constant, integer, size
from tcdsl.ir.expressions import Expr, IndexValue, size_names
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.size_algebra import SizeAlgebra
from tcdsl.rows.ranks import RowRanks

__all__ = ["joined", "layered", "regrouped", "stack", "staged_literal"]

_NUMBERS = bool | int | float | np.generic | np.ndarray


def regrouped(array: SymbolicArray, batch: int, input: int) -> PendingArray:
    """``array`` with ``batch`` leading axes as batch axes and ``input`` trailing ones as input axes."""
    session = session_of("tensor()")
    element, extents = element_of(array, session)
    return PendingArray(session.builder, element, extents, RowRanks(batch, len(extents) - batch - input, input))


def stack(parts: Sequence[Any], row: str) -> PendingArray:
    """``parts``, which broadcast to one shape, along a new axis in front of the axes of ``row``."""
    session = session_of("an array literal")
    aligned, ranks = common_rows(parts, [element_of(part, session) for part in parts])
    values, common = broadcast(session, aligned)
    before = {"batch": 0, "output": ranks.batch, "input": ranks.batch + ranks.output}[row]
    # Axes count from the right: those in front of the new one move by one.
    position = ranks.total - before
    moved = [IndexValue(axis_variable(k + (k >= position))) for k in reversed(range(ranks.total))]
    chosen = IndexValue(axis_variable(position))
    cells = [value.mapped(lambda expr: cell_at(expr, moved)) for value in values]
    stacked = cells[-1]
    for k in range(len(cells) - 2, -1, -1):
        here = Value(apply("eq", chosen, integer(k)), None, "bool")
        stacked = apply_primitive("where", [here, cells[k], stacked], session.location())
    extents = (*common[:before], integer(len(cells)), *common[before:])
    counts = {name: ranks.of(name) + (name == row) for name in ("batch", "output", "input")}
    return PendingArray(session.builder, stacked, extents, RowRanks(**counts))


def joined(parts: Sequence[Any], axis: int = 0) -> SymbolicArray:
    """``np.concatenate``: arrays after each other along an axis, whose other extents are equal."""
    session = session_of("np.concatenate")
    staged = [staged_operand(part, session) for part in parts]
    cells = [element_of(part, session) for part in staged]
    axis = _common_axis(session, [extents for _, extents in cells], axis)
    first, length = list(cells[0][1]), cells[0][1][axis]
    for _, extents in cells[1:]:
        length = apply("add", length, extents[axis])
        for k, (wanted, found) in enumerate(zip(first, extents, strict=True)):
            if k != axis and wanted != found:
                fact = f"arrays along axis {axis} have the extents {valued(wanted)} and {valued(found)} on axis {k}"
                session.builder.require(apply("eq", wanted, found), fact, session.location())
    first[axis] = _known_length(session, normalized(length))
    dtype = str(np.result_type(*(stored_dtype(value) for value, _ in cells)))
    made = record_elementwise(session, Value(constant(0, dtype), None, dtype), tuple(first), "joined")
    rows = rows_of(staged[0], cells[0][1])
    start: Expr = integer(0)
    for part, (_, extents) in zip(staged, cells, strict=True):
        places: list[Expr] = [IndexValue(axis_variable(k)) for k in reversed(range(len(extents)))]
        places[axis] = normalized(apply("add", places[axis], start))
        made = store_elementwise(View(made, places, extents, rows), "assign", part)
        start = normalized(apply("add", start, extents[axis]))
    made.rows = rows
    return made


def _known_length(session: Session, length: Expr) -> Expr:
    # Parts of one array make up all of it, as where they change places; what they are cut at would stand in it twice.
    algebra = SizeAlgebra(session.builder)
    form = algebra.form(length)
    for name in sorted(size_names(length)):
        if algebra.zero(form - algebra.form(size(name))):
            return size(name)
    return algebra.expr(algebra.in_pieces(form))


def _common_axis(session: Session, shapes: Sequence[Sequence[Expr]], axis: int, new: int = 0) -> int:
    # The axis from the left, of arrays of one rank that have ``new`` axes more then.
    if not isinstance(axis, int | np.integer):
        raise session.fault(ShapeError, f"arrays along the axis {axis}", "an axis is one integer")
    axis = int(axis)
    ranks = {len(extents) for extents in shapes}
    if len(ranks) != 1 or not -min(ranks) - new <= axis < min(ranks) + new:
        shown = " and ".join(map(str, sorted(ranks)))
        fact = f"arrays of rank {shown} along {'the new ' if new else ''}axis {axis}"
        raise session.fault(ShapeError, fact, "give arrays of one rank")
    return axis % (min(ranks) + new)


def layered(parts: Sequence[Any], axis: int = 0) -> SymbolicArray:
    """``np.stack``: arrays of one shape after each other along a new axis."""
    session = session_of("np.stack")
    cells = [element_of(staged_operand(part, session), session) for part in parts]
    axis = _common_axis(session, [extents for _, extents in cells], axis, new=1)
    rank = len(cells[0][1]) + 1
    made: list[PendingArray] = []
    for value, extents in cells:
        # Axes count from the right: those in front of the new one move by one.
        places = [IndexValue(axis_variable(rank - 1 - k - (k >= axis))) for k in range(len(extents))]
        moved = value.mapped(lambda expr: cell_at(expr, places))  # noqa: B023
        made.append(PendingArray(session.builder, moved, (*extents[:axis], integer(1), *extents[axis:])))
    return joined(made, axis)


def staged_literal(value: Any) -> SymbolicArray:
    """A literal as part of the program: an input where it holds numbers alone, else its parts side by side."""
    session = session_of("an array literal")
    if all(isinstance(leaf, _NUMBERS) for leaf in leaves_of(value)):
        array, (batch, _, inputs) = literal_array(value, session.location())
        made = session.capture(array)
        return regrouped(made, batch, inputs) if batch or inputs else made
    axes_of_literal(value, session.location())
    return stack([_part(session, part) for part in parts_of(value)], str(level_of(value)))


def _part(session: Session, part: Any) -> Any:
    if level_of(part) is not None:
        return staged_literal(part)
    if isinstance(part, str):
        raise session.fault(DtypeError, *NO_NUMBER)
    return staged_operand(part, session)
