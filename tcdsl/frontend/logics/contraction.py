"""``A @ B`` and ``x.sum(axis=0)`` on plain arrays: NumPy's matmul and reductions, each as one statement."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

from tcdsl.errors import ShapeError
from tcdsl.frontend.arrays.arithmetic import axes, combine, element_of, record_cells, staged_operand
from tcdsl.frontend.arrays.arithmetic import broadcast as broadcast_parts
from tcdsl.frontend.arrays.chosen_cells import ChosenCells
from tcdsl.frontend.arrays.row_alignment import axis_variable, cell_at, rows_of
from tcdsl.frontend.logics.logic_staging import PRODUCT, stage_logic
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, View
from tcdsl.frontend.symbols.values import Value, as_truth, store_value, sum_dtype
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Expr, IndexValue
from tcdsl.rows.logic import COMPOSE, aligned
from tcdsl.rows.ranks import RowRanks

__all__ = ["matrix_product", "reduce_array"]


def matrix_product(left: object, right: object) -> Any:
    """``left @ right``: the last axis of ``left`` meets the last but one of ``right``; axes before them broadcast.

    A rank-1 operand is a row on the left and a column on the right, and its axis disappears. `ShapeError` for rank 0.
    Where ``left`` has input axes, they meet the output axes of ``right`` instead.
    """
    session = session_of("a matrix product")
    left, right = (staged_operand(operand, session) for operand in (left, right))
    if isinstance(left, SymbolicArray) and left.rows.input:
        return stage_logic(session, COMPOSE, PRODUCT, (left, right), "add")
    parts = [element_of(operand, session) for operand in (left, right)]
    if any(not extents for _, extents in parts):
        raise session.fault(ShapeError, "`@` takes arrays of rank 1 or more", "use `*` to scale by a number")
    given = [extents for _, extents in parts]
    row, column = (len(extents) == 1 for extents in given)
    (a, a_extents), (b, b_extents) = parts
    # The axis that is summed comes last: `a[..., i, 1, k]` meets `b[..., 1, j, k]`.
    inner, met = a_extents[-1], b_extents[-1 if column else -2]
    session.builder.require_equal(
        inner,
        met,
        f"`@` sums over the last axis of the left and the last but one of the right, whose extents are {valued(inner)} "
        f"and {valued(met)}",
        session.location(),
    )
    outer = () if column else b_extents[-1:]
    left_axes = [*range(len(a_extents) - 1), *([None] if outer else []), len(a_extents) - 1]
    right_axes = [*range(len(b_extents) - 2), *([None] if not row else []), len(b_extents) - 1, len(b_extents) - 2]
    a_part = _arranged(a, a_extents, left_axes)
    b_part = _arranged(b, b_extents, [0] if column else right_axes)
    b_part = b_part[0], (*b_part[1][:-1], inner)
    values, extents = broadcast_parts(session, [a_part, b_part])
    product = PendingArray(session.builder, apply_primitive("mul", values, session.location()), extents)
    made = reduce_array("add", product, -1)
    made.rows = aligned(COMPOSE, tuple(map(rows_of, (left, right), given))).rows
    return made


def _arranged(value: Value, extents: tuple[Expr, ...], order: Sequence[int | None]) -> tuple[Value, tuple[Expr, ...]]:
    # An array with its axes in another order, `None` for one of extent 1 more.
    places = {axis: IndexValue(axis_variable(len(order) - 1 - k)) for k, axis in enumerate(order) if axis is not None}
    indices = [places[axis] for axis in range(len(extents))]
    shape = tuple(integer(1) if axis is None else extents[axis] for axis in order)
    return value.mapped(lambda expr: cell_at(expr, indices)), shape


def _reduced_axes(session: Session, axis: Any, rank: int) -> set[int]:
    # As in NumPy: an integer or a tuple of them, each axis once.
    found: set[int] = set()
    for each in axis if isinstance(axis, tuple) else (axis,):
        try:
            position = None if isinstance(each, bool) else operator.index(each)
        except TypeError:
            position = None
        if position is None:
            hint = "an axis is an integer; several are a tuple: `axis=(0, 1)`"
            raise session.fault(ShapeError, f"axis {each!r} of an array of rank {rank}", hint)
        if not -rank <= position < rank:
            hint = f"axes are -{rank} to {rank - 1}" if rank else "it has no axes: leave the argument out"
            raise session.fault(ShapeError, f"axis {axis} of an array of rank {rank}", hint)
        if position % rank in found:
            raise session.fault(ShapeError, f"axis {position % rank} is given twice", "name each axis once")
        found.add(position % rank)
    return found


def _position(session: Session, kind: str, array: SymbolicArray, axis: Any, keepdims: bool) -> Any:
    # The first of the largest cells, or of those that are NaN; over all axes its place in the flattened array.
    if isinstance(axis, tuple):
        fact, hint = f"`{kind}` over the axes {axis}", "give one axis, or none for the place in the flattened array"
        raise session.fault(ShapeError, fact, hint)
    held = array.materialize() if isinstance(array, PendingArray) and not isinstance(array, View) else array
    reduced = range(array.rank) if axis is None else sorted(_reduced_axes(session, axis, array.rank))
    place: Expr = integer(0)
    for k in reduced:
        extent = held.extents[k]
        fact = f"`{kind}` over axis {k}, whose extent is {valued(extent)}: there is no cell"
        session.builder.require(apply("ge", extent, integer(1)), fact, session.location())
        place = apply("add", apply("mul", place, extent), IndexValue(axis_variable(array.rank - 1 - k)))
    best = reduce_array(kind.removeprefix("arg"), held, axis, True)
    is_best = combine("or_", combine("eq", held, best), combine("ne", held, held))
    places = PendingArray(session.builder, Value(place, None, "int64"), held.extents, held.rows)
    return reduce_array("min", combine("where", is_best, places, 2**63 - 1), axis, keepdims)


_NEUTRAL: Mapping[str, bool | int] = {"add": 0, "multiply": 1, "or": False, "and": True, "mean": 0}


def _of_chosen(accumulate: str, cells: ChosenCells, axis: Any, keepdims: bool) -> Any:
    # What the mask leaves out counts for nothing; the largest of no cells is none.
    if accumulate not in _NEUTRAL or axis not in (None, 0) or keepdims:
        _ = cells.extents  # the error
    kind = "add" if accumulate == "mean" else accumulate
    total = reduce_array(kind, combine("where", cells.mask, cells.array, _NEUTRAL[accumulate]))
    return total if kind == accumulate else combine("div", total, reduce_array("add", cells.mask))


def reduce_array(accumulate: str, array: SymbolicArray, axis: Any = None, keepdims: bool = False) -> Any:
    """``sum(x)``, ``np.max(x, axis=0)``: a reduction over all axes or the given ones, as NumPy's functions of the name.

    ``mean`` divides by the number of cells. `ShapeError` for an axis that the array lacks.
    """
    session = session_of("a reduction")
    if accumulate in ("argmax", "argmin"):
        return _position(session, accumulate, array, axis, keepdims)
    if isinstance(array, ChosenCells):
        return _of_chosen(accumulate, array, axis, keepdims)
    element, extents = element_of(array, session)
    rank = len(extents)
    reduced = set(range(rank)) if axis is None else _reduced_axes(session, axis, rank)
    kept = [k for k in range(rank) if k not in reduced]
    letters = axes(session, rank)
    kind = "add" if accumulate == "mean" else accumulate
    if element.logical == "bool":
        # The largest of truth values is whether any is true.
        kind = {"max": "or", "min": "and"}.get(kind, kind)
    if kind in ("or", "and"):
        element = as_truth(element, session.location())
    if accumulate == "mean":
        dtype = element.logical if element.logical.startswith("float") else "float64"
    else:
        dtype = (
            sum_dtype(element) if kind in ("add", "multiply") else "bool" if kind in ("or", "and") else element.logical
        )
    result: Any = record_cells(
        session,
        "t",
        dtype,
        cell_at(store_value(element, dtype, session.location()), list(map(IndexValue, letters))),
        {letters[k]: extents[k] for k in kept},
        kind,
        {letters[k]: extents[k] for k in sorted(reduced)},
    )
    tags = array.rows.tags
    result.rows = RowRanks.of_tags([tags[k] for k in kept])
    if accumulate == "mean":
        count: Any = 1
        for k in sorted(reduced):
            count = combine("mul", count, array.shape[k])
        result = combine("div", result, count)
    if keepdims:
        result = result[tuple(None if k in reduced else slice(None) for k in range(rank))]
        result.rows = array.rows
    return result
