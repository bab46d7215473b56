"""The words of a text with their places."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tcdsl.errors import DslSyntaxError
from tcdsl.span import Span

__all__ = ["Language", "Word", "tokens_of"]

MOST_WORDS = 500_000


@dataclass(frozen=True, slots=True)
class Language:
    """What the words of a language are, and what is said where other characters and words stand.

    The groups of ``words`` are the kinds of words: integer, real, name, operator and others; what is blank is none.
    """

    words: re.Pattern[str]
    keywords: frozenset[str]
    #: What other languages write, and what is written here.
    instead: Mapping[str, str]
    #: What a whole text is called, where one that has no end is divided, and where characters that are not ASCII stand.
    text: str
    smaller: str
    characters: str
    #: What is nested, and what to do about it.
    nested: tuple[str, str]
    #: What begins and ends texts in texts.
    quotes: str = ""
    same: Mapping[str, str] | None = None


class Word(NamedTuple):
    """``kind`` is that of its language, or end; ``text`` is what stands there."""

    kind: str
    text: str
    line: int
    column: int

    def span(self, filename: str) -> Span:
        """Its place."""
        return Span(filename, self.line, self.column, self.line, self.column + max(len(self.text), 1))


def tokens_of(text: str, filename: str, language: Language, line: int = 1, column: int = 0) -> list[Word]:
    """All words of ``text``, which begins at ``line`` and ``column``; the last one is the end."""
    found = []
    end, begin = 0, -column
    size, new, same = len(text), tuple.__new__, language.same or {}
    for match in language.words.finditer(text):
        position, (start, end), kind = end, match.span(), match.lastgroup
        if start != position:
            raise _unknown(text, position, begin, line, filename, language)
        if kind == "blank":
            breaks = text.count("\n", position, end)
            if breaks:
                line += breaks
                begin = text.rindex("\n", position, end) + 1
        else:
            word = match[0]
            after = text[end : end + 1]
            if kind in ("integer", "real") and after.isascii() and (after.isalnum() or after == "_"):
                rest = re.compile(r"\w+").match(text, position)
                shown = rest[0] if rest else word
                span = Span(filename, line, start - begin, line, start - begin + len(shown))
                fact = f"`{shown}` is neither a number nor a name"
                raise DslSyntaxError.at(fact, span, "names begin with a letter or `_`")
            found.append(new(Word, (kind, same.get(word, word), line, start - begin)))
    if len(found) > MOST_WORDS:
        fact = f"the {language.text} has {len(found)} words, and {MOST_WORDS} are the most"
        raise DslSyntaxError.at(fact, found[MOST_WORDS].span(filename), language.smaller)
    if end != size:
        raise _unknown(text, end, begin, line, filename, language)
    last = found[-1] if found else Word("end", "", line, column)
    found.append(Word("end", "", last.line, last.column + len(last.text)))
    return found


def _unknown(text: str, position: int, begin: int, line: int, filename: str, language: Language) -> Exception:
    character = text[position]
    column = position - begin
    span = Span(filename, line, column, line, column + 1)
    if character in language.quotes:
        return DslSyntaxError.at("a text that does not end on its line", span, f"close it with {character}")
    shown = character if character.isprintable() else ascii(character)[1:-1]
    if not character.isascii():
        return DslSyntaxError.at(f"the character `{shown}` is not ASCII", span, language.characters)
    return DslSyntaxError.at(f"unexpected `{shown}`", span, language.instead.get(character, ""))
