"""What names hold before a loop or a branch, so far as the staging of its body depends on it.

Bodies in bodies are staged again with each pass of those around them, most often from the same types. Where the state
is one that was there before, what staging has found then holds again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.staging.declarations import DeclaredInRound, DeclaredTarget, OfARound, Unwritten
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicNumber, SymbolicSize, SymbolicTensor, View
from tcdsl.ir.expressions import Expr, reads, size_names

__all__ = ["EntryState", "entry_state"]


@dataclass(frozen=True, slots=True)
class EntryState:
    """Equal ``key``s say that staging goes the same way; ``held`` are the values, in an order that equal states share.

    Keys say what some values are by their id: who keeps a key keeps ``held``.
    """

    key: Hashable
    held: tuple[Any, ...]


def entry_state(session: Session, names: Mapping[str, Any]) -> EntryState | None:
    """The state in which ``names`` hold these values; ``None`` where one of them is not known to stay what it is."""
    states = _States(session.builder)
    try:
        held = tuple((name, states.of(value)) for name, value in names.items())
    except _UnknownError:
        return None
    context = session.context
    around = context.oob, tuple(map(id, context.tracing_rules)), all(each.by_sizes for each in session.running)
    return EntryState((around, held), tuple(states.held))


class _UnknownError(Exception):
    pass


class _States:
    def __init__(self, builder: ProgramBuilder) -> None:
        self._builder = builder
        self.held: list[Any] = []
        self._numbers: dict[int, int] = {}

    def of(self, value: Any) -> Hashable:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return type(value), repr(value)
        # Names of one value, and of several equal ones, are not the same: stores and rounds tell them apart.
        number = self._numbers.setdefault(id(value), len(self.held))
        if number < len(self.held):
            return "again", number
        self.held.append(value)
        return type(value), self._of_new(value)

    def _of_new(self, value: Any) -> Hashable:
        match value:
            case DeclaredInRound():
                return self._of_tensor(value), self.of(value.target)
            case SymbolicTensor():
                return self._of_tensor(value)
            case View():
                return self.of(value.tensor), value.indices, value.extents, value.boundaries, value.rows
            case PendingArray():
                return value.element_type, value.extents, value.rows
            case SymbolicNumber():
                return value.weak_kind, value.parameters, value.expr.dtype, self._of_reads(value.expr)
            case SymbolicSize():
                return value.expr
            case OfARound():
                return value.name, value.numbers
            case Unwritten():
                return value.name
            case DeclaredTarget():
                return value.extents, value.dtype
            case set() | deque():
                raise _UnknownError
            case dict():
                return tuple((self.of(key), self.of(part)) for key, part in value.items())
            case tuple() | list():
                return tuple(map(self.of, value))
            case FunctionType():
                return id(value.__code__), self.of(value.__defaults__), self._of_cells(value)
        return id(value)

    def _of_tensor(self, tensor: SymbolicTensor) -> Hashable:
        builder, names = self._builder, frozenset().union(*map(size_names, tensor.extents))
        known = (
            builder.number(tensor.name),
            builder.writer(tensor.name) is None,
            frozenset(filter(builder.is_open, names)),
        )
        return tensor.element_type, tensor.extents, tensor.rows, tensor.memory, tensor.declared, known

    def _of_reads(self, expr: Expr) -> Hashable:
        # Cells have other names in each pass; which of them are sizes is known.
        found = tuple(self._builder.number(read.tensor) for read in reads(expr))
        return found or expr

    def _of_cells(self, function: FunctionType) -> Hashable:
        held: list[Hashable] = []
        for cell in function.__closure__ or ():
            try:
                held.append(self.of(cell.cell_contents))
            except ValueError:
                held.append(None)  # empty: the name has no value yet
        return tuple(held)
