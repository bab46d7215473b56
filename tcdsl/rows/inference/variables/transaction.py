"""Changes that are made together or not at all, and the agenda of constraints to look at again."""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from tcdsl.rows.inference.variables.origin import Contradiction, Origin

__all__ = [
    "ShapeConstraint",
    "ShapeVariable",
    "Transaction",
    "Watcher",
    "all_or_nothing",
    "constraints_of",
    "keeping",
]

_CHANGES: ContextVar[list[Callable[[], object]] | None] = ContextVar("tcdsl_changes_of_shapes", default=None)


@contextmanager
def all_or_nothing() -> Iterator[None]:
    """``with all_or_nothing(): ...``: if the block raises, what its operations have said of shapes is taken back."""
    outer = _CHANGES.get()
    changes: list[Callable[[], object]] = []
    token = _CHANGES.set(changes)
    try:
        yield
    except BaseException:
        while changes:
            changes.pop()()
        raise
    finally:
        _CHANGES.reset(token)
    if outer is not None:
        outer.extend(changes)


_KEEPING: ContextVar[bool] = ContextVar("tcdsl_keeping_constraints", default=False)


@contextmanager
def keeping() -> Iterator[None]:
    """``with keeping(): pointwise([w, y], origin)``: what is stated of parameters lasts as long as they do.

    Elsewhere a parameter does not keep alive the results that it is used for, so what an expression says of it, and
    has no consequences yet, is gone with its result. That is right for results that were dropped, and wrong
    for an expression that is written for its constraints alone.
    """
    token = _KEEPING.set(True)
    try:
        yield
    finally:
        _KEEPING.reset(token)


class ShapeVariable:
    """What inference finds out: an axis, or axes.

    ``watchers`` are the constraints that wait for it, ``owners`` the parameters (`RowOwner`) that it is part of.
    """

    __slots__ = ("__weakref__", "owners", "watchers")

    def __init__(self, owners: tuple[Any, ...]) -> None:
        self.owners = owners
        self.watchers: list[Watcher] = []


