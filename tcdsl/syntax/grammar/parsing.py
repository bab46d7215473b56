r"""Literal text to a syntax tree, or to plain Python.

::

    parse('@cd\ndef f(c, a, b):\n    c =:+ a * b ~logic:"@"\n')         # the tree of: c["@"] = sum(a * b)
    desugared(...).text                                                  # that text

The tree has the positions of the literal text: tracebacks, carets and debuggers show what the user wrote.
"""

from __future__ import annotations

import ast
import contextlib
import tokenize

from tcdsl.errors import raise_diagnostics
from tcdsl.syntax.grammar.edits import Edited, edited, rendered
from tcdsl.syntax.grammar.faults import layout_fault, parsed
from tcdsl.syntax.grammar.literal_expressions import mark_expressions
from tcdsl.syntax.grammar.literal_statements import mark_statements
from tcdsl.syntax.grammar.marks import Marks
from tcdsl.syntax.grammar.plain import plain_constructs
from tcdsl.syntax.grammar.tokens import Lines, Token, decorated_bodies, tokens_of

__all__ = ["carrier_text", "desugared", "parse"]


def parse(text: str, filename: str = "<unknown>") -> ast.Module:
    """The syntax tree of literal text: that of its plain form, with positions in the literal text.

    Raises `DslSyntaxError` for faults inside functions decorated with ``op`` and ``cd``, which names the operator and
    says what to write, and Python's ``SyntaxError`` for others.
    """
    plain = desugared(text, filename)
    tree = ast.parse(plain.text, filename)
    if plain.text != text:
        plain.place(tree)
    return tree


def desugared(text: str, filename: str = "<unknown>") -> Edited:
    """The plain form of literal text, which knows what stands for what."""
    lines = Lines(text)
    marks = _marked(lines, filename)
    raise_diagnostics(marks.faults)
    carrier = edited(lines, [*marks.carrier, *marks.simple])
    tree = parsed(carrier, marks)
    if marks.is_empty:
        return carrier
    constructs = plain_constructs(tree, carrier, marks)
    raise_diagnostics(marks.faults)
    plain = rendered(lines, constructs)
    parsed(plain, marks)
    return plain


def carrier_text(text: str) -> str:
    """Literal text with Python's operators in place of the literal ones: it is complete Python where the text is.

    The text may end anywhere; faults in it stay.
    """
    lines = Lines(text)
    tokens: list[Token] = []
    with contextlib.suppress(tokenize.TokenError, SyntaxError):
        tokens.extend(tokens_of(lines))
    marks = _marks(lines, tokens, "<unknown>")
    return edited(lines, [*marks.carrier, *marks.simple]).text


def _marked(lines: Lines, filename: str) -> Marks:
    tokens: list[Token] = []
    try:
        # Most modules have no decorators at all.
        tokens.extend(tokens_of(lines) if "@" in lines.text else ())
    except (tokenize.TokenError, SyntaxError) as error:
        raise layout_fault(error, tokens, lines, filename) from None
    return _marks(lines, tokens, filename)


def _marks(lines: Lines, tokens: list[Token], filename: str) -> Marks:
    marks = Marks(lines, filename)
    for begin, end in decorated_bodies(tokens):
        if begin < end:
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
