"""Python's complaints about carriers, at their places in the literal text."""

from __future__ import annotations

import ast
import tokenize
import warnings
from collections.abc import Sequence
from token import EXACT_TOKEN_TYPES

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.span import Span
from tcdsl.syntax.grammar.edits import Edited
from tcdsl.syntax.grammar.marks import Marks
from tcdsl.syntax.grammar.operators import ASSIGNMENTS, COMPOSITIONS, INFIX
from tcdsl.syntax.grammar.tokens import Lines, Token

__all__ = ["layout_fault", "parsed"]

_SIGNS = frozenset("+-*/%@&|^<>=~!?$`.")
_OPERATORS = frozenset((*INFIX, *COMPOSITIONS, *ASSIGNMENTS, *EXACT_TOKEN_TYPES))
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def layout_fault(error: Exception, tokens: Sequence[Token], lines: Lines, filename: str) -> SyntaxError:
    """The fault of a text whose tokens, of which these come first, end before it does: mostly brackets that do not
    match.
    """
    text, place = str(error.args[0]), error.args[1] if len(error.args) > 1 else (1, 0)
    if isinstance(error, SyntaxError):
        place = error.lineno or 1, error.offset or 1
    # From Python 3.12 on its tokenizer counts columns from 1; before, it gives none.
    line, column = place[0], max(0, place[1] - 1)
    opened: list[Token] = []
    for token in tokens:
        if token.kind != "operator":
            continue
        if token.text in _CLOSING:
            opened.append(token)
        elif token.text in _CLOSING.values() and (not opened or _CLOSING[opened.pop().text] != token.text):
            text, (line, column) = f"unmatched '{token.text}'", lines.place(token.begin)
            opened = []
            break
    if opened and isinstance(error, tokenize.TokenError):
        text, (line, column) = f"'{opened[-1].text}' was never closed", lines.place(opened[-1].begin)
    row = lines.rows[line - 1] if line <= len(lines.rows) else ""
    kind = type(error) if isinstance(error, SyntaxError) else SyntaxError
    return kind(text, (filename, line, column + 1, row))


def parsed(text: Edited, marks: Marks) -> ast.Module:
    """The syntax tree of a carrier or of plain text; a fault is raised at its place in the literal text."""
    try:
        with warnings.catch_warnings():
            # Who parses the plain text for good shows its warnings.
            warnings.simplefilter("ignore")
            return ast.parse(text.text, marks.filename)
    except SyntaxError as error:
        raise _fault(error, text, marks) from None


def _fault(error: SyntaxError, text: Edited, marks: Marks) -> SyntaxError:
    # Python's complaint, at the place in the literal text.
    if error.lineno is None:
        return error
    begin = text.begin_of_place(error.lineno, max(0, (error.offset or 1) - 1))
    line, column = marks.lines.place(begin)
    if not any(first <= begin <= last for first, last in marks.regions):
        row = marks.lines.rows[line - 1] if marks.lines.rows else ""
        return SyntaxError(error.msg, (marks.filename, line, column + 1, row))
    end = begin + 1
    if error.end_lineno is not None and error.end_offset is not None and error.end_offset > 0:
        end = max(end, text.begin_of_place(error.end_lineno, error.end_offset - 1))
    fact, hint = f"this does not parse: {error.msg}", ""
    notes: tuple[str, ...] = ()
    first, last = _signs(marks.lines.text, begin)
    run = marks.lines.text[first:last]
    if len(run) > 1 and run not in _OPERATORS:
        begin, end, fact, hint = (
            first,
            last,
            f"`{run}` is no operator",
            "write one of them, or spaces between operators",
        )
        notes = (f"beside Python's, the operators are {' '.join((*INFIX, *COMPOSITIONS, *ASSIGNMENTS))}",)
    span = Span(marks.filename, *marks.lines.place(begin), *marks.lines.place(end))
    made = Diagnostic(DslSyntaxError, fact, span, notes, hint).error()
    assert isinstance(made, SyntaxError)
    return made


def _signs(text: str, place: int) -> tuple[int, int]:
    # The operator characters that stand together around a place.
    first = last = place
    while first > 0 and text[first - 1] in _SIGNS:
        first -= 1
    while last < len(text) and text[last] in _SIGNS:
        last += 1
    return first, last
