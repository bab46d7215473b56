"""What is said of an index read from data that is out of range: by compiled code and by the interpreter alike."""

from __future__ import annotations

import re
from dataclasses import replace

from tcdsl.errors import RAISED, DataIndexError, Diagnostic, ShapeError, TcdslError, raised_by_user
from tcdsl.ir.program import BRANCH
from tcdsl.ir.sizes.faulty_rounds import at_positions, rounds_of_segment
from tcdsl.span import COMPREHENSIONS, SKRIPTND, Span

__all__ = ["POSITIONS", "in_round", "index_fault"]

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
    name = _users_name(label, span)
    if name != label and label.startswith("d_"):
        notes = ()  # on the way back rounds are counted from the last
    fact = f"index {index} is out of range for axis {axis} of `{name}`, which has extent {extent}"
    hint = (
        "write clamp(...) around the index for the nearest cell, or get(..., default) to read a default there; "
        'or decorate with oob="skip" or oob="clamp"'
    )
    if extent == 0:
        hint = (
            "an axis without cells has none to take: write a condition on its extent, which leaves the statement out, "
            "or get(..., default) to read a default"
        )
    if span is not None and span.filename.startswith(COMPREHENSIONS):
        hint = "choose what is read there: `0 <= p(i) && p(i) < N ? A(p(i)) : 0.0`"
    elif span is not None and (span.filename.startswith(SKRIPTND) or span.filename.endswith(".sknd")):
        hint = "an index that is data is guarded, `x[|i|,]`, or compared: `i >= 0 && i < n ? x[i,] : 0.0`"
    return Diagnostic(DataIndexError, fact, span, notes, hint)


def _users_name(label: str, span: Span | None) -> str:
    # A derivative says its own name, `d_x_2`, where the user has written `x`.
    names = [label, re.sub(r"_\d+$", "", label)]
    while names[-1].startswith("d_"):
        head = names[-1].removeprefix("d_")
        names += [head, re.sub(r"_\d+$", "", head)]
    written = set(re.findall(r"\w+", "" if span is None else span.text))
    return next((name for name in names if name in written), label)


def in_round(error: TcdslError, name: str, number: int) -> TcdslError:
    """``error``, of something in a round of a loop."""
    if name == BRANCH or not error.diagnostics:
        return error
    kind, (first, *others) = type(error), error.diagnostics
    inner = [note for note in first.notes if note.startswith("at ")]
    length = rounds_of_segment(name)
    if length and not inner:
        return error
    if length:
        # What is first said inside is the round of the segment.
        ahead = length * number
        place = re.sub(r"(= |round )(\d+)", lambda found: f"{found[1]}{int(found[2]) + ahead}", inner[0], count=1)
    else:
        place = ", ".join((*at_positions([(name, number)]), *(note.removeprefix("at ") for note in inner[:1])))
    notes = (place, *(note for note in first.notes if note not in inner[:1]))
    found = replace(first, notes=notes)
    return kind(found.render(), (found, *others))