class ShapeConstraint(ABC):
    """A relation between variables, which `narrow` draws conclusions from.

    It is looked at again whenever one of the variables that it watches changes. What it *determines*, a result, holds
    it strongly, and what it determines that from weakly: a parameter does not keep alive all results that it was ever
    used for. In turn it holds what it determines weakly, so that a result that is dropped is gone at once, with all
    that it said. Where constraints are ``kept``, all is held strongly.
    """

    __slots__ = ("__weakref__", "done", "kept", "origin", "watched")

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.done = False
        self.kept = _KEEPING.get()
        self.watched: dict[weakref.ref[ShapeVariable], bool] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether there is something that it may still say: not if what it determines is gone."""
        return not self.done

    @abstractmethod
    def narrow(self, transaction: Transaction) -> None:
        """Draw all conclusions; `Contradiction` if there is no solution."""

    @abstractmethod
    def variables(self) -> tuple[Iterable[ShapeVariable], Iterable[ShapeVariable]]:
        """The open variables that it determines, and those that it determines them from."""


Watcher = ShapeConstraint | weakref.ref[ShapeConstraint]


def constraints_of(variable: ShapeVariable) -> Iterator[ShapeConstraint]:
    """The constraints that wait for ``variable``."""
    for entry in variable.watchers:
        constraint = entry() if isinstance(entry, weakref.ref) else entry
        if constraint is not None and constraint.is_waiting:
            yield constraint


class Transaction:
    """``with Transaction(origin, shapes) as transaction:`` add constraints; they propagate when the block ends.

    A contradiction becomes a `ShapeError` at ``origin``, after every change was undone. ``shapes`` describes the
    operands for the message.
    """

    def __init__(self, origin: Origin, shapes: Callable[[], Sequence[str]] = lambda: ()) -> None:
        self.origin = origin
        self._shapes = shapes
        self._trail: list[Callable[[], object]] = []
        self._agenda: deque[ShapeConstraint] = deque()
        self._scheduled: set[ShapeConstraint] = set()
        self._cause: Origin | None = None

    # -- begin and end

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            try:
                self.propagate()
            except Contradiction as found:
                error = found
            except BaseException:
                self.undo_to(0)
                raise
        if error is None:
            changes = _CHANGES.get()
            if changes is not None:
                changes.extend(self._trail)
            return
        cause = self._cause
        self.undo_to(0)
        if isinstance(error, Contradiction):
            raise error.diagnostic(self.origin, cause, self._shapes()).error() from None

    def mark(self) -> int:
        """A point to go back to."""
        return len(self._trail)

    def undo_to(self, mark: int) -> None:
        """Undo all changes since ``mark``."""
        while len(self._trail) > mark:
            self._trail.pop()()
        self._agenda.clear()
        self._scheduled.clear()

    def attempt(self, change: Callable[[], None]) -> Contradiction | None:
        """Make ``change`` and draw all conclusions; if that is contradictory undo it, and say what was."""
        mark = self.mark()
        try:
            change()
            self.propagate()
        except Contradiction as found:
            self.undo_to(mark)
            self._cause = None
            return found
        return None

    # -- changes

    def set(self, changed: object, attribute: str, value: Any) -> None:
        """Set an attribute, so that it can be undone."""
        old = getattr(changed, attribute)
        self._trail.append(lambda: setattr(changed, attribute, old))
        setattr(changed, attribute, value)

    def watch(self, constraint: ShapeConstraint) -> None:
        """Let the constraint's variables wake it from now on."""
        determined, others = constraint.variables()
        found = dict.fromkeys(others, constraint.kept) | dict.fromkeys(determined, True)
        if not any(found.values()):
            # What it determines is known, so that it says something of the others alone, for as long as they live.
            found = dict.fromkeys(found, True)
        old = constraint.watched
        watched = {weakref.ref(variable): strong for variable, strong in found.items()}
        new = [variable for variable in watched if variable not in old or watched[variable] > old[variable]]
        if not new:
            return
        self.set(constraint, "watched", watched)
        for variable, (reference, strong) in zip(found, watched.items(), strict=True):
            if reference in new:
                self._append(variable, constraint if strong else weakref.ref(constraint))

    def _append(self, variable: ShapeVariable, watcher: Watcher) -> None:
        count = len(variable.watchers)
        if count >= 16 and not count & (count - 1):
            # At powers of two, so that it costs nothing in the mean: leave out those that are gone.
            alive = [entry for entry in variable.watchers if _alive(entry)]
            self.set(variable, "watchers", alive)
        watchers = variable.watchers
        self._trail.append(watchers.pop)
        watchers.append(watcher)

    # -- propagation

    def add(self, constraint: ShapeConstraint) -> None:
        """State a constraint; it is looked at when the agenda gets to it."""
        if constraint not in self._scheduled:
            self._scheduled.add(constraint)
            self._agenda.append(constraint)

    def wake(self, variable: ShapeVariable) -> None:
        """Look again at all constraints that wait for ``variable``."""
        for constraint in constraints_of(variable):
            self.add(constraint)

    def retire(self, variable: ShapeVariable) -> None:
        """Wake all constraints for the last time: nothing more will be known of ``variable``."""
        self.wake(variable)
        if variable.watchers:
            self.set(variable, "watchers", [])

    def propagate(self) -> None:
        """Draw conclusions until there are no more."""
        while self._agenda:
            constraint = self._agenda.popleft()
            self._scheduled.discard(constraint)
            if not constraint.is_waiting:
                continue
            self._cause = constraint.origin
            if not constraint.watched:
                # From now on, so that it is looked at again after changes that it makes itself.
                self.watch(constraint)
            constraint.narrow(self)
            if not constraint.done:
                self.watch(constraint)
        self._cause = None

    def finish(self, constraint: ShapeConstraint) -> None:
        """The constraint has said all that it says."""
        self.set(constraint, "done", True)


def _alive(entry: Watcher) -> bool:
    constraint = entry() if isinstance(entry, weakref.ref) else entry
    return constraint is not None and constraint.is_waiting
