"""``A @ B`` and ``x.sum(axis=0)`` on plain arrays: NumPy's matmul and reductions, each as one statement."""

from __future__ import annotations

from typing import Any

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.arithmetic import all_cells, axes, combine, element_of, staged_operand
from tcdsl.frontend.arrays.arithmetic import broadcast as broadcast_parts
from tcdsl.frontend.arrays.row_alignment import axis_variable, rows_of
from tcdsl.frontend.logics.logic import PRODUCT, stage_logic
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicTensor
from tcdsl.frontend.symbols.values import Value, store_value, sum_dtype
from tcdsl.ir.build import integer
from tcdsl.ir.expressions import Expr, IndexValue, substitute
from tcdsl.ir.program import Access, Neutral, Statement, Tensor
from tcdsl.rows.logic import COMPOSE, aligned
from tcdsl.rows.ranks import RowRanks

__all__ = ["matrix_product", "reduce_array"]

_SUMMED = "summed"


def _placed(part: tuple[Value, tuple[Expr, ...]], summed_axis: int) -> tuple[Value, tuple[Expr, ...]]:
    # Put the summed axis aside: its variable gets a name, and it counts as extent 1 in broadcasting.
    value, extents = part
    names: dict[Expr, Expr] = {IndexValue(axis_variable(summed_axis)): IndexValue(_SUMMED)}
    shape = list(extents)
    shape[len(extents) - 1 - summed_axis] = integer(1)
    return value.mapped(lambda expr: substitute(expr, names)), tuple(shape)


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
    if column:
        b, b_extents = _with_last_axis(b, b_extents)
    if row:
        a_extents = (integer(1), *a_extents)
    inner = a_extents[-1]
    session.builder.require_equal(
        inner,
        b_extents[-2],
        f"`@` sums over the last axis of the left and the last but one of the right, whose extents are {valued(inner)} "
        f"and {valued(b_extents[-2])}",
        session.location(),
    )
    values, extents = broadcast_parts(session, [_placed((a, a_extents), 0), _placed((b, b_extents), 1)])
    product = apply_primitive("mul", values, session.location())
    made = _record(session, product, inner, extents, row, column)
    made.rows = aligned(COMPOSE, tuple(map(rows_of, (left, right), given))).rows
    return made


def _with_last_axis(value: Value, extents: tuple[Expr, ...]) -> tuple[Value, tuple[Expr, ...]]:
    moved: dict[Expr, Expr] = {IndexValue(axis_variable(0)): IndexValue(axis_variable(1))}
    return value.mapped(lambda expr: substitute(expr, moved)), (*extents, integer(1))


def _record(
    session: Session, product: Value, inner: Expr, extents: tuple[Expr, ...], row: bool, column: bool
) -> SymbolicTensor:
    builder = session.builder
    kept = [
        k for k in range(len(extents)) if not ((row and k == len(extents) - 2) or (column and k == len(extents) - 1))
    ]
    letters = axes(session, len(kept) + 1)
    naming: dict[Expr, Expr] = {IndexValue(_SUMMED): IndexValue(letters[-1])}
    for axis in range(len(extents)):
        variable = IndexValue(axis_variable(len(extents) - 1 - axis))
        naming[variable] = IndexValue(letters[kept.index(axis)]) if axis in kept else integer(0)
    dtype = sum_dtype(product)
    name = builder.fresh_name("t")
    shape = tuple(extents[k] for k in kept)
    span = session.location()
    statement = Statement(
        Access(name, tuple(IndexValue(v) for v in letters[:-1]), span),
        "add",
        Neutral(),
        substitute(store_value(product, dtype, span), naming),
        all_cells(session, letters, (*shape, inner)),
        span=span,
    )
    builder.append((statement,), (Tensor(name, dtype, shape, "" if name == "t" else "t", span),))
    return SymbolicTensor(builder, name, dtype, shape, "t")


def _reduced_axes(session: Session, axis: Any, rank: int) -> set[int]:
    # As in NumPy: an integer or a tuple of them, each axis once.
    found: set[int] = set()
    for each in axis if isinstance(axis, tuple) else (axis,):
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            hint = "an axis is an integer; several are a tuple: `axis=(0, 1)`"
            raise session.fault(ShapeError, f"axis {each!r} of an array of rank {rank}", hint)
        position = int(each.__index__())
        if not -rank <= position < rank:
            hint = f"axes are -{rank} to {rank - 1}" if rank else "it has no axes: leave the argument out"
            raise session.fault(ShapeError, f"axis {axis} of an array of rank {rank}", hint)
        if position % rank in found:
            raise session.fault(ShapeError, f"axis {position % rank} is given twice", "name each axis once")
        found.add(position % rank)
    return found


def reduce_array(accumulate: str, array: SymbolicArray, axis: Any = None, keepdims: bool = False) -> Any:
    """``sum(x)``, ``np.max(x, axis=0)``: a reduction over all axes or the given ones, as NumPy's functions of the name.

    ``mean`` divides by the number of cells. `ShapeError` for an axis that the array lacks.
    """
    session = session_of("a reduction")
    if accumulate in ("argmax", "argmin"):
        raise session.fault(
            DslSyntaxError,
            f"`{accumulate}` of a whole array",
            f"write it in index notation: `O[i] = {accumulate}(x[i, k])`",
        )
    element, extents = element_of(array, session)
    rank = len(extents)
    reduced = set(range(rank)) if axis is None else _reduced_axes(session, axis, rank)
    kept = [k for k in range(rank) if k not in reduced]
    letters = axes(session, rank)
    naming: dict[Expr, Expr] = {IndexValue(axis_variable(rank - 1 - k)): IndexValue(letters[k]) for k in range(rank)}
    kind = "add" if accumulate == "mean" else accumulate
    if element.logical == "bool":
        # The largest of truth values is whether any is true.
        kind = {"max": "or", "min": "and"}.get(kind, kind)
    if accumulate == "mean":
        dtype = element.logical if element.logical.startswith("float") else "float64"
    else:
        dtype = (
            sum_dtype(element) if kind in ("add", "multiply") else "bool" if kind in ("or", "and") else element.logical
        )
    name, span = session.builder.fresh_name("t"), session.location()
    shape = tuple(extents[k] for k in kept)
    order = [*kept, *sorted(reduced)]
    statement = Statement(
        Access(name, tuple(IndexValue(letters[k]) for k in kept), span),
        kind,
        Neutral(),
        substitute(store_value(element, dtype, span), naming),
        all_cells(session, [letters[k] for k in order], [extents[k] for k in order]),
        span=span,
    )
    session.builder.append((statement,), (Tensor(name, dtype, shape, "" if name == "t" else "t", span),))
    result: Any = SymbolicTensor(session.builder, name, dtype, shape, "t")
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
