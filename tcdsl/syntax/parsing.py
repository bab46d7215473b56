r"""Literal text to a syntax tree, or to plain Python.

::

    parse('@cd\ndef f(c, a, b):\n    c =:+ a * b ~logic:"@"\n')         # the tree of: c["@"] = sum(a * b)
    desugared(...).text                                                  # that text

The tree has the positions of the literal text: tracebacks, carets and debuggers show what the user wrote.
"""

from __future__ import annotations

import ast
import tokenize

from tcdsl.errors import Diagnostic, DslSyntaxError, raise_diagnostics
from tcdsl.ir.span import Span
from tcdsl.syntax.edits import Edited, edited, rendered
from tcdsl.syntax.expressions import mark_expressions
from tcdsl.syntax.marks import Marks
from tcdsl.syntax.operators import COMPOSITIONS, INFIX
from tcdsl.syntax.plain import plain_constructs
from tcdsl.syntax.statements import mark_statements
from tcdsl.syntax.tokens import Lines, Token, decorated_bodies, tokens_of

__all__ = ["carrier_text", "desugared", "parse"]


def parse(text: str, filename: str = "<unknown>") -> ast.Module:
    """The syntax tree of literal text: that of its plain form, with positions in the literal text.

    Raises `DslSyntaxError` for faults inside functions decorated with ``op`` and ``cd``, which names the operator and
    says what to write, and Python's ``SyntaxError`` for others.
    """
    plain = desugared(text, filename)
    if plain is None:
        return ast.parse(text, filename)
    tree = ast.parse(plain.text, filename)
    plain.place(tree)
    return tree


def desugared(text: str, filename: str = "<unknown>") -> Edited | None:
    """The plain form of literal text, which knows what stands for what; ``None`` if the text is plain already."""
    lines = Lines(text)
    marks = _marked(lines, filename)
    if marks.is_empty and not marks.faults:
        return None
    raise_diagnostics(marks.faults)
    carrier = edited(lines, [*marks.carrier, *marks.simple])
    tree = _parsed(carrier, marks)
    constructs = plain_constructs(tree, carrier, marks)
    raise_diagnostics(marks.faults)
    plain = rendered(lines, constructs)
    _parsed(plain, marks)
    return plain


def carrier_text(text: str) -> str:
    """Literal text with Python's operators in place of the literal ones: it is complete Python where the text is."""
    lines = Lines(text)
    marks = _marked(lines, "<unknown>")
    return edited(lines, [*marks.carrier, *marks.simple]).text


def _marked(lines: Lines, filename: str) -> Marks:
    try:
        tokens = tokens_of(lines)
    except (tokenize.TokenError, SyntaxError) as error:
        # Python's parser says it better, if it agrees.
        ast.parse(lines.text, filename)
        raise SyntaxError(str(error)) from error
    marks = Marks(lines, filename)
    for begin, end in decorated_bodies(tokens):
        marks.regions.append((tokens[begin].begin, tokens[end - 1].end))
        _mark_body(tokens, begin, end, marks)
    return marks


def _mark_body(tokens: list[Token], begin: int, end: int, marks: Marks) -> None:
    # A function's body, one logical line after the other.
    first = begin
    while first < end:
        last = first
        while last < end and tokens[last].kind != "newline":
            last += 1
        while first < last and tokens[first].kind in ("indent", "dedent"):
            first += 1
        if first < last:
            used = mark_statements(tokens, first, last, marks)
            mark_expressions(tokens, first, last, used, marks)
        first = last + 1


def _parsed(text: Edited, marks: Marks) -> ast.Module:
    try:
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
    span = Span(marks.filename, line, column, *marks.lines.place(end))
    known = " ".join((*INFIX, *COMPOSITIONS))
    hint = f"the operators between operands are Python's and {known}"
    diagnostic = Diagnostic(DslSyntaxError, f"this does not parse: {error.msg}", span, hint=hint)
    made = diagnostic.error()
    assert isinstance(made, SyntaxError)
    return made
