"""Sizes and targets that are declared: ``C = output(N, M)``, ``O: real[N, X]``, ``A.bind_dims(N, K)``."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.staging.environment import UNBOUND, Declared, Fresh
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.int64_numbers import int64_constant
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.expressions import Expr
from tcdsl.span import Span

__all__ = [
    "DeclaredTarget",
    "Dimensions",
    "Lookup",
    "Unwritten",
    "bind_dimensions",
    "declared_dtype",
    "extent_expression",
    "output",
]


class Lookup(Protocol):
    """What names and expressions mean in the decorated function; `tcdsl.frontend.names.function_scope` knows it."""

    def own(self, name: str) -> object:
        """The value that the function has bound to ``name``."""

    def value_of(self, name: str) -> object:
        """The value of ``name`` by Python's scoping."""

    def python_value(self, node: ast.expr) -> Any:
        """The value of an ordinary Python expression."""

    def span(self, node: ast.AST) -> Span | None:
        """The place of ``node`` in the user's source."""


class _NotWritten:
    # What has no cells yet: any use is an error that says so.
    __slots__ = ()

    def _read(self, *_: object) -> Any:
        raise self.fault()

    def fault(self) -> TcdslError:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._read()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = _read
    __rmatmul__ = __neg__ = __getitem__ = __iter__ = __bool__ = __pow__ = __call__ = __lt__ = __gt__ = __le__ = _read


def _on_state(operation: Callable[..., Any]) -> Callable[..., Any]:
    # In code on tensors of graphs a name that is read before it is written is state.
    def method(self: Unwritten, *others: Any) -> Any:
        session = session_of("a decorated function")
        if session.context.states is None:
            raise self.fault()
        return operation(session.context.states.read(self.name), *others)

    return method


class Unwritten(_NotWritten):
    """What a target's name holds before its first statement. Any use is an error that says so, unless it is state."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    __add__, __radd__ = _on_state(operator.add), _on_state(lambda state, other: other + state)
    __sub__, __rsub__ = _on_state(operator.sub), _on_state(lambda state, other: other - state)
    __mul__, __rmul__ = _on_state(operator.mul), _on_state(lambda state, other: other * state)
    __truediv__, __rtruediv__ = _on_state(operator.truediv), _on_state(lambda state, other: other / state)
    __pow__, __rpow__ = _on_state(operator.pow), _on_state(lambda state, other: other**state)
    __neg__, __getitem__ = _on_state(operator.neg), _on_state(operator.getitem)
    __lt__, __le__ = _on_state(operator.lt), _on_state(operator.le)
    __gt__, __ge__ = _on_state(operator.gt), _on_state(operator.ge)

    def fault(self) -> TcdslError:
        """The error of reading the name."""
        return session_of("a decorated function").fault(
            DslSyntaxError,
            f"`{self.name}` is read before anything is written to it",
            f"a name that the function writes is its own: write it first, or make `{self.name}` a parameter",
        )


@dataclass(frozen=True, slots=True)
class DeclaredTarget(_NotWritten):
    """A target declared before its first statement.

    ``extents`` is ``None`` where `output` was called without any: they are inferred. ``dtype`` of ``None`` is the type
    of what is written.
    """

    extents: tuple[Expr, ...] | None
    dtype: str | None = None
    span: Span | None = None

    def fault(self) -> TcdslError:
        """The error of reading the target."""
        return Diagnostic(
            DslSyntaxError,
            "a declared target is read or returned before anything is written to it",
            self.span,
            hint="write it first: `C[i, j] = 0.0` fills it; what code on arrays keeps from call to call is a "
            "parameter, for which the call passes a buffer",
        ).error()

    def __setitem__(self, key: object, value: object) -> None:
        raise session_of("a store").fault(
            DslSyntaxError,
            "Python stores into a declared target, which has no cells yet",
            "begin it by a statement of its own in this function, one target in each: `y[0] = a`, then `y[-1] = b`",
        )

    def state(self, name: str) -> Declared | Fresh:
        """What a statement on ``name`` needs to know."""
        return Fresh(name) if self.extents is None else Declared(self.extents, self.dtype, name)


def output(*extents: Any, dtype: str | None = None) -> Any:
    """``C = output(N, M)`` declares a target with these extents; ``C = output()`` leaves them to be inferred.

    ``output((N, M))`` says the same, as NumPy's functions do, and ``output(())`` declares a tensor of rank 0. Extents
    are sizes or integers; ``dtype`` is the type of what is written unless given. The first statement on ``C`` starts it
    from the accumulator's neutral element, and cells out of the statement's range keep that (``language`` rule 3).
    """
    session = session_of("output()")
    if not extents:
        return DeclaredTarget(None, dtype, session.location())
    if len(extents) == 1 and isinstance(extents[0], tuple | list):
        extents = tuple(extents[0])
    return DeclaredTarget(tuple(_extent(value, session.location()) for value in extents), dtype, session.location())


def _extent(value: object, span: Span | None) -> Expr:
    match value:
        case SymbolicSize():
            return value.expr
        case SymbolicNumber(weak_kind="float"):
            raise Diagnostic(
                DtypeError, "an extent that is a float", span, hint="`//` divides sizes to an integer: `N // 2`"
            ).error()
        case SymbolicNumber():
            size = session_of("output()").integers.size(value.expr, bound=True)
            return int64_constant(int(value), span) if size is None else size
        case bool():
            pass
        case _ if hasattr(value, "__index__"):
            number = value.__index__()
            if number < 0:
                raise Diagnostic(ShapeError, f"an extent of {number}", span, hint="extents are 0 or more").error()
            return int64_constant(number, span)
    raise Diagnostic(
        DslSyntaxError,
        f"a {type(value).__name__} as an extent",
        span,
        hint="use integers and sizes such as `A.shape[0]`",
    ).error()


def extent_expression(scope: Lookup, node: ast.expr) -> Expr:
    """The extent that an annotation's ``N`` or ``N + 1`` stands for; every name in it must be bound."""
    for name in (n.id for n in ast.walk(node) if isinstance(n, ast.Name)):
        if scope.value_of(name) is UNBOUND:
            raise Diagnostic(
                DslSyntaxError,
                f"the size `{name}` has no value here",
                scope.span(node),
                hint=f"bind it first (`{name} = A.shape[0]`), or leave the extents to be inferred: `O = output()`",
            ).error()
    return _extent(scope.python_value(node), scope.span(node))


