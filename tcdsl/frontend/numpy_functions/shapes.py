"""The same cells in another shape: ``np.reshape``, ``np.moveaxis``, ``np.tile``, ``np.pad``, as NumPy has them.

`reshaped` is a statement, as in ``y[i*M + j] = x[i, j]``; of the others no cell is copied before it is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.arithmetic import element_of
from tcdsl.frontend.arrays.row_alignment import axis_variable
from tcdsl.frontend.arrays.views import permuted, rolled
from tcdsl.frontend.numpy_functions.recording import Cell, array_of, computed, filled, tensor_of
from tcdsl.frontend.staging.declarations import given_extent
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicSize, SymbolicTensor
from tcdsl.frontend.symbols.values import cast_value
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Boundary, Constant, Expr, IndexValue
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.size_algebra import SizeAlgebra
from tcdsl.polyhedra.size_polynomials import Polynomial
from tcdsl.rows.ranks import RowRanks

__all__ = ["SHAPES", "axes_of", "one_axis", "reshaped"]


# -- reshape -------------------------------------------------------------------------------------------------


def reshaped(session: Session, given: Any, extents: Sequence[Expr]) -> SymbolicTensor:
    """The same cells in the same order, in a shape of these extents. `ShapeError` for another number of cells."""
    tensor = tensor_of(session, given, "x")
    if any(isinstance(each, Constant) and not each.value for each in (*tensor.extents, *extents)):
        # Of no cells no place says where they are.
        before, after = _product(session, tensor.extents), _product(session, extents)
        fact = f"reshape of {valued(before)} cells to {valued(after)} cells"
        session.builder.require_equal(before, after, fact, session.location())
        made = filled(np.zeros, tuple(SymbolicSize(session.builder, each) for each in extents), str(tensor.dtype))
        return tensor_of(session, made, "reshaped")
    groups = _groups(session, tensor.extents, extents)
    if groups is None:
        before, after = _product(session, tensor.extents), _product(session, extents)
        fact = f"reshape of {valued(before)} cells to {valued(after)} cells"
        session.builder.require_equal(before, after, fact, session.location())
        groups = [(range(tensor.rank), range(len(extents)))]
    if any(len(before) != 1 for before, _ in groups):
        tensor = _merged(session, tensor, groups)
        groups = [(range(k, k + 1), after) for k, (_, after) in enumerate(groups)]
    return _split(tensor, extents, groups)


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

    def cell(*variables: Expr) -> Cell:
        places = [_place([variables[k] for k in before], [tensor.extents[k] for k in before]) for before, _ in groups]
        return Cell(tensor.cell(variables), places)

    extents = [_product(session, [tensor.extents[k] for k in before]) for before, _ in groups]
    return computed("flat", extents, tensor.rank, cell)


def _split(tensor: SymbolicTensor, extents: Sequence[Expr], groups: _Groups) -> SymbolicTensor:
    """Each axis of the tensor as several."""
    if all(len(after) == 1 for _, after in groups):
        return tensor

    def cell(*variables: Expr) -> Cell:
        places = [_place([variables[k] for k in after], [extents[k] for k in after]) for _, after in groups]
        return Cell(tensor.cell(places))

    return computed("reshaped", extents, len(extents), cell)


def _product(session: Session, extents: Sequence[Expr]) -> Expr:
    product: Expr = integer(1)
    for extent in extents:
        product = apply("mul", product, extent)
    return session.builder.opaque_size(product)


def _place(variables: Sequence[Expr], extents: Sequence[Expr]) -> Expr:
    # The place of a cell in the order of storage.
    place: Expr = integer(0)
    for variable, extent in zip(variables, extents, strict=True):
        place = apply("add", apply("mul", place, extent), variable)
    return place


def _reshape(a: Any, shape: Any, order: str = "C") -> Any:
    """In the order C."""
    session = session_of("np.reshape")
    if order != "C":
        hint = "of a matrix the transposed has the order F: `np.ravel(x.T)`"
        raise session.fault(DslSyntaxError, f"np.reshape in the order {order!r}", hint)
    sizes = list(shape) if isinstance(shape, tuple | list) else [shape]
    unknown = [k for k, size in enumerate(sizes) if isinstance(size, int) and size == -1]
    if len(unknown) > 1:
        raise session.fault(ShapeError, "more than one -1 in a shape", "at most one extent follows from the others")
    if unknown:
        sizes[unknown[0]] = _left_over(a, [size for size in sizes if not (isinstance(size, int) and size == -1)])
    return reshaped(session, a, [given_extent(size, session.location()) for size in sizes])


def _left_over(a: Any, sizes: list[Any]) -> Any:
    # What -1 stands for: the extents that are not among the others, or a quotient.
    extents = list(a.shape)
    others: Any = 1
    for size in sizes:
        same = next((k for k, extent in enumerate(extents) if _is_same(extent, size)), None)
        if same is None:
            others = others * size
        else:
            del extents[same]
    cells: Any = 1
    for extent in extents:
        cells = cells * extent
    if _is_same(others, 0):
        fact = "-1 beside an extent of 0 in a shape"
        raise session_of("np.reshape").fault(ShapeError, fact, "any extent would do: give it")
    return cells if _is_same(others, 1) else cells // others


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, int) or isinstance(other, int):
        return isinstance(one, int) and isinstance(other, int) and int(one) == int(other)
    return bool(getattr(one, "expr", one) == getattr(other, "expr", other))


def _ravel(a: Any, order: str = "C") -> Any:
    return a if a.ndim == 1 and order == "C" else _reshape(a, (a.size,), order)


# -- axes ----------------------------------------------------------------------------------------------------


def one_axis(array: Any, axis: Any) -> int:
    """The number of one axis from the left. `ShapeError` if ``array`` has it not."""
    if isinstance(axis, tuple | list):
        raise session_of("an axis").fault(ShapeError, f"one axis is wanted, not {axis!r}", "give its number")
    return axes_of(array.ndim, axis)[0]


def axes_of(rank: int, axis: Any) -> tuple[int, ...]:
    """The numbers of some axes of an array of that rank, from the left."""
    given = axis if isinstance(axis, tuple | list) else (axis,)
    for each in given:
        if not isinstance(each, int | np.integer) or not -rank <= each < rank:
            fact = f"an array of rank {rank} has no axis {each}"
            raise session_of("an axis").fault(ShapeError, fact, "axes count from 0")
    found = tuple(int(each) % rank for each in given)
    twice = [each for k, each in enumerate(found) if each in found[:k]]
    if twice:
        raise session_of("an axis").fault(ShapeError, f"axis {twice[0]} is given twice", "name each axis once")
    return found


def _permuted(a: Any, order: Sequence[int]) -> Any:
    rows = a.rows if list(order) == list(range(a.ndim)) else RowRanks(output=a.ndim)
    return permuted(a, order, rows)


def _transpose(a: Any, axes: Any = None) -> Any:
    return a.T if axes is None else _permuted(a, _all_axes(a, axes))


def _all_axes(a: Any, axes: Any) -> tuple[int, ...]:
    found = axes_of(a.ndim, axes)
    if len(found) != a.ndim:
        fact = f"{len(found)} axes for an array of rank {a.ndim}"
        raise session_of("np.transpose").fault(ShapeError, fact, "name each axis once")
    return found


def _swapaxes(a: Any, axis1: Any, axis2: Any) -> Any:
    one, other = one_axis(a, axis1), one_axis(a, axis2)
    order = list(range(a.ndim))
    order[one], order[other] = other, one
    return _permuted(a, order)


def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    taken, places = axes_of(a.ndim, source), axes_of(a.ndim, destination)
    if len(taken) != len(places):
        fact = f"{len(taken)} axes move to {len(places)} places"
        raise session_of("np.moveaxis").fault(ShapeError, fact, "name as many places as axes")
    order = [k for k in range(a.ndim) if k not in taken]
    for place, axis in sorted(zip(places, taken, strict=True)):
        order.insert(place, axis)
    return _permuted(a, order)


def _expand_dims(a: Any, axis: Any) -> Any:
    new = axes_of(a.ndim + (len(axis) if isinstance(axis, tuple | list) else 1), axis)
    return a[tuple(None if k in new else slice(None) for k in range(a.ndim + len(new)))]


def _squeeze(a: Any, axis: Any = None) -> Any:
    session = session_of("np.squeeze")
    dropped = axes_of(a.ndim, axis) if axis is not None else tuple(k for k in range(a.ndim) if _is_same(a.shape[k], 1))
    for k in dropped:
        fact = f"axis {k} has the extent {valued(a.extents[k])}, not 1"
        session.builder.require_equal(a.extents[k], integer(1), fact, session.location())
    return a[tuple(0 if k in dropped else slice(None) for k in range(a.ndim))] if dropped else a


def _at_least(rank: int) -> Any:
    def function(*arys: Any) -> Any:
        made = [_lifted(array_of(each), rank) for each in arys]
        return made[0] if len(made) == 1 else tuple(made)

    return function


def _lifted(a: Any, rank: int) -> Any:
    match rank - np.ndim(a):
        case 3:
            return a[None, None, None]
        case 2 if rank == 3:
            return a[None, :, None]
        case 2:
            return a[None, None]
        case 1:
            return a[..., None] if rank == 3 else a[None]
    return a


def _flip(m: Any, axis: Any = None) -> Any:
    turned = range(m.ndim) if axis is None else axes_of(m.ndim, axis)
    return m[tuple(slice(None, None, -1 if k in turned else 1) for k in range(m.ndim))]


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None and a.ndim > 1:
        return _reshape(_roll(_ravel(a), shift), a.shape)
    axes = axes_of(a.ndim, 0 if axis is None else axis)
    shifts = tuple(shift) if isinstance(shift, tuple | list) else (shift,)
    shifts = shifts * len(axes) if len(shifts) == 1 else shifts
    if len(shifts) != len(axes):
        fact = f"np.roll by {len(shifts)} numbers along {len(axes)} axes"
        raise session_of("np.roll").fault(ShapeError, fact, "give a number for each axis")
    return rolled(a, shifts, axes)


def _flip_axis(axis: int) -> Any:
    return lambda m: _flip(m, axis)


def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    first, second = axes_of(m.ndim, axes)
    match k % 4:
        case 0:
            return m
        case 1:
            return _swapaxes(_flip(m, second), first, second)
        case 2:
            return _flip(m, (first, second))
    return _flip(_swapaxes(m, first, second), second)


# -- cells more than once ------------------------------------------------------------------------------------


def _broadcast_to(array: Any, shape: Any) -> Any:
    return filled(np.full, shape, array, dtype=str(array.dtype))


def _repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """One number for all cells."""
    if axis is None:
        return _repeat(_ravel(a), repeats, 0)
    if isinstance(repeats, SymbolicArray | list | tuple | np.ndarray):
        hint = "give one number for all cells; of others the extent is data"
        raise session_of("np.repeat").fault(DslSyntaxError, "np.repeat with a number for each cell", hint)
    k = one_axis(a, axis)
    apart = a[(*(slice(None),) * (k + 1), None)]
    shape = list(a.shape)
    many = _broadcast_to(apart, (*shape[: k + 1], repeats, *shape[k + 1 :]))
    return _reshape(many, (*shape[:k], shape[k] * repeats, *shape[k + 1 :]))


def _tile(A: Any, reps: Any) -> Any:
    times = [*reps] if isinstance(reps, tuple | list) else [reps]
    times = [1] * (A.ndim - len(times)) + times
    A = A[(None,) * (len(times) - A.ndim)] if len(times) > A.ndim else A
    for k, count in enumerate(times):
        if not _is_same(count, 1):
            shape = list(A.shape)
            many = _broadcast_to(A[(*(slice(None),) * k, None)], (*shape[:k], count, *shape[k:]))
            A = _reshape(many, (*shape[:k], count * shape[k], *shape[k + 1 :]))
    return A


_BOUNDARIES = {
    "edge": Boundary.CLAMP, "reflect": Boundary.REFLECT, "symmetric": Boundary.SYMMETRIC, "wrap": Boundary.WRAP,
    "constant": Boundary.FILL,
}  # fmt: skip


def _pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Any:
    """In the modes `constant`, with one number, `edge`, `reflect`, `symmetric` and `wrap`."""
    session = session_of("np.pad")
    if mode not in _BOUNDARIES:
        raise session.fault(DslSyntaxError, f"np.pad in the mode {mode!r}", f"use {', '.join(_BOUNDARIES)}")
    if isinstance(constant_values, tuple | list):
        raise session.fault(DslSyntaxError, "np.pad with a constant for each side", "give one number")
    widths = _widths(session, pad_width, array.ndim)
    held = tensor_of(session, array, "padded")
    location = session.location()
    extents, places = [], []
    for k, (extent, (before, after)) in enumerate(zip(held.shape, widths, strict=True)):
        extents.append(given_extent(extent + before + after, location))
        along = IndexValue(axis_variable(held.rank - 1 - k))
        places.append(normalized(apply("sub", along, given_extent(before, location))))
    touched = [not (_is_same(before, 0) and _is_same(after, 0)) for before, after in widths]
    boundaries = [_BOUNDARIES[mode] if each else Boundary.SKIP for each in touched]
    fill = None
    if mode == "constant":
        value, _ = element_of(constant_values, session)
        fill = cast_value(value, str(held.dtype), location).expr
    return PendingArray(session.builder, held.cell(places, location, boundaries, fill), extents, array.rows)


def _widths(session: Session, given: Any, rank: int) -> list[tuple[Any, Any]]:
    if not isinstance(given, tuple | list):
        return [(given, given)] * rank
    rows = list(given)
    if any(isinstance(row, tuple | list) for row in rows):
        pairs = [tuple(row) * (2 if len(row) == 1 else 1) for row in rows]
        pairs = pairs * rank if len(pairs) == 1 else pairs
    else:
        pairs = [tuple(rows) * (2 if len(rows) == 1 else 1)] * rank
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        fact = f"the widths {given!r} for an array of rank {rank}"
        raise session.fault(ShapeError, fact, "give a pair for each axis, `((1, 1), (0, 0))`")
    return pairs


# -- parts ---------------------------------------------------------------------------------------------------


def _split_at(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    return _parts(ary, indices_or_sections, axis, equal=True)


def _array_split(ary: Any, indices_or_sections: Any, axis: Any = 0) -> Any:
    return _parts(ary, indices_or_sections, axis, equal=False)


def _parts(ary: Any, given: Any, axis: Any, equal: bool) -> Any:
    k = one_axis(ary, axis)
    extent = ary.shape[k]
    if isinstance(given, int | np.integer):
        session, count = session_of("np.split"), int(given)
        if equal:
            left, span = extent % count, session.location()
            if not _is_same(left, 0):
                fact = f"an extent of {valued(ary.extents[k])} is not cut into {count} equal parts"
                session.builder.require_equal(given_extent(left, span), integer(0), fact, span)
            ends = [extent // count * number for number in range(1, count)]
        else:
            each, more = extent // count, extent % count
            ends = [
                each * number + (min(more, number) if isinstance(more, int) else np.minimum(more, number))
                for number in range(1, count)
            ]
    else:
        ends = list(given)
    cuts = zip([None, *ends], [*ends, None], strict=True)
    return [ary[(*(slice(None),) * k, slice(start, stop))] for start, stop in cuts]


def _append(arr: Any, values: Any, axis: Any = None) -> Any:
    if axis is None:
        flat = [_ravel(each) if np.ndim(each) else np.reshape(each, (1,)) for each in (arr, values)]
        return np.concatenate(flat)
    return np.concatenate([arr, values], axis)


def _insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Before one position that is known; of several axes the values are one row."""
    arr, k, before, after = _apart(arr, obj, axis, 0)
    values = values if isinstance(values, SymbolicArray) else np.asarray(values)
    ahead = (slice(None),) * k
    if values.ndim < arr.ndim:
        row = arr[(*ahead, slice(0, 1))] if arr.ndim > 1 else None
        values = values[None] if row is None else values[(*ahead, None)] if values.ndim == arr.ndim - 1 else values
        shape = (1,) if row is None else tuple(1 if j == k else arr.shape[j] for j in range(arr.ndim))
        values = _broadcast_to(values, shape)
    return np.concatenate([before, values.astype(arr.dtype), after], k)


