"""What rounds carry from one to the next: names and memory, with their types."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tcdsl.frontend.arrays.chosen_cells import ChosenCells
from tcdsl.frontend.running_loops.nested_values import outline, rebuilt, values_in
from tcdsl.frontend.source.rewritten_functions import RECORDER
from tcdsl.frontend.staging.declarations import BegunInRound, DeclaredInRound, DeclaredTarget, Unwritten
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.graph_tensors import GraphShapes, GraphTensor
from tcdsl.frontend.symbols.known_integers import number_kind
from tcdsl.frontend.symbols.recordings import Recording
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.ir.accumulators import neutral_element
from tcdsl.ir.expressions import Expr, SizeValue
from tcdsl.ir.program import Keep, tensors_read
from tcdsl.ir.stages import needed_by
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span

__all__ = [
    "Bound",
    "Carried",
    "Kind",
    "all_passed",
    "begun_by",
    "bound_in_both",
    "bound_value",
    "declared_targets",
    "fits",
    "is_declared",
    "is_read",
    "joined",
    "kind_of",
    "label_of",
    "maybe_unwritten",
    "shown",
    "unheld",
    "unwritten_targets",
]

_WEAK = {"bool": "bool", "int": "int64", "float": "float64"}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a carried name holds: its type, for numbers of Python how weak it is, its extents."""

    dtype: str
    weak: str | None
    extents: tuple[Expr, ...] = ()
    rows: RowRanks = field(default_factory=RowRanks)
    memory: bool = False

    def __str__(self) -> str:
        from tcdsl.ir.text.printer import format_expr

        if self.weak is not None:
            return f"a number ({self.weak})"
        return f"{self.dtype}[{', '.join(map(format_expr, self.extents))}]"


@dataclass(slots=True)
class Carried:
    """A name, or memory, that a round changes: ``before`` the loop, its kind, and what stands for it in a round.

    ``start`` fills what was only declared before the loop. ``sized`` is the function, and its statement, that has
    inferred the extents; ``needed`` is what all rounds need open sizes to be. ``weak`` says that
    only whole numbers of Python have given what rounds leave its type.
    """

    label: str
    before: Any
    kind: Kind
    start: bool | int | float | None = None
    sized: tuple[object, Span | None] = (None, None)
    needed: Mapping[str, Expr] = field(default_factory=dict)
    placeholder: str = ""
    weak: bool = False


def all_passed() -> Carried:
    """Whether the user's checks in a body have passed, which they have before it."""
    return Carried("checked", True, Kind("bool", None))


def kind_of(session: Session, value: Any) -> Kind | None:
    """The kind of a value of the program; ``None`` for anything else."""
    match value:
        case ChosenCells():
            return None  # it has no shape
        case SymbolicArray():
            memory = isinstance(value, SymbolicTensor) and value.memory
            return Kind(value.element_type, None, value.extents, value.rows, memory)
        case np.ndarray():
            return kind_of(session, session.capture(value))
        case GraphTensor() if session.shapes is None and session.context.graph is not None:
            return kind_of(session, session.capture(value))
        case np.generic():  # some are Python numbers too
            return Kind(str(value.dtype), None)
        case SymbolicNumber(weak_kind=weak):
            return Kind(_WEAK[weak], weak)
        case SymbolicSize():
            return Kind("int64", "int")
        case bool() | int() | float():
            return Kind(_WEAK[number_kind(value)], number_kind(value))
    return None


def joined(before: Kind, after: Kind) -> Kind:
    """The type of a number of Python that becomes ``after`` in a round."""
    if before.weak is None or after.weak is None:
        return after
    weak = max(before.weak, after.weak, key=list(_WEAK).index)
    return Kind(_WEAK[weak], weak)


@dataclass(frozen=True, slots=True)
class Bound:
    """What an arm binds a name to: the value, and the kinds of those in it that are the program's."""

    value: Any
    kinds: Mapping[str, Kind]


def bound_value(session: Session, name: str, value: Any) -> Bound:
    """What a name is bound to that no name held before."""
    found = {key: kind_of(session, part) for key, part in values_in(name, value)}
    return Bound(value, {key: replace(kind, memory=False) for key, kind in found.items() if kind is not None})


