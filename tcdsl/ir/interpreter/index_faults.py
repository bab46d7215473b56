"""What is said of an index read from data that is out of range: by compiled code and by the interpreter alike."""

from __future__ import annotations

from tcdsl.errors import DataIndexError, Diagnostic, ShapeError
from tcdsl.span import COMPREHENSIONS, Span

__all__ = ["POSITIONS", "index_fault"]

POSITIONS = {"argmax()": "argmax", "argmin()": "argmin"}
"""Labels of tensors of positions, and the reductions that index them: out of range only if there was nothing to reduce.

No tensor of a user has such a label.
"""


def index_fault(
    label: str, axis: int, index: int, extent: int, span: Span | None, notes: tuple[str, ...]
) -> Diagnostic:
    """The fault of ``index`` on an axis of the tensor that users call ``label``. ``notes`` say at which point."""
    if label in POSITIONS:
        fact = f"`{POSITIONS[label]}` over an empty range: no condition of it holds"
        hint = "an empty range has no largest or smallest element: write `... if any(...) else` a position"
        return Diagnostic(ShapeError, fact, span, notes, hint)
    fact = f"index {index} is out of range for axis {axis} of `{label}`, which has extent {extent}"
    hint = 'write get(..., default) to read a default there, or decorate with oob="skip" or oob="clamp"'
    if span is not None and span.filename.startswith(COMPREHENSIONS):
        hint = "choose what is read there: `0 <= p(i) && p(i) < N ? A(p(i)) : 0.0`"
    return Diagnostic(DataIndexError, fact, span, notes, hint)
