"""`reshape`, `scatter` and `argsort`: functions of whole tensors that are statements of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from tcdsl.polyhedra.size_algebra import SizeAlgebra
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.tracebacks import user_facing

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
    tensor = _tensor(session, given[0], "x")
    extents = tuple(map(extent_expression, sizes))
    groups = _groups(session, tensor.extents, extents)
    if groups is None:
        before, after = _product(session, tensor.extents), _product(session, extents)
        fact = f"reshape of {valued(before)} cells to {valued(after)} cells"
        session.builder.require_equal(before, after, fact, location())
        groups = [(range(tensor.rank), range(len(extents)))]
    if any(len(before) != 1 for before, _ in groups):
        tensor = _merged(session, tensor, groups)
        groups = [(range(k, k + 1), after) for k, (_, after) in enumerate(groups)]
    return _split(session, tensor, extents, groups)


_Groups = Sequence[tuple[range, range]]


def _groups(session: Session, before: Sequence[Expr], after: Sequence[Expr]) -> _Groups | None:
    """Consecutive axes of the one shape that have as many cells as such axes of the other, as finely as can be."""
    algebra = SizeAlgebra(session.builder)
    groups: list[tuple[range, range]] = []
    left = right = 0
    while left < len(before) or right < len(after):
        ends = next(
            (
                (left_end, right_end)
                for left_end, right_end in _cuts(left, right, len(before), len(after))
                if algebra.zero(_form(algebra, before[left:left_end]) - _form(algebra, after[right:right_end]))
            ),
            None,
        )
        if ends is None:
            return None
        if groups and left == ends[0]:
            # An axis of one cell more is one of the last group.
            groups[-1] = (groups[-1][0], range(groups[-1][1].start, ends[1]))
        else:
            groups.append((range(left, ends[0]), range(right, ends[1])))
        left, right = ends
    return groups


def _cuts(left: int, right: int, left_end: int, right_end: int) -> Iterator[tuple[int, int]]:
    # Where the next group may end, the smallest first; the last group takes all that is left.
    pairs = [(a, b) for a in range(left, left_end + 1) for b in range(right, right_end + 1) if a > left or b > right]
    yield from sorted(pairs, key=sum)


def _form(algebra: SizeAlgebra, extents: Sequence[Expr]) -> Polynomial:
    form = Polynomial.number(1)
    for extent in extents:
        form = form * algebra.form(extent)
    return form


def _merged(session: Session, tensor: SymbolicTensor, groups: _Groups) -> SymbolicTensor:
    """The tensor with the axes of each group as one."""
    variables = axes(session, tensor.rank)
    places = [_place([variables[k] for k in before], [tensor.extents[k] for k in before]) for before, _ in groups]
    extents = [_product(session, [tensor.extents[k] for k in before]) for before, _ in groups]
    return _stored(session, "flat", extents, places, tensor.cell(list(map(index, variables))), variables)


def _split(session: Session, tensor: SymbolicTensor, extents: Sequence[Expr], groups: _Groups) -> Any:
    """Each axis of the tensor as several."""
    if all(len(after) == 1 for _, after in groups):
        return tensor
    variables = axes(session, len(extents))
    places = [_place([variables[k] for k in after], [extents[k] for k in after]) for _, after in groups]
    value = tensor.cell(places, session.location())
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
