"""Scalars at a point as Python objects: what helper functions receive, and what local definitions are.

::

    z = x[i] * x[i]             z is a `PointValue`; the index variables in it become those of the statement that uses z
    O[i] += helper(x[i], z)     helper runs at staging on `PointValue`s and returns one
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError
from tcdsl.frontend.recognition import recognize
from tcdsl.frontend.symbols import SymbolicNumber, SymbolicSize
from tcdsl.frontend.values import Value, call_function
from tcdsl.ir.expressions import Expr, IndexValue, Local, children
from tcdsl.ir.span import Span
from tcdsl.shapes.sketch import Reduction

__all__ = ["GENERATED", "PointValue", "open_walk", "scalar_of"]

# Marks names that the user did not write: variables of generators (`j#0`) and local definitions (`z#7`). Both get
# readable names when the statement is complete.
GENERATED = "#"

_serial = itertools.count()


def open_walk(expr: Expr) -> Iterator[Expr]:
    """Every node of ``expr``, outermost first, those inside its `Reduction`s included."""
    yield expr
    for part in open_children(expr):
        yield from open_walk(part)


def open_children(expr: Expr) -> tuple[Expr, ...]:
    # Like `children`, which knows nothing of the reductions of sketches.
    if isinstance(expr, Reduction):
        ends = [end for stated in expr.ranges for end in (stated.low, stated.high)]
        return (*ends, *expr.conditions, *expr.filters, expr.value)
    return children(expr)


def scalar_of(operand: object, span: Span | None = None) -> Value | None:
    """A number, a size or a scalar at a point as a value; ``None`` for anything else."""
    match operand:
        case Value():
            return operand
        case PointValue():
            return operand.value
        case SymbolicSize():
            return Value(operand.expr, "int", "int64")
        case SymbolicNumber():
            return Value(operand.expr, operand.weak_kind, operand.expr.dtype)
        case bool() | int() | float() | np.generic():
            return Value.of(operand, span)
        case np.ndarray() if operand.ndim == 0:
            return Value.of(operand.dtype.type(operand.item()), span)
        case _:
            return None


class PointValue:
    """A scalar at every point of the statement that will use it.

    ``definitions`` gives the values of the local definitions that ``value`` mentions, by their generated names.
    """

    __slots__ = ("definitions", "span", "value")
    __hash__ = object.__hash__

    def __init__(self, value: Value, definitions: Mapping[str, Value], span: Span | None = None) -> None:
        self.value = value
        self.definitions = dict(definitions)
        self.span = span

    @staticmethod
    def define(name: str, value: Value, definitions: Mapping[str, Value], span: Span | None = None) -> PointValue:
        """The local definition ``name = value``: computed once per point however often it is used."""
        key = f"{name}{GENERATED}{next(_serial)}"
        local = Local(key, value.expr.dtype, span)
        return PointValue(value.with_expr(local), {**definitions, key: value}, span)

    def index_names(self) -> Iterator[str]:
        """The index variables that the value mentions, in the order of their first occurrence."""
        return iter(dict.fromkeys(self._index_names(self.value.expr)))

    def _index_names(self, expr: Expr) -> Iterator[str]:
        for node in open_walk(expr):
            if isinstance(node, IndexValue) and GENERATED not in node.name:
                yield node.name
            elif isinstance(node, Local) and node.name in self.definitions:
                yield from self._index_names(self.definitions[node.name].expr)

    def __repr__(self) -> str:
        return f"<{self.value.logical} scalar at a point>"

    # -- what a scalar at a point cannot answer while Python runs --------------------------------------------

    def __bool__(self) -> bool:
        raise Diagnostic(
            DslSyntaxError,
            "Python branches on a value that is different at every point",
            self.span,
            hint="write `a if condition else b` in the statement itself, or `where(condition, a, b)`",
        ).error()

    def _no_number(self) -> Any:
        raise Diagnostic(
            DtypeError,
            "Python asks for the number behind a value that is different at every point",
            self.span,
            hint="use the primitives of the language or np.exp and the like; `math` functions need plain numbers",
        ).error()

    __float__ = __int__ = __index__ = __complex__ = __len__ = __iter__ = _no_number

    def __getitem__(self, key: object) -> Any:
        raise Diagnostic(DtypeError, "a scalar at a point has no axes to index", self.span).error()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **kwargs: object) -> Any:
        name = recognize(ufunc)
        if name is None or method != "__call__" or kwargs:
            raise Diagnostic(DtypeError, f"np.{ufunc.__name__} is not a primitive of the language", self.span).error()
        return _combined(name, inputs)


def _combined(name: str, operands: tuple[object, ...]) -> Any:
    spans = [operand.span for operand in operands if isinstance(operand, PointValue) and operand.span is not None]
    span = spans[0] if spans else None
    values: list[Value] = []
    definitions: dict[str, Value] = {}
    for operand in operands:
        value = scalar_of(operand, span)
        if value is None:
            return NotImplemented
        values.append(value)
        if isinstance(operand, PointValue):
            definitions.update(operand.definitions)
    return PointValue(call_function(name, values, span), definitions, span)


_OPERATORS = {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_div",
    "mod": "mod",
    "pow": "pow",
    "and": "bit_and",
    "or": "bit_or",
    "xor": "bit_xor",
    "lshift": "shift_left",
    "rshift": "shift_right",
}
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
_UNARY = {"neg": "neg", "pos": "id", "abs": "abs", "invert": "bit_not"}


def _install() -> None:
    # One method per operator, made from the table: they differ in nothing but the primitive.
    def unary(primitive: str) -> Any:
        return lambda self: _combined(primitive, (self,))

    def binary(primitive: str) -> Any:
        return lambda self, other: _combined(primitive, (self, other))

    def reflected(primitive: str) -> Any:
        return lambda self, other: _combined(primitive, (other, self))

    for operator, primitive in _OPERATORS.items():
        setattr(PointValue, f"__{operator}__", binary(primitive))
        setattr(PointValue, f"__r{operator}__", reflected(primitive))
    for comparison in _COMPARISONS:
        setattr(PointValue, f"__{comparison}__", binary(comparison))
    for operator, primitive in _UNARY.items():
        setattr(PointValue, f"__{operator}__", unary(primitive))


_install()
