"""What staging a body has found, for when it is staged again from the same state in another pass around it.

A body is staged until what it carries settles. Without this each body in a body would begin from nothing in each pass
of the one around it: `if`s nested in `else`s would be staged three times as often by each level.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tcdsl.frontend.running_loops.carried import Bound, Carried, Kind, bound_in_both
from tcdsl.frontend.running_loops.carried_faults import changed_value
from tcdsl.frontend.running_loops.loop_statement import LoopStatement
from tcdsl.frontend.running_loops.nested_values import NamesBefore, values_in
from tcdsl.frontend.source.nested_blocks import INNER
from tcdsl.frontend.source.rewritten_functions import ARM, CHOICE, is_result
from tcdsl.frontend.staging.declarations import Unwritten
from tcdsl.frontend.staging.entry_states import EntryState, entry_state
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.recordings import Recording
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.expressions import Expr, size_names
from tcdsl.span import Span

__all__ = [
    "Settled",
    "SettledBody",
    "bounds_of_arms",
    "entry_of",
    "expected",
    "known_bounds",
    "remember_bounds",
]


@dataclass(frozen=True, slots=True)
class Settled:
    """What a body was found to carry: names, with all of `Carried` that a pass finds, and the numbers of the memory
    among what was held.

    ``changed`` are those names, and the memory, that the last pass has changed; ``checks`` says that users' checks are
    carried too. ``held`` is kept alive.
    """

    names: Mapping[str, tuple[Kind, bool | int | float | None, tuple[object, Span | None], Mapping[str, Expr]]]
    memory: tuple[int, ...]
    checks: bool
    changed: frozenset[str | int]
    held: tuple[Any, ...]


class SettledBody:
    """What ``session`` knows of the body of ``statement`` when it begins in the state ``entry``; nothing without one.

    ``nested`` are the names that hold nested values, to which a pass may add some.
    """

    def __init__(
        self, session: Session, entry: EntryState | None, statement: LoopStatement, nested: Mapping[str, Any]
    ) -> None:
        self._session = session
        self._statement = statement
        self._entry = entry
        self._held = () if entry is None else entry.held
        self._nested, self._outer = nested, frozenset(nested)

    def found(self, number: Any) -> Settled | None:
        """What was found before of the arm ``number``, or of a loop's body, if all sizes that it mentions are there."""
        if self._entry is None:
            return None
        found: Settled | None = self._session.settled.get((self._statement, number, self._entry.key))
        known = found is not None and _are_known(self._session, (kind for kind, *_ in found.names.values()))
        return found if known else None

    def memory(self, known: Settled | None) -> list[Any]:
        """The memory that is carried."""
        return [] if known is None else [self._held[number] for number in known.memory]

    def changes(
        self, recording: Recording, names: Mapping[str, Carried], after: Mapping[str, Any], before: Mapping[str, Any]
    ) -> frozenset[str | int]:
        """Of what is carried, what a pass has changed: ``names``, and memory by its number."""
        bound = {name: value for name in names if not isinstance(value := after.get(name), Unwritten)}
        changed = {name for name, value in bound.items() if value is not before.get(name)}
        stored = {k for k, value in enumerate(self._held) if id(value) in recording.stored}
        return frozenset(changed | stored)

    def remember(
        self,
        number: Any,
        names: Mapping[str, Carried],
        memory: Mapping[int, Carried],
        checks: bool,
        changed: frozenset[str | int],
    ) -> None:
        """Remember what the last pass was staged with, if it can be told in terms of the state."""
        numbers = tuple(k for k, value in enumerate(self._held) if id(value) in memory)
        if self._entry is None or len(numbers) < len(memory) or self._outer != self._nested.keys():
            return
        if _are_known(self._session, (each.kind for each in names.values())):
            kinds = {name: (each.kind, each.start, each.sized, each.needed) for name, each in names.items()}
            found = Settled(kinds, numbers, checks, changed, self._held)
            self._session.settled[self._statement, number, self._entry.key] = found


def expected(
    session: Session, statement: LoopStatement, before: NamesBefore, blank: Mapping[str, Kind]
) -> Settled | None:
    """What most bodies carry: the tensors that they bind, as others of the same type. Then one pass is enough."""
    if session.shapes is not None:
        return None
    kinds = {name: kind for name, kind in blank.items() if kind.weak is None}
    for name in (each for each in statement.names if each in statement.stores):
        held = before[name]
        plain = type(held) is SymbolicTensor and not held.memory
        if plain and session.builder.number(held.name) is None and not session.builder.written.is_weak(held.name):
            kinds[name] = Kind(held.element_type, None, held.extents, held.rows)
    names: dict[str, Any] = {
        name: (kind, 0 if name in blank else None, (None, None), {}) for name, kind in kinds.items()
    }
    return Settled(names, (), False, frozenset(kinds), ()) if kinds else None


def entry_of(session: Session, names: Mapping[str, Any]) -> EntryState | None:
    """The state in which ``names`` hold these values; which arms were staged before says nothing of those to come."""
    return entry_state(session, {name: value for name, value in names.items() if not name.startswith((ARM, INNER))})


def bounds_of_arms(session: Session, one: Any, other: Any) -> dict[str, Bound]:
    """What has a value after a branch, though it had none before, of what each arm binds."""
    found: dict[str, Bound] = {}
    for name in dict.fromkeys((*one.bound, *other.bound)):
        arms = [each.bound[name] for each in (one, other) if name in each.bound and not each.raised]
        both = bound_in_both(name, arms, session.shapes, session.location()) if len(arms) == 2 else None
        together = is_result(name) or name == CHOICE
        if both is None and len(arms) == 2 and together:
            raise changed_value(session, name, arms[0].value, arms[1].value, True, session.location())
        if both is not None:
            found[name] = both
        elif len(arms) == 1 and (is_result(name) or one.raised or other.raised):
            found[name] = arms[0]
    return found


def known_bounds(session: Session, statement: LoopStatement, entry: EntryState | None) -> dict[str, Bound] | None:
    """What the arms of a branch were found to bind in this state before; ``None`` if that has to be found."""
    found = None if entry is None else session.settled.get((statement, entry.key))
    if found is None or not _are_known(session, (kind for each in found[0].values() for kind in each.kinds.values())):
        return None
    bounds: dict[str, Bound] = found[0]
    return bounds


def remember_bounds(
    session: Session, statement: LoopStatement, entry: EntryState | None, found: dict[str, Bound]
) -> None:
    """Remember what the arms of a branch bind, if all of it is the program's: other values belong to this pass."""
    own = all(each.kinds.keys() == dict(values_in(name, each.value)).keys() for name, each in found.items())
    if entry is not None and own and not session.faults:
        session.settled[statement, entry.key] = found, entry.held


def _are_known(session: Session, kinds: Iterable[Kind]) -> bool:
    """Whether the extents are of sizes that are known here."""
    known = set(session.builder.size_names())
    return all(size_names(extent) <= known for kind in kinds for extent in kind.extents)
