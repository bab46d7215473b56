"""Parameters that strings declare: ``relu("w" @ x + "b"[hid])``.

A string is a parameter only where it meets a tensor of a graph, or stands beside another declaration; elsewhere it is a
string. Who makes the parameters, and keeps them from call to call, is a `ParameterScope`: an op, or a layer.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.staging.active_session import DeclarationMet
from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.operators import both_sides
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


class InlineDeclaration:
    """``"b"[hid]`` in an `@op`: a parameter with these output axes where it meets a tensor, else Python's subscript."""

    __slots__ = ("extents", "key", "text")
    # Arrays of NumPy leave arithmetic with it to this class.
    __array_ufunc__ = None

    def __init__(self, text: str, key: Any) -> None:
        self.text = text
        self.key = key
        self.extents = key if isinstance(key, tuple) else (key,)

    def __repr__(self) -> str:
        return f"{self.text!r}[{', '.join(map(str, self.extents))}]"

    def plain(self) -> Any:
        """What Python means by it."""
        return self.text[self.key]

    def _combined(self, primitive: str, left: Any, right: Any) -> Any:
        function = _OPERATORS[primitive]
        if isinstance(left, InlineDeclaration) and isinstance(right, InlineDeclaration):
            left = declared_parameter(left, None)
        elif not hasattr(left, "builder") and not hasattr(right, "builder"):
            # No tensor in sight: `"abc"[0] + "d"` is text.
            try:
                sides = (each.plain() if isinstance(each, InlineDeclaration) else each for each in (left, right))
                return function(*sides)
            except (IndexError, TypeError):
                if _current.get() is None:
                    raise
                raise _text_fault(self) from None
        algebra = (left if hasattr(left, "builder") else right).builder.algebra
        return algebra.combine(primitive, left, right) if primitive else algebra.matrix_product(left, right)

    __add__, __radd__ = both_sides("add")
    __sub__, __rsub__ = both_sides("sub")
    __mul__, __rmul__ = both_sides("mul")
    __truediv__, __rtruediv__ = both_sides("div")
    __pow__, __rpow__ = both_sides("pow")
    __matmul__, __rmatmul__ = both_sides("")


_OPERATORS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "pow": operator.pow,
    "": operator.matmul,
}


def declared_parameter(given: str | InlineDeclaration, span: Span | None) -> GraphTensor:
    """The parameter that a string, or a string with output axes, declares where an operand is expected.

    `DslSyntaxError` outside of an op that runs on tensors, and for strings that are no names.
    """
    scope = _current.get()
    text = given.text if isinstance(given, InlineDeclaration) else given
    if isinstance(given, _ScaledText):
        raise _text_fault(given, span)
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
    return scope.declare(text, given.extents if isinstance(given, InlineDeclaration) else None, span)
