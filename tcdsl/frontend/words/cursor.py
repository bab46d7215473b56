"""A cursor on the words of a text, which says what is wrong where a word does not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tcdsl.errors import DslSyntaxError, TcdslError, suggestion
from tcdsl.frontend.words.languages import Language, Word, tokens_of
from tcdsl.span import Span

__all__ = ["MOST_NESTED", "Words"]

MOST_NESTED = 100
_ENDS = (")", "]", "}")
Part = TypeVar("Part")


class Words:
    """``words.accept(";")`` takes a word if it is the next one, ``words.expect(";")`` says that it has to be."""

    def __init__(self, text: str, filename: str, language: Language, line: int = 1, column: int = 0) -> None:
        self._tokens = tokens_of(text, filename, language, line, column)
        self._at = 0
        self._depth = 0
        self._language = language
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
        if token.text in self._language.keywords:
            fact = f"`{token.text}` is a word of the language"
            raise DslSyntaxError.at(fact, token.span(self.filename), f"give {of} another name")
        return self.take()

    def unexpected(self, expectation: str = "") -> TcdslError:
        """The error that the next word does not fit."""
        token = self.next
        span = token.span(self.filename)
        if token.kind == "end":
            return DslSyntaxError.at(f"the {self._language.text} ends too early", span, expectation)
        return DslSyntaxError.at(
            f"unexpected `{token.text}`", span, self._language.instead.get(token.text) or expectation
        )

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
            what, hint = self._language.nested
            raise DslSyntaxError.at(f"{what} are nested more than {MOST_NESTED} times", self.span(self.next), hint)

    def __exit__(self, *_: object) -> None:
        self._depth -= 1

    def separated(self, part: Callable[[Words], Part]) -> tuple[Part, ...]:
        """Parts between commas, at least one; `part` reads one."""
        found = [part(self)]
        while self.accept(","):
            if self.next.text in _ENDS:
                fact = f"a comma before `{self.next.text}`"
                raise DslSyntaxError.at(fact, self.span(self.next), "drop the comma")
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
