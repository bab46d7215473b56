"""Literal text as tokens, and where in it the bodies of decorated functions are.

Python's own tokenizer reads the text: it finds strings, comments and lines whatever operators stand between them.
"""

from __future__ import annotations

import io
import keyword
import tokenize
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Lines", "Token", "decorated_bodies", "matching", "tokens_of"]

DECORATORS = frozenset(("op", "cd", "defvjp", "defjvp"))
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_LAYOUT = {tokenize.INDENT: "indent", tokenize.DEDENT: "dedent", tokenize.NEWLINE: "newline"}
_KINDS = {tokenize.NAME: "name", tokenize.NUMBER: "number", tokenize.STRING: "string", **_LAYOUT}
_IGNORED = frozenset((tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER))


class Lines:
    """The lines of a text, as Python counts them; positions are offsets into the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.rows = io.StringIO(text, newline="").readlines()
        self.starts = [0]
        for row in self.rows:
            self.starts.append(self.starts[-1] + len(row))

    def offset(self, line: int, column: int) -> int:
        """The offset of a place in characters, lines counted from 1."""
        if line > len(self.rows):
            return len(self.text)
        return self.starts[line - 1] + min(column, len(self.rows[line - 1]))

    def offset_of_bytes(self, line: int, column: int) -> int:
        """The offset of a place as syntax trees have it: columns are bytes of UTF-8."""
        if line > len(self.rows):
            return len(self.text)
        row = self.rows[line - 1]
        return self.offset(line, column if row.isascii() else len(row.encode()[:column].decode(errors="ignore")))

    def place(self, offset: int) -> tuple[int, int]:
        """The line, and the column in characters."""
        line = max(1, min(bisect_right(self.starts, offset), len(self.rows)))
        return line, offset - self.starts[line - 1]

    def place_in_bytes(self, offset: int) -> tuple[int, int]:
        """The line, and the column in bytes of UTF-8, as syntax trees have it."""
        line, column = self.place(offset)
        row = self.rows[line - 1] if self.rows else ""
        return line, column if row.isascii() else len(row[:column].encode())


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is name, keyword, number, string, operator, newline, indent or dedent; ``begin`` and ``end`` offsets."""

    kind: str
    text: str
    begin: int
    end: int

    @property
    def ends_operand(self) -> bool:
        """Whether an operand may end here."""
        return self.kind in ("name", "number", "string") or self.text in (")", "]", "}", "None", "True", "False")

    @property
    def is_plain_string(self) -> bool:
        """Whether this is a string literal that is neither formatted nor of bytes."""
        return self._is_string_without("bft")

    @property
    def is_spec(self) -> bool:
        """Whether this may be a spec: a string literal, formatted or not."""
        return self._is_string_without("bt")

    def _is_string_without(self, prefixes: str) -> bool:
        prefix = self.text[: len(self.text) - len(self.text.lstrip("rRuUbBfFtT"))].lower()
        return self.kind == "string" and not set(prefix) & set(prefixes)


def tokens_of(lines: Lines) -> Iterator[Token]:
    """All tokens but comments and line breaks inside statements. Formatted strings are one token each.

    Raises what Python's tokenizer raises: `tokenize.TokenError`, `IndentationError`.
    """
    rows = iter([row.rstrip("\r\n") + ("\n" if row[-1:] in "\r\n" else "") for row in lines.rows])
    formatted = 0
    begin = 0
    for token in tokenize.generate_tokens(lambda: next(rows, "")):
        name = tokenize.tok_name[token.type]
        # From Python 3.12 on, formatted strings come in parts.
        if name.endswith("STRING_START"):
            begin = lines.offset(*token.start) if not formatted else begin
            formatted += 1
        elif name.endswith("STRING_END"):
            formatted -= 1
            if not formatted:
                end = lines.offset(*token.end)
                yield Token("string", lines.text[begin:end], begin, end)
        elif not formatted and token.type not in _IGNORED and not (name == "ERRORTOKEN" and token.string.isspace()):
            kind = _KINDS.get(token.type, "operator")
            if kind == "name" and keyword.iskeyword(token.string):
                kind = "keyword"
            yield Token(kind, token.string, lines.offset(*token.start), lines.offset(*token.end))


def matching(tokens: Sequence[Token], first: int) -> int:
    """The position of the bracket that closes the one at ``first``; the last token if none does."""
    depth = 0
    for k in range(first, len(tokens)):
        if tokens[k].kind == "operator":
            depth += (tokens[k].text in _OPENING) - (tokens[k].text in _CLOSING)
            if depth == 0:
                return k
    return len(tokens) - 1


def decorated_bodies(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """Where the bodies of functions decorated with ``op`` or ``cd`` begin and end: after the colon of ``def``.

    The decorator is recognized by its last name: ``@op``, ``@tc.cd``, ``@tcdsl.op(oob="skip")``, ``@f.defvjp``.
    """
    k = 0
    decorated = False
    while k < len(tokens):
        end = _end_of_line(tokens, k)
        first = tokens[k]
        if first.kind == "operator" and first.text == "@":
            decorated = decorated or _is_ours(tokens[k + 1 : end])
        elif first.text == "def" or (first.text == "async" and tokens[k + 1].text == "def"):
            if decorated:
                begin, end = _body(tokens, k, end)
                yield begin, end
                k = end
            decorated = False
        elif first.kind not in _LAYOUT.values():
            decorated = False
        k = end + 1 if first.kind not in ("indent", "dedent") else k + 1


def _end_of_line(tokens: Sequence[Token], k: int) -> int:
    while k < len(tokens) and tokens[k].kind != "newline":
        k += 1
    return k


def _is_ours(expression: Sequence[Token]) -> bool:
    names: list[str] = []
    for token in expression:
        if token.text == "(":
            break
        if token.kind == "name":
            names.append(token.text)
        elif token.text != ".":
            return False
    return bool(names) and names[-1] in DECORATORS


def _body(tokens: Sequence[Token], definition: int, newline: int) -> tuple[int, int]:
    k = definition
    while k < newline and tokens[k].text != ":":
        k = matching(tokens, k) + 1 if tokens[k].text in _OPENING else k + 1
    if k + 1 < newline or newline + 1 >= len(tokens) or tokens[newline + 1].kind != "indent":
        return k + 1, newline
    depth = 0
    for k in range(newline + 1, len(tokens)):
        depth += (tokens[k].kind == "indent") - (tokens[k].kind == "dedent")
        if depth == 0:
            return newline + 1, k
    return newline + 1, len(tokens)
