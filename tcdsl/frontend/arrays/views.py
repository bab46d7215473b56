"""Basic indexing of whole arrays outside statements: ``x[0]``, ``x[1:-1]``, ``x[:, None]``, ``x[..., ::-1]``, ``x.T``.

As in NumPy, with symbolic extents. The cells of a `View` are those of the original, so nothing is copied.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from types import EllipsisType
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.arrays.arithmetic import element_of
from tcdsl.frontend.arrays.array_literals import leaves_of, literal_of
from tcdsl.frontend.arrays.chosen_cells import MASK_AS_INDEX, ChosenCells, held_now
from tcdsl.frontend.arrays.row_alignment import axis_variable, cell_at
from tcdsl.frontend.points.exact_indices import exact_index
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.run_time_integers import Specialize
from tcdsl.frontend.staging.session import Session, materialized, session_of
from tcdsl.frontend.symbols.symbols import (
    PendingArray,
    SymbolicArray,
    SymbolicNumber,
    SymbolicSize,
    SymbolicTensor,
    View,
)
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import apply, cast, in_range, integer, range_tests
from tcdsl.ir.dtypes import is_integer
from tcdsl.ir.expressions import (
    Boundary,
    Constant,
    Expr,
    IndexValue,
    Read,
    SizeValue,
    index_variables,
    is_affine_index,
    reads,
    transform,
)
from tcdsl.ir.text.printer import format_expr
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.size_algebra import SizeAlgebra
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.rows.ranks import RowRanks

__all__ = ["mask_of", "part_of", "permuted", "require_in_range", "rolled", "transposed", "view", "whole"]

_BEYOND = 2**62  # more than any extent


def view(array: object, key: object) -> Any:
    """``array[key]`` for integers, sizes, slices, ``None``, ``...`` and at most one integer array, which gathers.

    A `View` where the array is a tensor or a view, unless integers alone choose one cell, whose value it is then.
    Raises `ShapeError` for too many indices; a position out of range is a `ShapeError` at the call.
    """
    session = session_of("indexing")
    if not isinstance(array, SymbolicArray):
        raise session.fault(DtypeError, f"{array!r} is a number, and has no cells", "index an array")
    given = key if isinstance(key, tuple) else (key,)
    # Arrays of the surroundings are read at every call, like those in arithmetic.
    key = tuple(session.capture(entry) if isinstance(entry, np.ndarray) and entry.ndim else entry for entry in given)
    if len(key) == 1 and isinstance(key[0], SymbolicArray) and _is_mask_of(array, key[0]):
        return _chosen(session, array, key[0])
    key = tuple(_number_as_data(session, entry) for entry in key)
    entries = _with_lists(session, array, _expanded(session, array, key))
    extents = array.extents
    gathered = [entry for entry in entries if isinstance(entry, SymbolicArray)]
    # As in NumPy, arrays of rank 0 choose as integers do.
    single = all(entry.rank == 0 for entry in gathered)
    if len(gathered) > 1 and not single:
        raise session.fault(
            DslSyntaxError, "more than one index array", "write a statement: `O[n] = x[rows[n], columns[n]]`"
        )
    # NumPy's rule: where a slice stands between a number and the index array, the gathered axes come first.
    first = bool(gathered) and _separated(key)
    result: list[Expr] = list(gathered[0].extents) if first else []
    tags: list[str | None] = _gathered_tags(gathered[0], None) if first else []
    given_tags = array.rows.tags
    rank = sum(entry is None or isinstance(entry, slice) for entry in entries) + sum(each.rank for each in gathered)
    # The positions along the axes of the array, in terms of those of the result.
    indices: list[Expr] = []
    data: set[Expr] = set()
    for entry in entries:
        axis = len(indices)
        if entry is None:
            result.append(integer(1))
            tags.append(None)
        elif isinstance(entry, slice):
            start, extent, step = _slice(session, entry, extents[axis])
            along = IndexValue(axis_variable(rank - 1 - len(result)))
            indices.append(apply("add", start, apply("mul", integer(step), along)))
            result.append(extent)
            tags.append(given_tags[axis])
        elif isinstance(entry, SymbolicArray):
            indices.append(_gathered(session, entry, rank - (0 if first else len(result)) - entry.rank))
            data.add(indices[-1])
            result.extend(() if first else entry.extents)
            tags.extend(() if first else _gathered_tags(entry, given_tags[axis]))
        else:
            indices.append(_position(session, entry, array, axis))
    if not data or (single and isinstance(array, SymbolicTensor | View)):
        made = _through(session, array, indices, result, _rows(tags), data)
        one_cell = not result and not any(entry is Ellipsis for entry in key)
        return made.held() if one_cell and isinstance(made, View) else made
    return _gathered_array(session, array, indices, result, tags, data)


def _with_lists(session: Session, array: SymbolicArray, entries: Sequence[Any]) -> list[Any]:
    # Lists of numbers as index arrays; their numbers are known, and those below 0 count from the end.
    found: list[Any] = []
    for entry in entries:
        axis = len(found) - sum(each is None for each in found)
        if isinstance(entry, list):
            entry = literal_of(session, entry) if any(True for _ in leaves_of(entry)) else np.asarray(entry, np.int64)
            if entry.dtype != "bool":
                entry = entry + array.shape[axis] * (entry < 0)
        found.append(entry)
    return found


def _gathered_array(
    session: Session,
    array: SymbolicArray,
    indices: Sequence[Expr],
    extents: Sequence[Expr],
    tags: Sequence[str | None],
    data: set[Expr],
) -> PendingArray:
    # What is gathered from is stored, so that its own axis is what each index is checked against.
    label = f"{array.tensor.label}_view" if isinstance(array, View) else "t"
    stored = array.materialize(label) if isinstance(array, PendingArray) else array
    element, _ = element_of(stored, session)
    value = element.mapped(lambda expr: _checked(cell_at(expr, indices), data))
    return PendingArray(session.builder, value, extents, _rows(tags))


def _is_mask_of(array: SymbolicArray, key: SymbolicArray) -> bool:
    return key.dtype == "bool" and not isinstance(key, ChosenCells) and key.rank == array.rank > 0


def _chosen(session: Session, array: SymbolicArray, mask: SymbolicArray) -> ChosenCells:
    label = array.label if isinstance(array, SymbolicTensor) else "an array"
    return ChosenCells(held_now(array), mask_of(session, array, mask, label), session.location())


def mask_of(session: Session, array: SymbolicArray, mask: SymbolicArray, label: str) -> PendingArray:
    """``mask``, which has to be as long as the leading axes of ``array``, which is called ``label``."""
    for k, (wanted, found) in enumerate(zip(array.extents, mask.extents, strict=False)):
        fact = f"the mask has the extent {valued(found)} for axis {k} of `{label}`, which has {valued(wanted)}"
        session.builder.require_equal(wanted, found, fact, session.location())
    element, _ = element_of(held_now(mask), session)
    return PendingArray(session.builder, element, array.extents[: mask.rank])


def _number_as_data(session: Session, entry: object) -> object:
    # A number that the program computes, such as one that a loop carries, is data.
    if isinstance(entry, SymbolicNumber) and entry.weak_kind != "float" and not _is_of_the_call(session, entry):
        return PendingArray(entry.builder, Value(cast(entry.expr, "int64"), None, "int64"), ())
    return entry


def _is_of_the_call(session: Session, number: SymbolicNumber) -> bool:
    # Whether it is made of arguments and sizes alone.
    inputs = {tensor.name for tensor in session.builder.inputs}
    return bool(number.parameters) and all(read.tensor in inputs for read in reads(number.expr))


def part_of(array: SymbolicTensor | View, key: object) -> View:
    """``array[key]`` as a target: a view even where integers choose one cell."""
    entries = key if isinstance(key, tuple) else (key,)
    made = view(array, entries if any(entry is Ellipsis for entry in entries) else (*entries, ...))
    assert isinstance(made, View)
    return made


def _through(
    session: Session,
    array: SymbolicArray,
    cells: Sequence[Expr],
    extents: Sequence[Expr],
    rows: RowRanks,
    data: Collection[Expr] = (),
) -> PendingArray:
    # The array whose cells are those of `array` at the positions `cells`, one for each of its axes; some are data.
    part = whole(array) if isinstance(array, SymbolicTensor) else array
    if isinstance(part, View):
        axes = [IndexValue(axis_variable(k)) for k in reversed(range(array.rank))]
        places = zip(axes, cells, array.extents, strict=True)
        chosen: dict[Expr, tuple[Expr, Expr]] = {axis: (cell, extent) for axis, cell, extent in places if cell in data}
        indices: list[Expr] = []
        boundaries: list[Boundary] = []
        for index, boundary, extent in zip(part.indices, part.boundaries, part.tensor.extents, strict=True):
            made = normalized(cell_at(index, cells))
            among = [axis for axis in axes if axis in chosen and axis.name in index_variables(index)]
            for axis in among if chosen.get(index, (None, None))[1] != extent else ():
                # What is out of range of the part may be in range of the tensor.
                made = apply("where", in_range(*chosen[axis]), made, integer(-1))
            indices.append(made)
            boundaries.append(Boundary.CHECK if among else boundary)
        return View(part.tensor, indices, extents, rows, session.location(), boundaries)
    element, _ = element_of(part, session)
    viewed = PendingArray(session.builder, element.mapped(lambda expr: cell_at(expr, cells)), extents, rows)
    viewed.base = None if data else array
    return viewed


def whole(tensor: SymbolicTensor) -> View:
    """All cells of a tensor, as a view."""
    variables = [IndexValue(axis_variable(k)) for k in reversed(range(tensor.rank))]
    return View(tensor, variables, tensor.extents, tensor.rows)


def _gathered_tags(indices: SymbolicArray, replaced: str | None) -> list[str | None]:
    # A batch of indices gives a batch of what they choose; a plain array of them stays in the row that it chooses from.
    return [replaced] * indices.rank if indices.rows.plain else list(indices.rows.tags)


def _rows(tags: Sequence[str | None]) -> RowRanks:
    # An axis that `None` adds belongs to the row of the axis before it, or after it if it is the first.
    known = next((tag for tag in tags if tag is not None), "output")
    found: list[str] = []
    for tag in tags:
        known = known if tag is None else tag
        found.append(known)
    return RowRanks.of_tags(found)


def _separated(key: Sequence[object]) -> bool:
    chosen = [k for k, entry in enumerate(key) if not (entry is None or isinstance(entry, slice | EllipsisType))]
    return chosen[-1] - chosen[0] >= len(chosen)


def _gathered(session: Session, indices: SymbolicArray, shift: int) -> Expr:
    # What an index array says, where its last axis has `shift` axes of the result on its right.
    if not is_integer(indices.dtype):
        fact, hint = f"an index array of type {indices.dtype}", "index with integers"
        if indices.dtype == "bool":
            fact, hint = MASK_AS_INDEX
        raise session.fault(DtypeError, fact, hint)
    element, extents = element_of(indices, session)
    axes = [IndexValue(axis_variable(k + shift)) for k in reversed(range(len(extents)))]
    return exact_index(cell_at(element.expr, axes), {}, session.integers)


def _checked(expr: Expr, data: set[Expr]) -> Expr:
    # A read whose index is data is checked before memory is touched.
    def rule(node: Expr) -> Expr:
        if isinstance(node, Read) and any(index in data for index in node.indices):
            boundaries = tuple(
                Boundary.CHECK if index in data else boundary
                for index, boundary in zip(node.indices, node.boundaries, strict=True)
            )
            return replace(node, boundaries=boundaries)
        return node

    return transform(expr, rule) if data else expr


def _expanded(session: Session, array: SymbolicArray, key: Sequence[object]) -> list[Any]:
    # The ellipsis written out, missing axes appended.
    used = sum(entry is not None and entry is not Ellipsis for entry in key)
    if used > array.rank:
        raise session.fault(
            ShapeError, f"{used} indices on an array of rank {array.rank}", "drop an index, or add an axis with None"
        )
    if sum(entry is Ellipsis for entry in key) > 1:
        raise session.fault(DslSyntaxError, "more than one `...` in an index", "keep one")
    every = [slice(None)] * (array.rank - used)
    position = next((k for k, entry in enumerate(key) if entry is Ellipsis), None)
    if position is None:
        return [*key, *every]
    return [*key[:position], *every, *key[position + 1 :]]


def _size_expr(session: Session, value: object, bound: bool = False) -> Expr:
    # `bound` says that it is an end of a slice.
    match value:
        case bool():
            pass
        case int():
            return integer(value)
        case SymbolicSize():
            return value.expr
        case SymbolicNumber():
            size = None if value.weak_kind == "float" else session.integers.size(value.expr, bound)
            if size is None and bound and value.weak_kind == "int" and not value.parameters:
                raise _end_is_data(session, value)
            return integer(int(value)) if size is None else size
        case SymbolicArray() if bound and value.rank == 0:
            end = session.integers.end(value)
            if end is not None:
                return end
            raise _end_is_data(session, value)
        case _ if hasattr(value, "__index__"):
            return integer(value.__index__())
    raise session.fault(
        DslSyntaxError,
        f"a {type(value).__name__} as an index",
        "use integers, sizes, slices, None, `...` or an integer array",
    )


def _end_is_data(session: Session, end: object) -> TcdslError:
    strides = frozenset().union(*(each.rounds.strides for each in session.running))
    if strides:
        # With a step that staging knows, as with any coefficient, the numbers of rounds are sizes.
        raise Specialize(strides)
    fact = "a slice whose end is data has no extent while the function is staged"
    hint = "name its cells in a statement: `sum(x[i] for i in range(k))`, `y[i] = x[i] if i < k else 0.0`"
    hint += "; or loop over their numbers, `for t in range(k)`"
    return session.fault(DslSyntaxError, fact, hint, (f"end: {end!r}",))


def _from_end(session: Session, position: Expr, extent: Expr) -> Expr:
    # As in NumPy for numbers below 0, and for sizes that are never above 0, such as `-K` in `x[-K:]`. What may have
    # either sign counts from the beginning: `x[1 : N - 1]` is empty for N = 0.
    if isinstance(position, Constant):
        return apply("add", extent, position) if position.value < 0 else position
    if isinstance(position, SizeValue):
        return position
    if session.integers.is_alone(position):
        return apply("add", extent, position) if session.integers.is_negative(position) else position
    try:
        if not session.builder.known().never(apply("gt", position, integer(0))):
            return position
    except NotAffine:
        return position
    return apply("where", apply("lt", position, integer(0)), apply("add", extent, position), position)


def _position(session: Session, value: object, array: SymbolicArray, axis: int) -> Expr:
    extent = array.extents[axis]
    index = _from_end(session, _size_expr(session, value), extent)
    # The number of a round has no one value at the call.
    counts = any(each.number is value for each in session.running)
    shown = str(value) if isinstance(value, int) else format_expr(index) if counts else valued(index)
    stored = array.tensor if isinstance(array, View) else array
    label = stored.label if isinstance(stored, SymbolicTensor) else ""
    whose = f"axis {axis} of {label}" if label else f"axis {axis}"
    fact = f"the index {shown} is out of range of {whose}, which has the extent {valued(extent)}"
    if session.running and label:
        within = f"0 <= {format_expr(index)} < {label}.shape[{axis}]"
        fact += f"\nread cells by `get({label}[...], 0.0)`, which is 0 there, or behind `if {within}:`"
    elif isinstance(value, SymbolicSize):
        fact += _binder(session, format_expr(value.expr))
    for condition in range_tests(index, extent):
        session.builder.require(condition, fact, session.location())
    return index


def _binder(session: Session, size: str) -> str:
    # Where a letter was bound, as by `n, t = x.shape`, that was perhaps to be an index variable.
    place = session.location()
    names = re.findall(r"(?<![\w.])[a-z](?![\w(])", "" if place is None else place.text.partition("[")[2])
    for name in sorted(names, key=lambda name: name != size):
        binder = session.binder(name)
        if binder is not None:
            text = f"`{binder.text}` " if binder.text and "{" not in binder.text else ""
            found = f": `{name}` was bound by {text}in line {binder.line}"
            return f"{found}\nuse another letter for an index variable, in a statement with an index list"
    return ""


def require_in_range(target: View) -> None:
    """State that the positions of a part that is written are within its tensor.

    Those are meant that arrays of rank 0 give: where they are sizes of the program no statement looks at them.
    """
    session = session_of("a store")
    for axis, (index, boundary) in enumerate(zip(target.indices, target.boundaries, strict=True)):
        if boundary is Boundary.CHECK and is_affine_index(index) and not index_variables(index):
            extent = target.tensor.extents[axis]
            fact = f"the index {valued(index)} is out of range of axis {axis} of {target.tensor.label}"
            for condition in range_tests(index, extent):
                session.builder.require(condition, f"{fact}, which has the extent {valued(extent)}", session.location())


def _step(session: Session, value: object) -> int:
    expr = _size_expr(session, value)
    if not isinstance(expr, Constant):
        hint = "write a statement: `y[i] = x[i * step]`"
        raise session.fault(DslSyntaxError, "the step of a slice has to be a number while staging", hint)
    return max(-_BEYOND, min(int(expr.value), _BEYOND))


def _slice(session: Session, value: slice, extent: Expr) -> tuple[Expr, Expr, int]:
    step = 1 if value.step is None else _step(session, value.step)
    if step == 0:
        raise session.fault(ShapeError, "a slice with step 0", "use a step other than 0")

    def bound(given: object, default: Expr) -> Expr:
        if given is None:
            return default
        expr = _size_expr(session, given, bound=True)
        if isinstance(expr, Constant):
            # As Python's slices: beyond all extents is beyond.
            expr = integer(max(-_BEYOND, min(int(expr.value), _BEYOND)))
        return _from_end(session, expr, extent)

    # Python moves both bounds into the axis. An empty slice reads nothing, so a start beyond the far end may stay, and
    # so may a stop beyond the near one.
    algebra = SizeAlgebra(session.builder)
    zero, last = Polynomial.number(0), algebra.form(extent) - 1
    if step > 0:
        start = algebra.in_pieces(algebra.extreme([algebra.form(bound(value.start, integer(0))), zero], largest=True))
        span = algebra.extreme([algebra.form(bound(value.stop, extent)), last + 1], largest=False) - start
    else:
        start = algebra.extreme(
            [algebra.form(bound(value.start, apply("sub", extent, integer(1)))), last], largest=False
        )
        span = start - algebra.extreme([algebra.form(bound(value.stop, integer(-1))), zero - 1], largest=True)
    count = algebra.quotient(span + (abs(step) - 1), Polynomial.number(abs(step)))
    return algebra.expr(start), algebra.expr(algebra.in_pieces(algebra.extreme([count, zero], largest=True))), step


def transposed(array: SymbolicArray, by_rows: bool = False) -> PendingArray:
    """``x.T``: the axes in reverse order; of an array with batch or input axes, input and output axes swapped.

    ``by_rows`` says that it is the latter in any case: the array may have had input axes.
    """
    rank, rows = array.rank, array.rows
    order = list(reversed(range(rank)))
    by_rows = by_rows or not rows.plain
    if by_rows:
        output, start = rows.output, rows.batch
        order = [*range(start), *range(start + output, rank), *range(start, start + output)]
    return permuted(array, order, rows.transposed if by_rows else rows)


def permuted(array: SymbolicArray, order: Sequence[int], rows: RowRanks) -> PendingArray:
    """The array with its axes in another order: axis k of the result is axis ``order[k]``."""
    cells = [IndexValue(axis_variable(array.rank - 1 - order.index(old))) for old in range(array.rank)]
    return _through(session_of("a transpose"), array, cells, [array.extents[old] for old in order], rows)


def rolled(array: SymbolicArray, shifts: Sequence[object], axes: Sequence[int]) -> PendingArray:
    """``np.roll``: each cell from as many positions before it along the axes, which go on at their other ends."""
    session = session_of("np.roll")
    held = materialized(array, "rolled")
    indices: list[Expr] = [IndexValue(axis_variable(k)) for k in reversed(range(held.rank))]
    boundaries = [Boundary.SKIP] * held.rank
    for shift, axis in zip(shifts, axes, strict=True):
        indices[axis] = apply("sub", indices[axis], _size_expr(session, shift))
        boundaries[axis] = Boundary.WRAP
    cell = held.cell([normalized(index) for index in indices], session.location(), boundaries)
    return PendingArray(session.builder, cell, held.extents, array.rows)
