"""`reshape`, `scatter` and `argsort`: functions of whole tensors that are statements of their own."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from functools import partial
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.arrays.arithmetic import axes, staged_operand
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session, materialized
from tcdsl.frontend.staging.target_states import Declared, Existing
from tcdsl.frontend.stores.stores import record_sketch, sketch_of, store
from tcdsl.frontend.symbols.graph_tensors import algebra_of
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value, cast_value
from tcdsl.frontend.tile.functions import axis_of, checked_dims
from tcdsl.frontend.tile.sizes import extent_expression
from tcdsl.frontend.tile.user_lines import fault, location
from tcdsl.ir.build import apply, cast, index, integer
from tcdsl.ir.dtypes import is_floating, is_integer
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Access

__all__ = ["SortDirection", "argsort", "reshape", "scatter"]


class SortDirection(Enum):
    """The order of `argsort`."""

    ASC = "ascending"
    DESC = "descending"


def _tensor(session: Session, given: Any, label: str) -> SymbolicTensor:
    operand = staged_operand(given, session)
    if isinstance(operand, np.ndarray):
        operand = session.capture(operand, label)
    made: SymbolicTensor = materialized(operand, label)
    return made


def _stored(
    session: Session,
    label: str,
    extents: Sequence[Expr],
    indices: Sequence[Expr],
    value: Value,
    variables: Sequence[str],
    accumulate: str = "assign",
    target: SymbolicTensor | None = None,
    dtype: str | None = None,
) -> SymbolicTensor:
    # label[indices] <accumulate>= value, in a new tensor of these extents or onto the cells of `target`.
    span = session.location()
    state = Declared(tuple(extents), dtype, label) if target is None else Existing(target, declared=True)
    stored = store(state, accumulate, False, value, span)
    access = Access(session.builder.fresh_name(label), tuple(indices), span)
    sketch = sketch_of(state, stored, access, stored.value, variables, span=span)
    return record_sketch(sketch, state, session.builder)


# -- reshape -------------------------------------------------------------------------------------------------


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
    tensor = _tensor(session, given[0], "x")
    extents = tuple(map(extent_expression, sizes))
    before, after = _product(session, tensor.extents), _product(session, extents)
    session.builder.require_equal(
        before, after, f"reshape of {valued(before)} cells to {valued(after)} cells", location()
    )
    flat = tensor
    if tensor.rank != 1:
        variables = axes(session, tensor.rank)
        place = _place(variables, tensor.extents)
        flat = _stored(session, "flat", (before,), (place,), tensor.cell(list(map(index, variables))), variables)
    if len(extents) == 1:
        return flat
    variables = axes(session, len(extents))
    value = flat.cell((_place(variables, extents),), session.location())
    return _stored(session, "reshaped", extents, list(map(index, variables)), value, variables)


def _product(session: Session, extents: Sequence[Expr]) -> Expr:
    product: Expr = integer(1)
    for extent in extents:
        product = apply("mul", product, extent)
    return session.builder.opaque_size(product)


def _place(variables: Sequence[str], extents: Sequence[Expr]) -> Expr:
    # The place of a cell in the order of storage.
    place: Expr = integer(0)
    for variable, extent in zip(variables, extents, strict=True):
        place = apply("add", apply("mul", place, extent), index(variable))
    return place


# -- scatter -------------------------------------------------------------------------------------------------


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
        _tensor(session, each, label) for each, label in zip(given, ("x", "places", "updates"), strict=True)
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
    variables = axes(session, len(wanted))
    cells = list(map(index, variables))
    place = cast(places.cell(cells[: places.rank], session.location()).expr, "int64")
    value = updates.cell(cells, session.location())
    return _stored(
        session, "scattered", tensor.extents, (place, *cells[places.rank :]), value, variables, "add", tensor
    )


# -- argsort -------------------------------------------------------------------------------------------------


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
    tensor = _tensor(session, given[0], "x")
    *variables, other = axes(session, tensor.rank + 1)
    cells = list(map(index, variables))
    beside = [index(other) if k == axis else cell for k, cell in enumerate(cells)]
    left, right = tensor.cell(beside), tensor.cell(cells)
    first = _goes_first(left, right, direction, apply("lt", index(other), cells[axis]))
    rank = _stored(session, "rank", tensor.extents, cells, cast_value(first, "int64"), (*variables, other), "add")
    place = rank.cell(cells).expr
    target = [place if k == axis else cell for k, cell in enumerate(cells)]
    # Each position once; a sum says so without a check of the data.
    position = Value(cells[axis], None, "int64")
    return _stored(session, "order", tensor.extents, target, position, variables, "add")


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
