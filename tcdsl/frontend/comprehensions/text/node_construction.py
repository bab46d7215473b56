"""What the parser makes of what it has read, rule by rule: the methods have the names of the grammar's rules."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lark import Token, Transformer

from tcdsl.errors import DslSyntaxError, DtypeError, TcdslError
from tcdsl.frontend.comprehensions.text.element_types import ELEMENT_TYPES
from tcdsl.frontend.comprehensions.text.grammar import KEYWORDS
from tcdsl.frontend.comprehensions.text.syntax import (
    Annotation,
    Binary,
    Call,
    Choice,
    Convert,
    Definition,
    DefinitionCall,
    ElementType,
    Exists,
    Expression,
    Extent,
    LocalDefinition,
    Name,
    Number,
    Parameter,
    Range,
    Result,
    Statement,
    Target,
    Unary,
    parts_of,
)
from tcdsl.span import Span

__all__ = ["READING", "NodeConstruction", "TreeReading"]


@dataclass(slots=True)
class TreeReading:
    """The text that is being read: its name, and how deeply the expressions in it are nested, by their identities."""

    filename: str
    depths: dict[int, int] = field(default_factory=dict)


READING: ContextVar[TreeReading] = ContextVar("READING")

MOST_NESTED = 400
_LARGEST_INTEGER = 2**31 - 1
_LARGEST_REAL = float(np.finfo(np.float32).max)


def _of_token(token: Token) -> Span:
    column = (token.column or 1) - 1
    line = token.line or 1
    return Span(READING.get().filename, line, column, token.end_line or line, (token.end_column or column + 2) - 1)


# What is read for its place alone.
_PUNCTUATION = frozenset(
    ("COLON", "COMMA", "DEF", "EXISTS", "IN", "LBRACE", "LPAR", "QMARK", "RBRACE", "RPAR", "WHERE", "EQUAL")
)


def _span_of(part: Any) -> Span | None:
    if isinstance(part, Token):
        return _of_token(part)
    found: Span | None = _span_of(part[-1]) if isinstance(part, tuple | list) and part else getattr(part, "span", None)
    return found


def _across(parts: list[Any]) -> Span:
    spans = [span for span in map(_span_of, parts) if span is not None]
    first, last = spans[0], spans[-1]
    return Span(first.filename, first.line, first.column, last.end_line, last.end_column)


def _rule(method: Callable[[Any, Span, list[Any]], Any]) -> Callable[[Any, list[Any]], Any]:
    # All tokens come here, so that the place of a node is known: the parser tells it only of trees.
    def made(self: Any, parts: list[Any]) -> Any:
        kept = [part for part in parts if not isinstance(part, Token) or _is_kept(part)]
        return method(self, _across(parts) if parts else _NOWHERE, kept)

    return made


_NOWHERE = Span("", 1, 0, 1, 1)


def _is_kept(token: Token) -> bool:
    return token.type not in _PUNCTUATION and not token.type.startswith("__ANON")


def _name(token: Token) -> Name:
    span = _of_token(token)
    if token in KEYWORDS:
        raise DslSyntaxError.at(f"`{token}` is a word of the language", span, "use another name")
    return Name(str(token), span)


def _names(tokens: list[Token]) -> tuple[Name, ...]:
    return tuple(map(_name, tokens))


class NodeConstruction(Transformer[Token, Any]):
    """Called by the parser at each rule, with the parts that it has made already."""

    def __default_token__(self, token: Token) -> Token:
        return token

    # -- definitions -----------------------------------------------------------------------------------------

    @_rule
    def start(self, _: Span, definitions: list[Definition]) -> list[Definition]:
        """All definitions."""
        return definitions

    @_rule
    def definition(self, span: Span, parts: list[Any]) -> Definition:
        """``def f(parameters) -> (results) { statements }``."""
        name, parameters, results, *statements = parts
        return Definition(_name(name), tuple(parameters), tuple(results), tuple(statements), span)

    @_rule
    def parameters(self, _: Span, parts: list[Parameter]) -> list[Parameter]:
        """All parameters."""
        return parts

    @_rule
    def parameter(self, span: Span, parts: list[Any]) -> Parameter:
        """``float(N) A``."""
        return Parameter(parts[0], _name(parts[1]), span)

    @_rule
    def element_type(self, span: Span, parts: list[Any]) -> ElementType:
        """``float(N, 3)``."""
        return ElementType(ELEMENT_TYPES[parts[0]], tuple(parts[1:]), span)

    @_rule
    def results(self, _: Span, parts: list[Result]) -> list[Result]:
        """All results."""
        return parts

    @_rule
    def result(self, span: Span, parts: list[Any]) -> Result:
        """``C`` or ``float(N) C``."""
        return Result(parts[0] if len(parts) == 2 else None, _name(parts[-1]), span)

    # -- statements ------------------------------------------------------------------------------------------

    @_rule
    def statement(self, span: Span, parts: list[Any]) -> Statement:
        """``C(i) +=! value <=> annotation where clauses``."""
        target, operator, value, *others = parts
        annotation = next((other for other in others if isinstance(other, Annotation)), None)
        clauses = next((other for other in others if isinstance(other, tuple)), ())
        return Statement(target, str(operator), value, annotation, clauses, span)

    @_rule
    def definition_call(self, span: Span, parts: list[Any]) -> DefinitionCall:
        """``a, b = f(x, y)``."""
        targets, function, arguments = parts
        return DefinitionCall(_names(targets), _name(function), _names(arguments), span)

    @_rule
    def names(self, _: Span, parts: list[Token]) -> list[Token]:
        """``a, b``."""
        return parts

    @_rule
    def bare_target(self, span: Span, parts: list[Token]) -> Target:
        """``C``."""
        return Target(_name(parts[0]), (), True, span)

    @_rule
    def target(self, span: Span, parts: list[Token]) -> Target:
        """``C(i, j)``."""
        return Target(_name(parts[0]), _names(parts[1:]), False, span)

    @_rule
    def annotation(self, span: Span, parts: list[Any]) -> Annotation:
        """``<=> name(a, b)``."""
        return Annotation(_name(parts[0]), tuple(parts[1:]), span)

    @_rule
    def where(self, _: Span, parts: list[Any]) -> tuple[Any, ...]:
        """All clauses."""
        return tuple(parts)

    @_rule
    def range(self, span: Span, parts: list[Any]) -> Range:
        """``i in a:b``."""
        return Range(_name(parts[0]), parts[1], parts[2], span)

    @_rule
    def local_definition(self, span: Span, parts: list[Any]) -> LocalDefinition:
        """``t = a``."""
        return LocalDefinition(_name(parts[0]), parts[-1], span)

    @_rule
    def exists(self, span: Span, parts: list[Any]) -> Exists:
        """``exists a``."""
        return Exists(parts[0], span)

    # -- expressions -----------------------------------------------------------------------------------------

    @_rule
    def choice(self, span: Span, parts: list[Any]) -> Expression:
        """``c ? a : b``."""
        return _nested(Choice(parts[0], parts[1], parts[2], span))

    @_rule
    def binary(self, span: Span, parts: list[Any]) -> Expression:
        """``a + b``."""
        left, operator, right = parts
        return _nested(Binary(str(operator), left, right, span))

    @_rule
    def unary(self, span: Span, parts: list[Any]) -> Expression:
        """``-a``."""
        return _nested(Unary(str(parts[0]), parts[1], span))

    @_rule
    def bracketed(self, _: Span, parts: list[Any]) -> Expression:
        """``(a)``."""
        inner: Expression = parts[0]
        return inner

    @_rule
    def call(self, span: Span, parts: list[Any]) -> Expression:
        """``A(i)``."""
        return _nested(Call(_name(parts[0]), tuple(parts[1:]), span))

    @_rule
    def convert(self, span: Span, parts: list[Any]) -> Expression:
        """``float(a)``."""
        return _nested(Convert(ELEMENT_TYPES[parts[0]], parts[1], span))

    @_rule
    def extent_of(self, span: Span, parts: list[Token]) -> Expression:
        """``A.1``."""
        return Extent(_name(parts[0]), int(parts[1].lstrip(". \t\r\n")), span)

    @_rule
    def name(self, _: Span, parts: list[Token]) -> Name:
        """``i``."""
        return _name(parts[0])

    @_rule
    def number(self, _: Span, parts: list[Token]) -> Number:
        """``2``, ``0x1f``, ``2.5e3f``."""
        (token,) = parts
        span = _of_token(token)
        if token.type == "REAL":
            real = float(token.rstrip("fF"))
            if real > _LARGEST_REAL:
                raise _too_large(token, "float32", span)
            return Number(real, True, span)
        if len(token) > 1 and token[0] == "0" and token.isdigit():
            raise DslSyntaxError.at(f"the number `{_short(token)}` begins with 0", span, "drop the zeros")
        whole = int(token, 0) if len(token) < 20 else _LARGEST_INTEGER + 1
        if whole > _LARGEST_INTEGER:
            raise _too_large(token, "int32", span)
        return Number(whole, False, span)


def _too_large(token: Token, dtype: str, span: Span) -> TcdslError:
    kind = "reals" if dtype == "float32" else "integers"
    return DtypeError.at(f"the number {_short(token)} does not fit in {dtype}, the type of {kind} here", span)


def _short(token: Token) -> str:
    return str(token) if len(token) <= 30 else f"{token[:30]}..."


def _nested(node: Expression) -> Expression:
    # Nodes are made from the inside, and live at least as long as the reading.
    depths = READING.get().depths
    depth = 1 + max((depths.get(id(part), 0) for part in parts_of(node)), default=0)
    if depth > MOST_NESTED:
        raise DslSyntaxError.at(
            f"a value that is nested more than {MOST_NESTED} times",
            node.span,
            "write parts of it as statements, or behind `where`",
        )
    depths[id(node)] = depth
    return node
