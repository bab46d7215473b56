"""Stores of whole arrays into tensors and views of them: ``p -= rate * g``, ``a[1:-1] = x``, ``w[...] *= 0.0``.

Statements in index notation on views of memory, ``w = a[1:]; w[i] += x[i]``, are stores too: the statement is recorded
on a tensor of the view's shape, which decides its ranges, and then moved to the cells that the view stands for::

    w_2[i] += x[i] * w[i]    from w         a_2[i + 1] += x[i] * a[i + 1]    from a

Where that would not keep its meaning, as with checks of data against the view's extents, the view is copied, and what
the statement makes of the copy is stored.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tcdsl.errors import DslSyntaxError, ShapeError
from tcdsl.frontend.arrays.arithmetic import all_cells, axes, broadcast, element_of, staged_operand
from tcdsl.frontend.arrays.row_alignment import axis_variable, cell_at, common_rows, rows_of
from tcdsl.frontend.arrays.views import part_of, require_in_range, whole
from tcdsl.frontend.staging.faults import valued
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.staging.target_states import Existing
from tcdsl.frontend.stores.stores import TargetStore, store
from tcdsl.frontend.symbols.retired_values import replace_value
from tcdsl.frontend.symbols.scalar_primitives import apply_primitive
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicTensor, View
from tcdsl.frontend.symbols.values import Value, cast_value
from tcdsl.frontend.symbols.weak_targets import in_its_type
from tcdsl.ir.build import integer
from tcdsl.ir.dtypes import is_boolean, is_integer
from tcdsl.ir.expressions import (
    Boundary,
    Constant,
    Expr,
    IndexValue,
    Read,
    is_affine_index,
    reads,
    substitute,
    transform,
)
from tcdsl.ir.program import Access, Keep, Neutral, Statement, Tensor, map_statement
from tcdsl.polyhedra.linear import normalized
from tcdsl.rewrite.renaming import statement_with_tensors_renamed
from tcdsl.span import Span

__all__ = ["record_in_view", "refuse_bitwise", "store_elementwise", "store_item", "update"]

# Augmented assignments that say another thing of tensors than of Python's integers: the operator, and what it says.
_BITWISE: dict[type[ast.operator], tuple[str, str]] = {
    ast.RShift: (">>", "max"),
    ast.LShift: ("<<", "min"),
    ast.BitAnd: ("&", "and_"),
    ast.BitOr: ("|", "or_"),
}


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


def update(array: Any, made: Any) -> Any:
    """What ``array += value`` in ordinary Python gives, where ``made`` is the sum.

    Memory is stored into. Values do not change, so whoever else has this one would miss what NumPy does: it may not be
    read any more, nor may what it is a view of. Numbers are Python's, which other names do not follow either.
    """
    if getattr(array, "memory", False):
        store_item(array, ..., made)
        return array
    session = session_of("a store")
    where = session.location()
    if array.rank and where is not None:
        session.replacements.append((array, where))
        replace_value(array, where)
    return made


def refuse_bitwise(session: Session, name: str, kind: type[ast.operator], dtype: str) -> None:
    """A fault for ``n >>= 1`` and ``bits[t] |= b`` of a single cell of ``dtype``, if that is an integer: whoever writes
    it means Python's shift, and would get a maximum.
    """
    if kind not in _BITWISE or not is_integer(dtype):
        return
    sign, function = _BITWISE[kind]
    raise session.fault(
        DslSyntaxError,
        f"`{name} {sign}= ...` on a single integer is `{function}` for tensors, and bitwise for numbers of Python",
        f"write which one it is: `{name} = {name} {sign} ...` or `{name} = {function}({name}, ...)`",
    )


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
    require_in_range(part)
    tensor = part.tensor.held()
    value = _broadcast_to(session, part, operand, accumulate)
    variables = axes(session, part.rank)
    letters = list(map(IndexValue, variables))
    span = session.location()
    name = builder.fresh_name(tensor.label)
    kept = _whole_store(part, accumulate, value, span)
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
    fact, hint = (
        f"the value does not broadcast to {what}",
        "a target keeps its shape; only the value's axes of extent 1 stretch",
    )
    if part.tensor.memory and accumulate == "assign":
        hint += f"; in code `{part.label} = ...` stores into what the name holds: call another array by another name"
    (_, value), result = broadcast(session, parts, fact, hint)
    if result != part.extents:
        raise session.fault(ShapeError, fact, hint)
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
    if not session.knows(extent):
        fact = f"the arrays do not broadcast: extents {valued(extent)} and 1 meet on one axis of what is stored into"
        session.builder.require_equal(extent, integer(1), fact, session.location())
        return True
    return session.broadcast_relation(extent, integer(1)) == "equal"


def _whole_store(part: View, accumulate: str, value: Value, span: Span | None) -> TargetStore:
    state = Existing(part.tensor.held(), part.tensor.declared, part.tensor.sized[1])
    if accumulate in ("or", "and") and not is_boolean(part.element_type):
        # Every cell is written once, so a number becomes 0 or 1 in one assignment.
        combined = apply_primitive(f"{accumulate}_", [part.element, value], span)
        return store(state, "assign", False, cast_value(combined, part.element_type, span), span)
    return store(state, accumulate, False, value, span)


def record_in_view(view: View, name: str, record: Callable[[Existing], SymbolicTensor]) -> SymbolicTensor:
    """Record a statement on what ``name`` holds, a view: the new version of the tensor behind it."""
    builder = session_of("a tensor statement").builder
    require_in_range(view)
    with builder.nested() as recording:
        stand_in = builder.placeholder(name, view.element_type, view.extents)
        builder.written.stands_for(stand_in.name, view.tensor.name)
        stand_in.rows = view.rows
        view.stands_for(stand_in)
        try:
            made = record(Existing(stand_in))
        finally:
            view.stands_for(None)
        weak = builder.written.is_weak(made.name)
    statements, tensors = recording.statements, recording.tensors
    moved = _moved(statements, view, stand_in.name)
    if moved is None:
        held = view.materialize(name)
        names = {stand_in.name: held.name}
        builder.append([statement_with_tensors_renamed(statement, names) for statement in statements], tensors)
        same = SymbolicTensor(view.builder, made.name, made.element_type, view.extents, name)
        version = store_elementwise(view, "assign", same)
    else:
        version = _version(view)
        *others, last = moved
        last = replace(last, target=replace(last.target, tensor=version.name))
        builder.check_recurrence(last, view.tensor.name, others)
        declared = Tensor(version.name, version.element_type, version.extents, version.label, last.span)
        builder.append([*others, last], [*(each for each in tensors if each.name != made.name), declared])
        if weak:
            builder.written.by_numbers(last)
        version.rows = view.tensor.rows
    for rule in recording.rules:
        builder.add_rule(rule)
    return version


def _version(view: View) -> SymbolicTensor:
    tensor = view.tensor
    name = session_of("a tensor statement").builder.fresh_name(tensor.label)
    return SymbolicTensor(tensor.builder, name, tensor.element_type, tensor.extents, tensor.label)


def _moved(statements: Sequence[Statement], view: View, name: str) -> list[Statement] | None:
    # The statements with the cells that the view stands for in the place of those of `name`; None if that cannot be.
    last = statements[-1]
    if last.start != Keep(name) or last.unique or not all(map(is_affine_index, last.target.indices)):
        return None
    for statement in statements:
        if (statement.start == Keep(name) and statement is not last) or not _reads_plainly(statement, name):
            return None

    def cells(indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return tuple(normalized(cell_at(index, indices)) for index in view.indices)

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor != name:
            return node
        indices = cells(node.indices)
        return replace(node, tensor=view.tensor.name, indices=indices, boundaries=view.boundaries)

    moved = [map_statement(statement, lambda expr: transform(expr, rule)) for statement in statements]
    target = replace(moved[-1].target, indices=cells(moved[-1].target.indices))
    moved[-1] = replace(moved[-1], target=target, start=Keep(view.tensor.name))
    return moved


def _reads_plainly(statement: Statement, name: str) -> bool:
    plain = True

    def rule(expr: Expr) -> Expr:
        nonlocal plain
        plain = plain and all(set(read.boundaries) <= {Boundary.SKIP} for read in reads(expr) if read.tensor == name)
        return expr

    map_statement(statement, rule)
    return plain