def _delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """One position that is known."""
    _, k, before, after = _apart(arr, obj, axis, 1)
    return np.concatenate([before, after], k)


def _apart(arr: Any, obj: Any, axis: Any, dropped: int) -> tuple[Any, int, Any, Any]:
    # The array, the axis, and what is before and behind a position.
    if axis is None:
        arr, axis = _ravel(arr), 0
    session, k = session_of("a position"), one_axis(arr, axis)
    if not isinstance(obj, int | np.integer) or isinstance(obj, bool):
        hint = "give a whole number that is known, or write a statement"
        raise session.fault(DslSyntaxError, f"an array is taken apart at {obj!r}", hint)
    place, ahead = int(obj), (slice(None),) * k
    if dropped:
        arr[(*ahead, place)]  # an error where there is no such cell
    behind = slice(place + dropped, None) if place + dropped or not dropped else slice(arr.shape[k], None)
    return arr, k, arr[(*ahead, slice(None, place))], arr[(*ahead, behind)]


def _block(arrays: Any) -> Any:
    depth, leaf = 0, arrays
    while isinstance(leaf, list):
        depth, leaf = depth + 1, leaf[0]
    rank = max(depth, _largest_rank(arrays))
    return _joined_block(arrays, rank, rank - depth)


def _largest_rank(arrays: Any) -> int:
    return max(map(_largest_rank, arrays)) if isinstance(arrays, list) else np.ndim(arrays)


