"""Several operations that count together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["all_or_nothing", "remember"]

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


def remember(undo: Sequence[Callable[[], object]]) -> None:
    """An operation has succeeded; ``undo`` takes it back, from the last to the first."""
    changes = _CHANGES.get()
    if changes is not None:
        changes.extend(undo)
