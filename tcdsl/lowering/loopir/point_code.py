"""What happens at one point of a statement: condition, target cell, value, in this order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.boundaries import moved_index
from tcdsl.ir.build import apply, cast, in_range, integer, neutral_constant, plain_read, truth
from tcdsl.ir.dtypes import INTEGER, compute_dtype, is_floating
from tcdsl.ir.expressions import Apply, Boundary, Expr, Local, is_affine_index, walk
from tcdsl.ir.program import Fill, Keep, Neutral, Statement, Tensor, Unset
from tcdsl.lowering.loopir.loops import Accumulate, Check, Define, Node, Store, Update
from tcdsl.lowering.loopir.scalars import Scalars

__all__ = [
    "UNIQUE_AXIS",
    "Action",
    "TargetCell",
    "combined",
    "first",
    "in_register",
    "point",
    "start_value",
    "store",
    "sum_up",
    "update",
]

Action = Callable[[Scalars, tuple[Expr, ...], Expr, list[Node]], None]
"""Stores or accumulates: takes the point's scalar code, the cell's indices, the value, and where to put the nodes."""

UNIQUE_AXIS = -1
"""The ``axis`` of a `Check` that no cell is written twice; its ``value`` is the cell's last index."""


@dataclass(frozen=True, slots=True)
class TargetCell:
    """Where a statement writes: its tensor, the memory, and the memory of the marks if cells must be unique."""

    tensor: Tensor
    buffer: str
    marks: str | None = None


def start_value(
    statement: Statement, place: TargetCell, cell: tuple[Expr, ...], scalars: Scalars, out: list[Node]
) -> Expr:
    """What ``cell`` holds before the first point, in the compute type."""
    match statement.start:
        case Keep(tensor=earlier):
            return plain_read(scalars.buffers[earlier], cell, compute_dtype(place.tensor.dtype))
        case Fill(value=value):
            return scalars.value(value, out)
        case Neutral() | Unset():
            dtype = place.tensor.dtype
            return neutral_constant(statement.accumulate, dtype)


def combined(statement: Statement, old: Expr, value: Expr) -> Expr:
    """The new cell from the old one, which is not computed where it does not matter."""
    accumulate = statement.accumulate
    same = accumulate in ("multiply", "max", "min", "or", "and")
    if accumulate == "add":
        same = not is_floating(value.dtype)  # 0.0 + -0.0 is 0.0
    if accumulate == "assign" or (isinstance(statement.start, Neutral) and same):
        return value
    return apply(ACCUMULATORS[accumulate].primitive, old, value)


def first(statement: Statement, place: TargetCell) -> Action:
    """The only write of a cell, its start value included.

    A scalar that goes on from itself is updated: where rounds do so, its terms may come in any order.
    """
    unordered = statement.accumulate != "assign" and not ACCUMULATORS[statement.accumulate].ordered

    def act(scalars: Scalars, cell: tuple[Expr, ...], value: Expr, out: list[Node]) -> None:
        match statement.start:
            case Keep(tensor=earlier) if unordered and not cell and scalars.buffers[earlier] == place.buffer:
                out.append(Update(place.buffer, cell, statement.accumulate, value))
                return
        start = start_value(statement, place, cell, scalars, out)
        out.append(Store(place.buffer, cell, combined(statement, start, value)))

    return act


def store(place: TargetCell) -> Action:
    """Plain stores."""

    def act(_scalars: Scalars, cell: tuple[Expr, ...], value: Expr, out: list[Node]) -> None:
        out.append(Store(place.buffer, cell, value))

    return act


def update(statement: Statement, place: TargetCell) -> Action:
    """Accumulation in memory, by a statement that may write a cell several times."""
    if statement.accumulate == "assign":
        return store(place)

    def act(_scalars: Scalars, cell: tuple[Expr, ...], value: Expr, out: list[Node]) -> None:
        out.append(Update(place.buffer, cell, statement.accumulate, value))

    return act