def _joined_block(arrays: Any, rank: int, axis: int) -> Any:
    if not isinstance(arrays, list):
        arrays = array_of(arrays)
        return arrays[(None,) * (rank - np.ndim(arrays))] if np.ndim(arrays) < rank else arrays
    return np.concatenate([_joined_block(each, rank, axis + 1) for each in arrays], axis)


def _unstack(x: Any, /, *, axis: int = 0) -> Any:
    """Along an axis whose extent is known."""
    k = one_axis(x, axis)
    if not isinstance(x.shape[k], int):
        fact = f"np.unstack along axis {k}, whose extent only the call knows"
        raise session_of("np.unstack").fault(ShapeError, fact, "loop over its rows: `for row in x`")
    return tuple(x[(*(slice(None),) * k, place)] for place in range(x.shape[k]))


def _broadcast_arrays(*args: Any) -> Any:
    args = tuple(map(array_of, args))
    shape = _common(args)
    return tuple(_broadcast_to(each, shape) for each in args)


def _common(arrays: Sequence[Any]) -> tuple[Any, ...]:
    total = arrays[0]
    for each in arrays[1:]:
        total = np.equal(total, each)
    return tuple(total.shape)


def _column_stack(tup: Any) -> Any:
    lifted = ((each, _lifted(each, 2)) for each in map(array_of, tup))
    return np.concatenate([new.T if each.ndim < 2 else each for each, new in lifted], 1)


