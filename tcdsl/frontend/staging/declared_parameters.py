"""Parameters that strings declare: ``relu("w" @ x + "b"[hid])``.

A string is a parameter only where it meets a tensor of a graph, or stands beside another declaration; elsewhere it is a
string. Who makes the parameters, and keeps them from call to call, is a `ParameterScope`: an op, or a layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.staging.active_session import DeclarationMet
from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.span import Span

__all__ = [
    "InlineDeclaration",
    "ParameterScope",
    "current_parameters",
    "declared_parameter",
    "declaring",
    "layers_met",
    "meet_layers_from",
    "scaled_text",
]


class ParameterScope(Protocol):
    """Where an op's or a layer's parameters live; ``met`` says how many layers inside a call has met so far."""

    met: int

    def declare(self, name: str, extents: tuple[Any, ...] | None, span: Span | None) -> GraphTensor:
        """The parameter ``name``, made at its first declaration; ``extents`` are its output axes where given."""

    def find(self, name: str) -> GraphTensor | None:
        """The parameter ``name``, if it has been declared."""


_current: ContextVar[ParameterScope | None] = ContextVar("tcdsl_parameters", default=None)


def current_parameters() -> ParameterScope | None:
    """The scope of the op or layer that is running on tensors of graphs, if any."""
    return _current.get()


def layers_met() -> int:
    """How many layers inside the op that is running on tensors its call has met so far."""
    scope = _current.get()
    return 0 if scope is None else scope.met


def meet_layers_from(number: int) -> None:
    """The layer that is met next is the one with this number: what has met it is staged again."""
    scope = _current.get()
    if scope is not None:
        scope.met = number


@contextmanager
def declaring(scope: ParameterScope) -> Iterator[None]:
    """Make ``scope`` the one in which strings declare."""
    token = _current.set(scope)
    try:
        yield
    finally:
        _current.reset(token)


class _ScaledText(str):
    # What Python makes of `2 * "w"`: text, as long as it meets no tensor.
    __slots__ = ()


def scaled_text(left: Any, right: Any) -> Any:
    """``2 * "w"``, where one of the two is a string that may name a parameter, but meets a number before any tensor."""
    if _current.get() is None or any(hasattr(each, "builder") for each in (left, right)):
        return left * right
    try:
        made = left * right
    except TypeError:
        raise _text_fault(left if isinstance(left, str) else right) from None
    return _ScaledText(made) if isinstance(made, str) else made


def _text_fault(text: object, span: Span | None = None) -> Exception:
    session = current_session()
    return DslSyntaxError.at(
        f"the string {text!r} is text here: it meets a number, not a tensor",
        span if span is not None or session is None else session.location(),
        'strings declare parameters where they meet a tensor; write `2 * ("w" @ x)`, or `w = param("w")` before',
    )


class InlineDeclaration(str):
    """``"bias"[2]`` in an `@op`: as an operand a parameter with these output axes, elsewhere Python's letter."""

    __slots__ = ("extents", "name")

    name: str
    extents: tuple[Any, ...]

    @staticmethod
    def of(name: str, key: Any) -> InlineDeclaration | GraphTensor:
        """``name[key]``: the parameter at once where Python has no such letter, as in ``"b"[3]`` and ``"b"[2, 3]``."""
        session = current_session()
        if isinstance(key, int | slice):
            with suppress(IndexError):
                made = InlineDeclaration(name[key])
                made.name, made.extents = name, (key,)
                return made
        extents = key if isinstance(key, tuple) else (key,)
        return _declared(name, extents, None if session is None else session.location())


def declared_parameter(given: str, span: Span | None) -> GraphTensor:
    """The parameter that a string, or a string with output axes, declares where an operand is expected.

    `DslSyntaxError` outside of an op that runs on tensors, and for strings that are no names.
    """
    if isinstance(given, _ScaledText):
        raise _text_fault(given, span)
    return (
        _declared(given.name, given.extents, span)
        if isinstance(given, InlineDeclaration)
        else _declared(given, None, span)
    )


def _declared(text: str, extents: tuple[Any, ...] | None, span: Span | None) -> GraphTensor:
    scope = _current.get()
    if scope is None:
        fault = DslSyntaxError.at(
            f"the string {text!r} is an operand of tensor arithmetic",
            span,
            f"strings declare parameters inside an @op that is called with tensors; here write tc.param({text!r}, ...)",
        )
        session = current_session()
        if session is not None and session.context.graph is None and text.isidentifier():
            raise DeclarationMet(fault)
        raise fault
    if not text.isidentifier():
        raise DslSyntaxError.at(
            f"the string {text!r} is an operand of tensor arithmetic, but no name for a parameter",
            span,
            "a parameter's name is an identifier, such as `w`",
        )
    return scope.declare(text, extents, span)
