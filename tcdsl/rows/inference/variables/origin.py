"""Where a constraint comes from, where a size comes from, and how a contradiction is told to the user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tcdsl.errors import Diagnostic, ShapeError
from tcdsl.rows.ranks import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    # For the annotation alone: tcdsl.ir loads more than this package needs.
    from tcdsl.span import Span

__all__ = ["Contradiction", "Origin", "Reason", "SourcePlace", "axes"]


@dataclass(frozen=True, slots=True, eq=False)
class Origin:
    """The operation of the user that a constraint belongs to: ``Origin(span, ("w", "x"))``.

    ``operands`` are the names of the operands for messages; where there are none, the names of the shapes are used.
    ``hint`` says what to write instead, where a contradiction says nothing better.
    """

    span: Span | None = None
    operands: tuple[str, ...] = ()
    hint: str = ""

    def __str__(self) -> str:
        return "" if self.span is None else f"{self.span.filename}:{self.span.line}"


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """``text[start:stop]`` of a spec."""

    text: str
    start: int
    stop: int

    @property
    def lines(self) -> tuple[str, str]:
        """The spec, and carets below it."""
        return self.text, " " * self.start + "^" * max(1, self.stop - self.start)


@dataclass(frozen=True, slots=True)
class Reason:
    """What a size or a label was read from: ``output axis 1 from the right of `x```.

    ``position`` counts axes from the right, starting from 0. Reasons are passed along unchanged with what they explain,
    so a message names the tensors where it started, and never what merely carried it.
    """

    row: str = ""
    position: int = 0
    tensor: str = ""
    text: str = ""

    def __str__(self) -> str:
        if self.text:
            return self.text
        of = f" of `{self.tensor}`" if self.tensor else ""
        return f"{self.row} axis {self.position + 1} from the right{of}"


class Contradiction(Exception):  # noqa: N818 - not an error of the user yet: the transaction makes one of it
    """The constraints have no solution. Never leaves this package: a transaction turns it into a `ShapeError`."""

    def __init__(
        self, fact: str, *, hint: str = "", place: SourcePlace | None = None, notes: Sequence[str] = ()
    ) -> None:
        super().__init__(fact)
        self.fact = fact
        self.hint = hint
        self.place = place
        self.notes = tuple(notes)

    def diagnostic(self, origin: Origin, cause: Origin | None, shapes: Sequence[str] = ()) -> Diagnostic:
        """The fault, at the operation ``origin``; ``cause`` is the operation whose constraint cannot hold."""
        notes: list[str] = []
        if self.place is not None:
            notes.extend(self.place.lines)
        notes.extend(self.notes)
        notes.extend(shapes)
        if cause is not None and str(cause) not in ("", str(origin)):
            notes.append(f"as {cause} needs")
        return Diagnostic(ShapeError, self.fact, origin.span, tuple(notes), self.hint or origin.hint)


def axes(number: int, row: str) -> str:
    """``1 output axis``, ``no input axes``."""
    return counted(number, f"{row} axis".strip())
