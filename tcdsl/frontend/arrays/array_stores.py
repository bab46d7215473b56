"""Stores of whole arrays into tensors and views of them: ``p -= rate * g``, ``a[1:-1] = x``, ``w[...] *= 0.0``."""

from __future__ import annotations

from collections.abc import Sequence

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.arithmetic import all_cells, axes, broadcast, element_of, staged_operand
from tcdsl.frontend.arrays.row_alignment import axis_variable, cell_at, common_rows, rows_of
from tcdsl.frontend.arrays.views import part_of, whole
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.staging.target_states import Existing
from tcdsl.frontend.stores.stores import TargetStore, store
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicTensor, View
from tcdsl.frontend.symbols.values import Value, cast_value
from tcdsl.frontend.symbols.weak_targets import in_its_type
from tcdsl.ir.build import integer
from tcdsl.ir.dtypes import is_boolean
from tcdsl.ir.expressions import Constant, Expr, IndexValue, substitute
from tcdsl.ir.program import Access, Neutral, Statement, Tensor
from tcdsl.span import Span

__all__ = ["store_elementwise", "store_item"]


def store_item(array: SymbolicArray, key: object, value: object) -> None:
    """``array[key] = value`` in ordinary Python. `DslSyntaxError` unless the array is memory."""
    session = session_of("a store")
    if not isinstance(array, SymbolicTensor | View) or not array.memory:
        raise session.fault(
            DslSyntaxError,
            "Python stores into an array that is a value here",
            "write one statement on a name of the function, with all indices in one pair of brackets: `a[0, 1:] = ...`;"
            " helpers change what @cd functions pass them",
        )
    part = part_of(array, key)
    part.tensor.become(in_its_type(part.tensor, lambda: store_elementwise(part, "assign", value)))


def store_elementwise(
    target: SymbolicTensor | View, accumulate: str, operand: object, parts: Sequence[Statement] = ()
) -> SymbolicTensor:
    """Record ``target <accumulate>= operand`` on every cell, the operand broadcast to the target's shape.

    ``parts`` are the statements that were recorded for the operand: products of matrices, calls of operations.
    Returns the new version of the tensor that the target is, or is a part of. `ShapeError` if the operand does not
    broadcast to the target, `DtypeError` if it cannot be stored in the target's type (NumPy's same-kind rule).
    """
    session = session_of("a store")
    builder = session.builder
    part = target if isinstance(target, View) else whole(target)
    tensor = part.tensor.held()
    value = _broadcast_to(session, part, operand, accumulate)
    variables = axes(session, part.rank)
    letters = list(map(IndexValue, variables))
    span = session.location()
    name = builder.fresh_name(tensor.label)
    kept = _whole_store(session, part, accumulate, value, span)
    everywhere = (
        kept.accumulate == "assign" and part.indices == whole(tensor).indices and part.extents == tensor.extents
    )
    statement = Statement(
        Access(name, tuple(cell_at(index, letters) for index in part.indices), span),
        kept.accumulate,
        Neutral() if everywhere and kept.accumulate == "assign" else kept.start,
        cell_at(kept.value, letters),
        all_cells(session, variables, part.extents),
        span=span,
    )
    builder.check_recurrence(statement, tensor.name, parts)
    label = "" if tensor.label == name else tensor.label
    builder.add_statement(statement, Tensor(name, tensor.element_type, tensor.extents, label, span))
    if kept.weak:
        builder.written.by_numbers(statement)
    made = SymbolicTensor(builder, name, tensor.element_type, tensor.extents, tensor.label)
    made.rows = tensor.rows
    return made


def _broadcast_to(session: Session, part: View, operand: object, accumulate: str) -> Value:
    # The value for a cell of the part.
    what = f"a part of `{part.label}`" if part.extents != part.tensor.extents else f"`{part.label}`"
    operand = _fitting(session, part, staged_operand(operand, session), accumulate == "assign")
    element, extents = element_of(operand, session)
    if len(extents) > part.rank:
        raise session.fault(
            ShapeError,
            f"a value of rank {len(extents)} cannot be stored in {what}, which has rank {part.rank}",
            "index it, or reduce the axes that are too many",
        )
    own = Value(Constant(0, "int64"), "int", "int64")
    parts, rows = common_rows((part, operand), [(own, part.extents), (element, extents)])
    if rows != part.rows:
        raise session.fault(
            ShapeError,
            f"a value with {rows_of(operand, extents)} cannot be stored in {what}, which has {part.rows}",
            "reduce the axes that are too many, or say by a logic how the rows meet: "
            f'`{part.label}["...|...->... => ..."] = value`',
        )
    (_, value), result = broadcast(session, parts)
    if result != part.extents:
        raise session.fault(
            ShapeError,
            f"the value does not broadcast to {what}",
            "a target keeps its shape; only the value's axes of extent 1 stretch",
        )
    return value


def _fitting(session: Session, part: View, operand: object, assigned: bool) -> object:
    """``operand`` with extents of 1 where the part has them, which never stretch.

    NumPy's rule for what is assigned is that axes of extent 1 on its left do not count.
    """
    element, extents = element_of(operand, session)
    surplus = max(0, len(extents) - part.rank)
    if not rows_of(operand, extents).plain or (surplus and not assigned):
        return operand
    if not all(_is_one(session, extent) for extent in extents[:surplus]):
        return operand
    ones = {len(extents) - 1 - k for k in range(surplus)}
    for k, (own, extent) in enumerate(zip(reversed(part.extents), reversed(extents), strict=False)):
        if own == integer(1) and extent != own and _is_one(session, extent):
            ones.add(k)
    if not ones:
        return operand
    first: dict[Expr, Expr] = {IndexValue(axis_variable(k)): integer(0) for k in ones}
    kept = [integer(1) if len(extents) - 1 - k in ones else extent for k, extent in enumerate(extents)]
    return PendingArray(part.builder, element.mapped(lambda expr: substitute(expr, first)), kept[surplus:])


def _is_one(session: Session, extent: Expr) -> bool:
    if isinstance(extent, Constant):
        return extent.value == 1
    return session.broadcast_relation(extent, integer(1)) == "equal"


def _whole_store(session: Session, part: View, accumulate: str, value: Value, span: Span | None) -> TargetStore:
    state = Existing(part.tensor.held(), part.tensor.declared, part.tensor.sized[1])
    if accumulate in ("or", "and") and not is_boolean(part.element_type):
        # Every cell is written once, so a number becomes 0 or 1 in one assignment.
        combined = apply_primitive(f"{accumulate}_", [part.element, value], span)
        return store(state, "assign", False, cast_value(combined, part.element_type, span), span)
    return store(state, accumulate, False, value, span)
