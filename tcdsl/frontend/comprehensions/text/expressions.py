"""Expressions, by the precedence of their operators."""

from __future__ import annotations

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, TcdslError
from tcdsl.frontend.comprehensions.text.element_types import ELEMENT_TYPES
from tcdsl.frontend.comprehensions.text.syntax import (
    Binary,
    Call,
    Choice,
    Convert,
    Expression,
    Extent,
    Name,
    Number,
    Unary,
)
from tcdsl.frontend.comprehensions.text.words import COMPREHENSION_WORDS
from tcdsl.frontend.words.cursor import Words
from tcdsl.frontend.words.nodes import parts_of
from tcdsl.span import Span, across

__all__ = ["ReadWords", "read_expression", "read_name", "read_number"]

MOST_NESTED = 400
_LARGEST_INTEGER = 2**31 - 1
_LARGEST_REAL = float(np.finfo(np.float32).max)
_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    **dict.fromkeys(("==", "!=", "<=", ">=", "<", ">"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}


class ReadWords(Words):
    """The words of a source; it knows how deeply the expressions are nested that were read, by their identities."""

    def __init__(self, text: str, filename: str) -> None:
        super().__init__(text, filename, COMPREHENSION_WORDS)
        self._depths: dict[int, int] = {}

    def nested(self, node: Expression) -> Expression:
        """``node``, which lives at least as long as the reading. `DslSyntaxError` if it is nested too deeply."""
        depth = 1 + max((self._depths.get(id(part), 0) for part in parts_of(node)), default=0)
        if depth > MOST_NESTED:
            fact = f"a value that is nested more than {MOST_NESTED} times"
            raise DslSyntaxError.at(fact, node.span, "write parts of it as statements, or behind `where`")
        self._depths[id(node)] = depth
        return node


def read_name(words: Words, of: str = "a tensor") -> Name:
    """A name that the user gives."""
    word = words.name(of)
    return Name(word.text, words.span(word))


def read_expression(words: ReadWords) -> Expression:
    """``c ? a : b``, or an operation."""
    arms = []
    value = _operations(words)
    while words.accept("?"):
        with words:
            chosen = read_expression(words)
        words.expect(":", "between the values of a choice")
        arms.append((value, chosen))
        value = _operations(words)
    for condition, chosen in reversed(arms):
        value = words.nested(Choice(condition, chosen, value, across(condition.span, value.span)))
    return value


def _operations(words: ReadWords) -> Expression:
    # What is on the stack waits for an operator that binds less.
    operands, operators = [_unary(words)], list[str]()

    def made(least: int) -> None:
        while operators and _PRECEDENCE[operators[-1]] >= least:
            right, left = operands.pop(), operands.pop()
            operands.append(words.nested(Binary(operators.pop(), left, right, across(left.span, right.span))))

    while words.next.text in _PRECEDENCE:
        made(_PRECEDENCE[words.next.text])
        operators.append(words.take().text)
        operands.append(_unary(words))
    made(0)
    return operands[0]


def _unary(words: ReadWords) -> Expression:
    signs = []
    while words.is_next("-", "!"):
        signs.append(words.take())
    value = _atom(words)
    for sign in reversed(signs):
        value = words.nested(Unary(sign.text, value, words.since(sign)))
    return value


def _atom(words: ReadWords) -> Expression:
    word = words.next
    if word.text == "(":
        return _bracketed(words)
    if word.kind in ("integer", "real"):
        return read_number(words)
    if word.text in ELEMENT_TYPES:
        words.take()
        if not words.is_next("("):
            raise words.unexpected("expected `(`")
        return words.nested(Convert(ELEMENT_TYPES[word.text], _bracketed(words), words.since(word)))
    if word.kind != "name" or word.text in COMPREHENSION_WORDS.keywords:
        raise words.unexpected("expected a value")
    name = read_name(words)
    if words.is_next("("):
        with words:
            words.take()
            arguments = words.several(lambda _: read_expression(words), ")")
        return words.nested(Call(name, arguments, words.since(word)))
    axis = words.next
    if axis.kind == "real" and axis.text[1:].isdigit():
        words.take()  # `A.1`
        return words.nested(Extent(name, int(axis.text[1:]), words.since(word)))
    if axis.text == "." and words.ahead(1).kind == "integer" and words.ahead(1).text.isdigit():
        words.take()
        return words.nested(Extent(name, int(words.take().text), words.since(word)))
    return name


def _bracketed(words: ReadWords) -> Expression:
    with words:
        words.take()
        value = read_expression(words)
    words.expect(")")
    return value


def read_number(words: Words) -> Number:
    """``2``, ``0x1f``, ``2.5e3f``."""
    word = words.take()
    text, span = word.text, words.span(word)
    if word.kind == "real":
        real = float(text.rstrip("fF"))
        if real > _LARGEST_REAL:
            raise _too_large(text, "float32", span)
        return Number(real, True, span)
    if len(text) > 1 and text[0] == "0" and text.isdigit():
        raise DslSyntaxError.at(f"the number `{_short(text)}` begins with 0", span, "drop the zeros")
    whole = int(text, 0) if len(text) < 20 else _LARGEST_INTEGER + 1
    if whole > _LARGEST_INTEGER:
        raise _too_large(text, "int32", span)
    return Number(whole, False, span)


def _too_large(text: str, dtype: str, span: Span) -> TcdslError:
    kind = "reals" if dtype == "float32" else "integers"
    return DtypeError.at(f"the number {_short(text)} does not fit in {dtype}, the type of {kind} here", span)


def _short(text: str) -> str:
    return text if len(text) <= 30 else f"{text[:30]}..."
