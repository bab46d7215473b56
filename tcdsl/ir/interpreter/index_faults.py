"""What is said of an index read from data that is out of range: by compiled code and by the interpreter alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tcdsl.errors import RAISED, DataIndexError, Diagnostic, ShapeError, TcdslError, raised_by_user
from tcdsl.ir.program import BRANCH
from tcdsl.span import COMPREHENSIONS, Span

__all__ = ["POSITIONS", "at_positions", "in_round", "index_fault"]

POSITIONS = {"argmax()": "argmax", "argmin()": "argmin"}
"""Labels of tensors of positions, and the reductions that index them: out of range only if there was nothing to reduce.

No tensor of a user has such a label.
"""


def index_fault(
    label: str, axis: int, index: int, extent: int, span: Span | None, notes: tuple[str, ...]
) -> Diagnostic:
    """The fault of ``index`` on an axis of the tensor that users call ``label``. ``notes`` say at which point.

    A check of the user's is such an index too.
    """
    if label.startswith(RAISED):
        return raised_by_user(label, span, notes)
    if label in POSITIONS:
        fact = f"`{POSITIONS[label]}` over an empty range: no condition of it holds"
        hint = "an empty range has no largest or smallest element: write `... if any(...) else` a position"
        return Diagnostic(ShapeError, fact, span, notes, hint)
    fact = f"index {index} is out of range for axis {axis} of `{label}`, which has extent {extent}"
    hint = 'write get(..., default) to read a default there, or decorate with oob="skip" or oob="clamp"'
    if span is not None and span.filename.startswith(COMPREHENSIONS):
        hint = "choose what is read there: `0 <= p(i) && p(i) < N ? A(p(i)) : 0.0`"
    return Diagnostic(DataIndexError, fact, span, notes, hint)


def at_positions(positions: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """The note that says at which point, and in which rounds of loops, something failed."""
    place = ", ".join(f"{name} = {position}" for name, position in positions if name != BRANCH)
    return (f"at {place}",) if place else ()


def in_round(error: TcdslError, name: str, number: int) -> TcdslError:
    """``error``, of something in a round of a loop."""
    round_ = "".join(at_positions([(name, number)]))
    if not round_ or not error.diagnostics:
        return error
    kind, (first, *others) = type(error), error.diagnostics
    inner = [note for note in first.notes if note.startswith("at ")]
    place = f"{round_}, {inner[0].removeprefix('at ')}" if inner else round_
    notes = (place, *(note for note in first.notes if note not in inner[:1]))
    found = replace(first, notes=notes)
    return kind(found.render(), (found, *others))