def declared_dtype(kind: str, span: Span | None) -> str | None:
    """The type that an annotation names; ``None`` for ``real`` (the floating type written) and ``any``."""
    if kind in ("real", "any"):
        return None
    if kind in DTYPES:
        return kind
    raise Diagnostic(
        DtypeError, f"`{kind}` is not an element type", span, hint=f"write real, or one of {', '.join(DTYPES)}"
    ).error()


@dataclass(frozen=True, slots=True)
class Dimensions:
    """What names the extents of ``name``, of elements of ``kind``: the annotation of a parameter or a target, or a call
    of ``bind_dims``.
    """

    node: ast.AST
    name: str
    kind: str
    extents: tuple[ast.expr, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The plain names among the extents."""
        return tuple(dict.fromkeys(extent.id for extent in self.extents if isinstance(extent, ast.Name)))


def bind_dimensions(scope: Lookup, array: SymbolicArray, given: Dimensions, found: dict[str, object]) -> None:
    """Bind the names among the extents ``given`` for ``array``, into ``found``; what has a value must agree.

    `ShapeError` for a rank other than the number of extents, `DtypeError` for another element type.
    """
    session = session_of("sizes")
    label, kind, extents = given.name, given.kind, given.extents
    span = scope.span(extents[0]) if extents else None
    if len(extents) != array.rank:
        raise Diagnostic(
            ShapeError,
            f"`{label}` has rank {array.rank}, but {len(extents)} sizes are given for it",
            span,
            hint="give one size per axis",
        ).error()
    dtype = declared_dtype(kind, span)
    if dtype is not None and dtype != array.dtype:
        raise Diagnostic(
            DtypeError, f"`{label}` is {array.dtype}, not {dtype}", span, hint=f"pass an array of {dtype}"
        ).error()
    if kind == "real" and not array.dtype.startswith("float"):
        raise Diagnostic(
            DtypeError, f"`{label}` is {array.dtype}, not a floating type", span, hint="pass a floating array"
        ).error()
    for axis, (node, extent) in enumerate(zip(extents, array.extents, strict=True)):
        known: object = UNBOUND
        if isinstance(node, ast.Name):
            known = found.get(node.id, UNBOUND)
            known = scope.own(node.id) if known is UNBOUND else known
            if known is UNBOUND:
                found[node.id] = SymbolicSize(session.builder, extent)
                continue
        expected = extent_expression(scope, node) if known is UNBOUND else _extent(known, scope.span(node))
        written = ast.unparse(node)
        session.builder.require_equal(
            expected,
            extent,
            f"axis {axis} of `{label}` does not have the extent `{written}` that is bound already",
            scope.span(node),
        )
