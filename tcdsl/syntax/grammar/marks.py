"""What the tokens of literal text say: where its operators are, and the same text as Python can parse it.

Python's own parser finds the operands. It is given a *carrier*: the text with Python's operators in the places of the
literal ones. What stands where is written down in `Marks`, by offsets into the literal text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.span import Span
from tcdsl.syntax.grammar.edits import TextPiece
from tcdsl.syntax.grammar.literal_operators import AssignmentOperator, Infix
from tcdsl.syntax.grammar.tokens import Lines, Token

__all__ = ["CARRIER_NAME", "AssignmentMark", "Composition", "Juxtaposition", "Label", "Marks", "operator_at"]

# What a call is to, in the carrier, that stands for literal text without a function's name.
CARRIER_NAME = "__"


@dataclass(frozen=True, slots=True)
class Label:
    """``~logic:"@"`` or ``~projections:p``, or ``~projections`` alone: from ``begin`` to ``end``, its value from
    ``value``, and the end of what stands before it.
    """

    name: str
    before: int
    begin: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class AssignmentMark:
    """An assignment: its operator from ``begin`` to ``end``, its statement, its labels, the name that it declares, and
    the ``extents`` of that.
    """

    row: AssignmentOperator
    begin: int
    end: int
    statement: int
    statement_end: int
    labels: tuple[Label, ...]
    declared: Token | None
    extents: str = ""


@dataclass(frozen=True, slots=True)
class Composition:
    """``++ "spec"``, ``*+ "spec"`` or ``+* "spec"``: the operator's place, and the string's."""

    literal: str
    begin: int
    end: int
    spec: int
    spec_end: int


@dataclass(frozen=True, slots=True)
class Juxtaposition:
    """``"b" hid_dim``: where the string ends, and the value begins and ends; ``is_label`` for ``'q' 2.0``."""

    end: int
    value: int
    value_end: int
    is_label: bool


@dataclass(slots=True)
class Marks:
    """The literal constructs of a text by their offsets, the edits that make the carrier, and faults.

    ``simple`` are edits that are the same for the plain text: they need no operands. ``closing`` has for each opening
    bracket where its closing one ends; ``regions`` are the bodies of decorated functions.
    """

    lines: Lines
    filename: str
    carrier: list[TextPiece] = field(default_factory=list)
    simple: list[TextPiece] = field(default_factory=list)
    infix: dict[int, Infix] = field(default_factory=dict)
    compositions: dict[int, Composition] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)
    juxtaposed: dict[int, Juxtaposition] = field(default_factory=dict)
    batches: dict[int, int] = field(default_factory=dict)
    comments: dict[int, int] = field(default_factory=dict)
    assignments: dict[int, AssignmentMark] = field(default_factory=dict)
    wildcards: set[int] = field(default_factory=set)
    closing: dict[int, int] = field(default_factory=dict)
    commas: list[int] = field(default_factory=list)
    regions: list[tuple[int, int]] = field(default_factory=list)
    faults: list[Diagnostic] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the text is plain Python already."""
        return not (self.carrier or self.simple or self.wildcards)

    def carry(self, begin: int, end: int, text: str) -> None:
        """Put ``text`` into the carrier in the place of a range of the literal text."""
        self.carrier.append(TextPiece(text, begin, end))

    def replace(self, begin: int, end: int, text: str) -> None:
        """Put ``text`` in the place of a range, in the carrier and in the plain text."""
        self.simple.append(TextPiece(text, begin, end))

    def fault(self, begin: int, end: int, fact: str, hint: str = "", notes: Iterable[str] = ()) -> None:
        """Keep a fault; all those of a text are reported together."""
        span = Span(self.filename, *self.lines.place(begin), *self.lines.place(end))
        self.faults.append(Diagnostic(DslSyntaxError, fact, span, tuple(notes), hint))


def operator_at(text: str, tokens: list[Token], k: int, literals: Iterable[str]) -> tuple[str, int] | None:
    """The longest of ``literals`` that begins at token ``k`` and ends with a token, and the position after it."""
    begin = tokens[k].begin
    for literal in sorted(literals, key=len, reverse=True):
        if text.startswith(literal, begin):
            end, after = begin + len(literal), k
            while after < len(tokens) and tokens[after].kind == "operator" and tokens[after].end <= end:
                after += 1
            if after > k and tokens[after - 1].end == end:
                return literal, after
    return None
