"""The words of a SkriptND text, with their places."""

from __future__ import annotations

import re
from typing import NamedTuple

from tcdsl.errors import DslSyntaxError
from tcdsl.span import Span

__all__ = ["KEYWORDS", "TYPE_NAMES", "Word", "tokens_of"]

_MOST_WORDS = 500_000
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
