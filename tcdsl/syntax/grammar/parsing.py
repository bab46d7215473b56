r"""Literal text to a syntax tree, or to plain Python.

::

    parse('@cd\ndef f(c, a, b):\n    c =:+ a * b ~logic:"@"\n')         # the tree of: c["@"] = sum(a * b)
    desugared(...).text                                                  # that text

The tree has the positions of the literal text: tracebacks, carets and debuggers show what the user wrote.
Python's complaints about carriers get their places there too.
"""

from __future__ import annotations

import ast
import contextlib
import re
import tokenize
import warnings
from collections.abc import Sequence
from keyword import kwlist
from token import EXACT_TOKEN_TYPES

from tcdsl.errors import DslSyntaxError, DtypeError, raise_diagnostics
from tcdsl.span import Span
from tcdsl.syntax.grammar.edits import Edited, edited, rendered
from tcdsl.syntax.grammar.literal_expressions import mark_expressions
from tcdsl.syntax.grammar.literal_operators import ASSIGNMENTS, COMPOSITIONS, INFIX
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
    if not isinstance(text, str) or not isinstance(filename, str):
        raise DtypeError(f"a {type(text).__name__} as literal text: give a text, and the name of its file")
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
    elif called := _applied(marks.lines.text, begin, end):
        begin, end, call = called
        fact, hint = (
            f"no operator in `{marks.lines.text[begin:end]}`",
            f"a function is called with parentheses, `{call}`",
        )
    span = Span(marks.filename, *marks.lines.place(begin), *marks.lines.place(end))
    made = DslSyntaxError.at(fact, span, hint, notes=notes)
    assert isinstance(made, SyntaxError)
    return made


_WORD = rf"(?!(?:{'|'.join(kwlist)})\b)[A-Za-z_]\w*"
_BRACKETS = r"\((?:[^()\n]|\([^()\n]*\))*\)"
_ATOM = re.compile(rf"{_WORD}(?:\.\w+|\[[^\[\]\n]*\]|{_BRACKETS})*|\d[\w.]*|\"[^\"\n]*\"|{_BRACKETS}")
_SIDE_BY_SIDE = re.compile(rf"(?<![\w.]){_WORD}(?: +(?:{_ATOM.pattern}))+")


def _applied(text: str, begin: int, end: int) -> tuple[int, int, str] | None:
    # `fma a b c` around a place, as functions are applied in the spelling's origin, and the call to write.
    first, last = text.rfind("\n", 0, begin) + 1, text.find("\n", begin)
    for found in _SIDE_BY_SIDE.finditer(text, first, len(text) if last < 0 else last):
        if found.start() <= end and begin <= found.end():
            return *found.span(), _call(found[0])
    return None


def _call(text: str) -> str:
    from tcdsl.ir.primitives import PRIMITIVES

    atoms = _ATOM.findall(text)

    def taken(atom: str) -> str:
        # An argument; what stands side by side in it, or a function before its own arguments, is a call too.
        if atom in PRIMITIVES and atoms:
            count = PRIMITIVES[atom].arity
            return f"{atom}({', '.join(taken(atoms.pop(0)) for _ in range(min(count, len(atoms))))})"
        inner = atom[1:-1].strip() if atom.startswith("(") else atom
        return _call(inner) if _SIDE_BY_SIDE.fullmatch(inner) else inner

    function = atoms.pop(0)
    arguments = []
    while atoms:
        arguments.append(taken(atoms.pop(0)))
    return f"{function}({', '.join(arguments)})"


def _signs(text: str, place: int) -> tuple[int, int]:
    # The operator characters that stand together around a place.
    first = last = place
    while first > 0 and text[first - 1] in _SIGNS:
        first -= 1
    while last < len(text) and text[last] in _SIGNS:
        last += 1
    return first, last
