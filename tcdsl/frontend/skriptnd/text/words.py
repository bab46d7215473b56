"""The words of a SkriptND text with their places, and a cursor that says what is wrong where one does not fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from tcdsl.errors import DslSyntaxError, TcdslError, suggestion
from tcdsl.span import Span

__all__ = ["KEYWORDS", "MOST_NESTED", "TYPE_NAMES", "Word", "Words", "tokens_of"]

_MOST_WORDS = 500_000
MOST_NESTED = 100
TYPE_NAMES = ("type", "arith", "num", "int", "real", "bool", "str")
KEYWORDS = frozenset(
    (
        *("import", "operator", "graph", "public", "optional", "static", "dynamic", "true", "false", "inf", "pi"),
        *("is", "in", "if", "then", "elif", "else", "with", "for", "while", "do", "unroll", "yield"),
        *TYPE_NAMES,
    )
)
"""Names that nothing can have."""

# The longest first.
_OPERATORS = (
    *("...", "<?=", ">?="),
    *("..", ":=", "==", "!=", "<=", ">=", "=>", "->", "<-", "<>", "<<", ">>", "<?", ">?", "&&", "||", "??", "**"),
    *("+=", "*=", "&=", "|="),
    *("+", "-", "*", "/", "\\", "%", "<", ">", "=", "!", "?", "|", "^", "~", ":", ";", ",", ".", "(", ")", "[", "]"),
    *("{", "}", "`", "&"),
)
_WORDS = re.compile(
    r"(?P<blank>[ \t\r\n\f]+|\#[^\n]*)"
    r"|(?P<real>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|[0-9]+\.(?![.A-Za-z_0-9]))"
    r"|(?P<integer>[0-9]+)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<block>@[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<text>\"(?:[^\"\\\n]|\\[^\n])*\"|'(?:[^'\\\n]|\\[^\n])*')"
    r"|(?P<operator>" + "|".join(map(re.escape, _OPERATORS)) + r")"
)
# The spellings of the document for the shipped ones.
_SAME = {"<<": "<?", ">>": ">?"}


class Word(NamedTuple):
    """``kind`` is real, integer, name, block, text, operator or end; ``text`` is what stands there."""

    kind: str
    text: str
    line: int
    column: int

    def span(self, filename: str) -> Span:
        """Its place."""
        return Span(filename, self.line, self.column, self.line, self.column + max(len(self.text), 1))


def tokens_of(text: str, filename: str, line: int = 1, column: int = 0) -> list[Word]:
    """All words of ``text``, which begins at ``line`` and ``column``; the last one is the end."""
    found = []
    end, begin = 0, -column
    size, new = len(text), tuple.__new__
    for match in _WORDS.finditer(text):
        position, (start, end), kind = end, match.span(), match.lastgroup
        if start != position:
            raise _unknown(text, position, begin, line, filename)
        if kind == "blank":
            breaks = text.count("\n", position, end)
            if breaks:
                line += breaks
                begin = text.rindex("\n", position, end) + 1
        else:
            word = match[0]
            if kind in ("integer", "real") and end < size and (text[end].isalnum() or text[end] == "_"):
                rest = re.compile(r"\w+").match(text, position)
                shown = rest[0] if rest else word
                span = Span(filename, line, start - begin, line, start - begin + len(shown))
                fact = f"`{shown}` is neither a number nor a name"
                raise DslSyntaxError.at(fact, span, "names begin with a letter or `_`")
            found.append(new(Word, (kind, _SAME.get(word, word), line, start - begin)))
    if len(found) > _MOST_WORDS:
        fact = f"the text has {len(found)} words, and {_MOST_WORDS} are the most"
        raise DslSyntaxError.at(fact, found[_MOST_WORDS].span(filename), "put operators into modules of their own")
    if end != size:
        raise _unknown(text, end, begin, line, filename)
    last = found[-1] if found else Word("end", "", line, column)
    found.append(Word("end", "", last.line, last.column + len(last.text)))
    return found


def _unknown(text: str, position: int, begin: int, line: int, filename: str) -> Exception:
    character = text[position]
    column = position - begin
    span = Span(filename, line, column, line, column + 1)
    if character in "\"'":
        return DslSyntaxError.at("a text that does not end on its line", span, f"close it with {character}")
    shown = character if character.isprintable() else ascii(character)[1:-1]
    if not character.isascii():
        hint = "names are made of a-z, A-Z, 0-9 and _; other characters stand in texts and comments alone"
        return DslSyntaxError.at(f"the character `{shown}` is not ASCII", span, hint)
    return DslSyntaxError.at(f"unexpected `{shown}`", span)


Part = TypeVar("Part")

# What other languages write, and what is written here.
_INSTEAD = {
    "&": "`&&` combines truth values",
    "`": "functions may be written without backticks, `exp(x)`",
    "=": "`==` compares",
}


class Words:
    """``words.accept(";")`` takes a word if it is the next one, ``words.expect(";")`` says that it has to be."""

    def __init__(self, tokens: list[Word], filename: str) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self.filename = filename

    @property
    def next(self) -> Word:
        """The next word."""
        return self._tokens[self._at]

    def ahead(self, count: int) -> Word:
        """The word that comes ``count`` words later."""
        return self._tokens[min(self._at + count, len(self._tokens) - 1)]

    def is_next(self, *texts: str) -> bool:
        """Whether one of ``texts`` comes next, as a word that is no text and no name of the user's."""
        token = self._tokens[self._at]
        return token.text in texts and token.kind != "text"

    def take(self) -> Word:
        """The next word, which is behind the cursor afterwards."""
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def accept(self, *texts: str) -> Word | None:
        """The next word if it is one of ``texts``."""
        return self.take() if self.is_next(*texts) else None

    def expect(self, text: str, where: str = "") -> Word:
        """The next word, which has to be ``text``."""
        if not self.is_next(text):
            raise self.unexpected(f"expected `{text}`{f' {where}' if where else ''}")
        return self.take()

    def name(self, of: str) -> Word:
        """A name that the user gives."""
        token = self.next
        if token.kind != "name":
            raise self.unexpected(f"expected the name of {of}")
        if token.text in KEYWORDS:
            fact = f"`{token.text}` is a word of the language"
            raise DslSyntaxError.at(fact, token.span(self.filename), f"give {of} another name")
        return self.take()

    def unexpected(self, expectation: str = "") -> TcdslError:
        """The error that the next word does not fit."""
        token = self.next
        span = token.span(self.filename)
        if token.kind == "end":
            return DslSyntaxError.at("the text ends too early", span, expectation)
        return DslSyntaxError.at(f"unexpected `{token.text}`", span, _INSTEAD.get(token.text) or expectation)

    def unknown(self, kind: str, token: Word, known: list[str]) -> TcdslError:
        """The error that ``token`` is not one of ``known``."""
        hint = suggestion(token.text, known, f"there are {', '.join(known)}")
        return DslSyntaxError.at(f"there is no {kind} `{token.text}`", token.span(self.filename), hint)

    def since(self, first: Word) -> Span:
        """From ``first`` to the word that was taken last."""
        last = self._tokens[max(self._at - 1, 0)]
        return Span(self.filename, first.line, first.column, last.line, last.column + len(last.text))

    def span(self, token: Word) -> Span:
        """The place of a word."""
        return token.span(self.filename)

    def __enter__(self) -> None:
        """A part inside another one, `with words:`; there is an end to that."""
        self._depth += 1
        if self._depth > MOST_NESTED:
            fact = f"parts are nested more than {MOST_NESTED} times"
            raise DslSyntaxError.at(fact, self.span(self.next), "name some of them in `@using`, or in `@compose`")

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def separated(self, part: Callable[[Words], Part]) -> tuple[Part, ...]:
        """Parts between commas, at least one; `part` reads one."""
        found = [part(self)]
        while self.accept(","):
            found.append(part(self))
        return tuple(found)

    def several(self, part: Callable[[Words], Part], end: str) -> tuple[Part, ...]:
        """Parts between commas, until ``end``, which is taken too; there may be none."""
        if self.accept(end):
            return ()
        found = self.separated(part)
        if not self.accept(end):
            raise self.unexpected(f"expected `,` or `{end}`")
        return found