def sum_up(statement: Statement, name: str) -> Action:
    """Accumulation in the scalar ``name``."""

    def act(_scalars: Scalars, _cell: tuple[Expr, ...], value: Expr, out: list[Node]) -> None:
        if statement.accumulate == "assign":
            out.append(Define(name, value))
        else:
            out.append(Accumulate(name, statement.accumulate, value))

    return act


def in_register(node: Store | Update, local: Local, stored: str) -> Node:
    """What ``node`` does to a cell of type ``stored``, done to ``local``, which holds what memory would hold.

    Terms may then come in any order, as those of all scalars that accumulate; so may those of which the largest or the
    smallest is kept, however that is written.
    """
    match node:
        case Update(accumulate=accumulate, value=value) if stored == local.dtype:
            return Accumulate(local.name, accumulate, cast(value, local.dtype))
        case Update(accumulate=accumulate, value=value):
            made = apply(ACCUMULATORS[accumulate].primitive, local, cast(value, local.dtype))
        case Store(value=Apply(primitive="max" | "min" as kind, arguments=(first, second))) if is_floating(stored):
            term = second if first == local else first
            if local in (first, second) and stored == local.dtype and local not in set(walk(term)):
                return Accumulate(local.name, kind, term)
            made = node.value
        case _:
            made = node.value
    return Define(local.name, cast(cast(made, stored), local.dtype))


def point(statement: Statement, place: TargetCell, scalars: Scalars, act: Action) -> list[Node]:
    """The nodes of one point of ``statement``, which end with what ``act`` adds."""
    out: list[Node] = []

    def write(inner: Scalars, nodes: list[Node]) -> None:
        _write(statement, place, inner, act, nodes)

    if statement.condition is None:
        write(scalars, out)
    else:
        scalars.branch(scalars.value(statement.condition, out), out, write)
    return out


def _write(statement: Statement, place: TargetCell, scalars: Scalars, act: Action, out: list[Node]) -> None:
    cell: list[Expr] = []
    wanted: Expr = truth(True)
    for axis, index in enumerate(statement.target.indices):
        position = scalars.position(index, out)
        if not is_affine_index(index):
            position, inside = _data_position(statement, place.tensor, axis, position, scalars, out)
            wanted = apply("and_", wanted, inside)
        cell.append(position)

    def finish(inner: Scalars, nodes: list[Node]) -> None:
        _mark(statement, place, cell, nodes)
        act(inner, tuple(cell), inner.value(statement.value, nodes), nodes)

    if wanted == truth(True):
        finish(scalars, out)
    else:
        scalars.branch(wanted, out, finish)


def _data_position(
    statement: Statement, tensor: Tensor, axis: int, position: Expr, scalars: Scalars, out: list[Node]
) -> tuple[Expr, Expr]:
    # The position of a data index of the target, and the condition under which the point takes part.
    extent = tensor.shape[axis]
    span = statement.target.span or statement.span
    if statement.oob == "skip":
        position = scalars.kept(position, "p", out)
        return position, in_range(position, extent)
    if statement.oob == "clamp":
        position = scalars.kept(position, "p", out)
        some = apply("gt", extent, integer(0))
        if some != truth(True):
            out.append(Check(some, tensor.label or tensor.name, axis, position, extent, span))
        moved = moved_index(cast(position, INTEGER), extent, Boundary.CLAMP)
        return scalars.kept(moved, "p", out), truth(True)
    return scalars.checked(position, tensor, axis, span, out), truth(True)


def _mark(statement: Statement, place: TargetCell, cell: Sequence[Expr], out: list[Node]) -> None:
    if place.marks is None:
        return
    tensor, indices = place.tensor, tuple(cell)
    mark = plain_read(place.marks, indices, "bool")
    value = indices[-1] if indices else integer(0)
    extent = tensor.shape[-1] if tensor.shape else integer(1)
    span = statement.target.span or statement.span
    out.append(Check(apply("not_", mark), tensor.label or tensor.name, UNIQUE_AXIS, value, extent, span))
    out.append(Store(place.marks, indices, truth(True)))