def _dstack(tup: Any) -> Any:
    return np.concatenate([_lifted(array_of(each), 3) for each in tup], 2)


def _meshgrid(*xi: Any, indexing: str = "xy", sparse: bool = False) -> Any:
    xi, rank = tuple(_ravel(array_of(each)) for each in xi), len(xi)
    if indexing not in ("xy", "ij"):
        raise session_of("np.meshgrid").fault(DslSyntaxError, f"np.meshgrid indexed by {indexing!r}", "use xy or ij")
    places = [1, 0, *range(2, rank)] if indexing == "xy" and rank > 1 else list(range(rank))
    pairs = list(zip(xi, places, strict=True))
    open_ones = [x[tuple(slice(None) if k == place else None for k in range(rank))] for x, place in pairs]
    shape = [0] * rank
    for x, place in pairs:
        shape[place] = x.shape[0]
    return tuple(each if sparse else _broadcast_to(each, tuple(shape)) for each in open_ones)


SHAPES: dict[Any, Any] = {
    np.reshape: _reshape,
    np.ravel: _ravel,
    np.transpose: _transpose,
    np.swapaxes: _swapaxes,
    np.moveaxis: _moveaxis,
    np.expand_dims: _expand_dims,
    np.squeeze: _squeeze,
    np.atleast_1d: _at_least(1),
    np.atleast_2d: _at_least(2),
    np.atleast_3d: _at_least(3),
    np.flip: _flip,
    np.roll: _roll,
    np.fliplr: _flip_axis(1),
    np.flipud: _flip_axis(0),
    np.rot90: _rot90,
    np.broadcast_to: _broadcast_to,
    np.repeat: _repeat,
    np.tile: _tile,
    np.pad: _pad,
    np.split: _split_at,
    np.array_split: _array_split,
    np.append: _append,
    np.block: _block,
    np.insert: _insert,
    np.delete: _delete,
    np.unstack: _unstack,
    np.broadcast_arrays: _broadcast_arrays,
    np.matrix_transpose: lambda x: _swapaxes(x, -1, -2),
    np.linalg.matrix_transpose: lambda x: _swapaxes(x, -1, -2),
    np.column_stack: _column_stack,
    np.dstack: _dstack,
    np.meshgrid: _meshgrid,
}
