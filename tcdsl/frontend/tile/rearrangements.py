"""`reshape`, `scatter` and `argsort`: functions of whole tensors that are statements of their own."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.numpy_functions.recording import Cell, computed, replaced, tensor_of
from tcdsl.frontend.numpy_functions.shapes import reshaped
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.graph_tensors import algebra_of
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.values import Value, cast_value
from tcdsl.frontend.tile.functions import axis_of, checked_dims
from tcdsl.frontend.tile.sizes import extent_expression
from tcdsl.frontend.tile.user_lines import fault, location
from tcdsl.ir.build import apply, cast
from tcdsl.ir.dtypes import is_floating, is_integer
from tcdsl.ir.expressions import Expr
from tcdsl.tracebacks import user_facing

__all__ = ["SortDirection", "argsort", "reshape", "scatter"]


class SortDirection(Enum):
    """The order of `argsort`."""

    ASC = "ascending"
    DESC = "descending"


# -- reshape -------------------------------------------------------------------------------------------------


@user_facing
def reshape(tensor: Any, dims: Any) -> Any:
    """``reshape(X, (N * M, K))``: the same cells in the same order, in another shape; ``()`` for rank 0.

    `ShapeError` for another number of cells.
    """
    algebra = algebra_of((tensor,))
    sizes = checked_dims(dims)
    if algebra is None:
        return np.reshape(tensor, sizes)
    return algebra.operation("reshape", (tensor,), partial(_record_reshape, sizes))


def _record_reshape(sizes: Sequence[Any], session: Session, given: Sequence[Any]) -> Any:
    return reshaped(session, given[0], tuple(map(extent_expression, sizes)))


# -- scatter -------------------------------------------------------------------------------------------------


@user_facing
def scatter(tensor: Any, indices: Any, updates: Any) -> Any:
    """``scatter(X, Y, Z)``: ``X`` with the parts of ``Z`` added to its rows at the positions that ``Y`` holds.

    ``Z`` has the axes of ``Y``, then those of ``X`` but for the first. Positions that occur more than once add up; one
    out of range is an error when it is computed.
    """
    algebra = algebra_of((tensor, indices, updates))
    if algebra is None:
        made = np.array(tensor)
        np.add.at(made, indices, updates)
        return made
    return algebra.operation("scatter", (tensor, indices, updates), _record_scatter)


def _record_scatter(session: Session, given: Sequence[Any]) -> Any:
    tensor, places, updates = (
        tensor_of(session, each, label) for each, label in zip(given, ("x", "places", "updates"), strict=True)
    )
    if not tensor.rank:
        raise fault(ShapeError, "scatter onto a tensor of rank 0", "it has no positions")
    if not is_integer(places.element_type):
        raise fault(DtypeError, f"positions of type {places.element_type}", "positions are integers")
    wanted = (*places.extents, *tensor.extents[1:])
    if updates.rank != len(wanted):
        raise fault(
            ShapeError,
            f"scatter of a tensor of rank {updates.rank}, where rank {len(wanted)} is wanted",
            "it has the axes of the positions, then those of the tensor but for the first",
        )
    for axis, (extent, each) in enumerate(zip(updates.extents, wanted, strict=True)):
        session.builder.require_equal(
            extent,
            each,
            f"axis {axis} of what is scattered has the extent {valued(extent)}, not {valued(each)}",
            location(),
        )

    def cell(*cells: Expr) -> Cell:
        place = cast(places.cell(cells[: places.rank], session.location()).expr, "int64")
        return Cell(updates.cell(cells, session.location()), (place, *cells[places.rank :]))

    return computed("scattered", tensor.extents, len(wanted), cell, accumulate="add", onto=tensor)


# -- argsort -------------------------------------------------------------------------------------------------


@user_facing
def argsort(tensor: Any, axis: Any = -1, direction: SortDirection = SortDirection.ASC) -> Any:
    """``argsort(X, axis=0)``: the positions that sort ``X`` along an axis, equal cells in the order in which they are.

    NaN goes last. Each cell is compared with all others along the axis.
    """
    if not isinstance(direction, SortDirection):
        raise fault(DslSyntaxError, f"{direction!r} as a direction", "write SortDirection.ASC or SortDirection.DESC")
    algebra = algebra_of((tensor,))
    if algebra is None:
        tensor = np.asarray(tensor)
        chosen = axis_of(axis, tensor.ndim, "argsort")
        return np.argsort(tensor if direction is SortDirection.ASC else -tensor, chosen, kind="stable")
    chosen = axis_of(axis, tensor.ndim, "argsort")
    return algebra.operation("argsort", (tensor,), partial(_record_argsort, chosen, direction))


def _record_argsort(axis: int, direction: SortDirection, session: Session, given: Sequence[Any]) -> Any:
    tensor = tensor_of(session, given[0], "x")

    def goes_first(*variables: Expr) -> Cell:
        *cells, other = variables
        left, right = tensor.cell(replaced(cells, axis, other)), tensor.cell(cells)
        first = _goes_first(left, right, direction, apply("lt", other, cells[axis]))
        return Cell(cast_value(first, "int64"))

    rank = computed("rank", tensor.extents, tensor.rank + 1, goes_first, accumulate="add")

    def positions(*cells: Expr) -> Cell:
        return Cell(Value(cells[axis], None, "int64"), replaced(cells, axis, rank.cell(cells).expr))

    # Each position once; a sum says so without a check of the data.
    return computed("order", tensor.extents, tensor.rank, positions, accumulate="add")


def _goes_first(left: Value, right: Value, direction: SortDirection, earlier: Expr) -> Value:
    def primitive(name: str, *values: Value) -> Value:
        return apply_primitive(name, values)

    before = primitive("lt" if direction is SortDirection.ASC else "gt", left, right)
    same = primitive("eq", left, right)
    if is_floating(left.logical):
        nan_left, nan_right = primitive("ne", left, left), primitive("ne", right, right)
        before = primitive("or_", before, primitive("and_", primitive("not_", nan_left), nan_right))
        same = primitive("or_", same, primitive("and_", nan_left, nan_right))
    return primitive("or_", before, primitive("and_", same, Value(earlier, None, "bool")))