def bound_in_both(name: str, arms: Sequence[Bound], shapes: GraphShapes | None, span: Span | None) -> Bound | None:
    """What a name is bound to by both arms of a branch; ``None`` if these bind it to what cannot be one thing.

    Where ``shapes`` are asked for, tensors of a graph have one shape in both.
    """
    one, other = arms
    if outline(one.value) != outline(other.value):
        return None
    values: dict[str, Any] = {}
    kinds: dict[str, Kind] = {}
    for (key, part), (_, another) in zip(values_in(name, one.value), values_in(name, other.value), strict=True):
        values[key] = part
        if shapes is not None and shapes.same(part, another, key, span):
            values[key] = part if isinstance(part, GraphTensor) else another
        elif key in one.kinds and key in other.kinds:
            # Where neither is a number of Python's the second arm is to have the kind of the first one.
            first, second = one.kinds[key], other.kinds[key]
            kinds[key] = joined(first, second) if first.weak else first
        elif key in one.kinds or key in other.kinds or part is not another:
            return None
    return Bound(rebuilt(name, one.value, lambda key, _: values[key]), kinds)


def fits(kind: Kind, found: Kind) -> bool:
    """Whether what is carried as ``kind`` can hold what has been ``found``, their extents apart."""
    number = found.weak is not None and not kind.extents and (kind.weak is None or joined(kind, found) == kind)
    if not number and (kind.dtype != found.dtype or (kind.weak is None) != (found.weak is None)):
        return False
    return len(kind.extents) == len(found.extents) and kind.rows == found.rows


def label_of(name: str) -> str:
    """A name for tensors: what a function returns in several arms has one of our own, and `state[0]` is none."""
    head, *keys = re.split(r"\W+", name.removeprefix(RECORDER))
    return "_".join((head, *filter(None, keys)))


def begun_by(recording: Recording, tensor: Any) -> tuple[bool | int | float, tuple[object, Span | None]]:
    """What a declared tensor holds before its first statement, which the recording has; what has sized it."""
    if not isinstance(tensor, SymbolicTensor):
        return 0, (None, None)
    return _start_of(recording, tensor), tensor.sized


def _start_of(recording: Recording, tensor: SymbolicTensor) -> bool | int | float:
    writers = {statement.target.tensor: statement for statement in recording.statements}
    # What a loop in this round has written began as what that loop was given.
    given = {
        result: first
        for repeat in recording.repeats
        for result, (*_, first) in zip(repeat.results, repeat.carried, strict=True)
    }
    name = tensor.name
    while name in given:
        name = given[name]
    if name in recording.starts:
        return recording.starts[name]
    statement = writers.get(name)
    while statement is not None and isinstance(statement.start, Keep):
        statement = writers.get(statement.start.tensor)
    return 0 if statement is None else neutral_element(statement.accumulate, tensor.element_type)


def unheld(value: Any) -> Any:
    """What a name holds before a loop in a round: what that round has not written yet is as it was declared."""
    return value.target if isinstance(value, DeclaredInRound) else value


def is_declared(value: Any) -> bool:
    """Whether the function has stated the extents of a tensor."""
    if isinstance(value, DeclaredTarget):
        return value.extents is not None
    return isinstance(value, SymbolicTensor) and value.declared


def maybe_unwritten(before: Any, value: Any) -> Any:
    """``value`` in a round, or an arm, of a name that held ``before``; a target that was only declared stays begun."""
    before = unheld(before)
    declared = isinstance(before, BegunInRound) or (isinstance(before, DeclaredTarget) and before.extents is not None)
    return BegunInRound(value) if declared and isinstance(value, SymbolicTensor) and not value.memory else value


def is_read(recording: Recording, name: str) -> bool:
    """Whether a statement or a loop of the recording reads the tensor ``name``."""
    return any(name in tensors_read(each) for each in recording.statements) or any(
        name in needed_by(each) for each in recording.repeats
    )


def shown(extent: Expr) -> str:
    """An extent in a message, in which a size says its own value."""
    from tcdsl.ir.text.printer import format_expr

    return f"{{{extent.name}}}" if isinstance(extent, SizeValue) else format_expr(extent)


def unwritten_targets(names: Iterable[str], held: Mapping[str, Any]) -> frozenset[str]:
    """Those of ``names`` that are targets of which nothing has been written or declared."""
    return frozenset(name for name in names if isinstance(held.get(name), Unwritten))


def declared_targets(names: Iterable[str], held: Mapping[str, Any]) -> list[DeclaredTarget]:
    """The targets among ``names`` that are declared, and not written yet."""
    found = (unheld(held.get(name)) for name in names)
    return [each for each in found if isinstance(each, DeclaredTarget) and each.extents is not None]
