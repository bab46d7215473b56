"""Scalars at a point as Python objects: what helper functions receive, and what local definitions are.

::

    z = x[i] * x[i]             z is a `PointValue`; the index variables in it become those of the statement that uses z
    O[i] += helper(x[i], z)     helper runs at staging on `PointValue`s and returns one
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from tcdsl.errors import Diagnostic, DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.recognition import recognize
from tcdsl.frontend.session import current_session, session_of
from tcdsl.frontend.symbols import PendingArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.frontend.values import Product, Value, call_function
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Apply, Constant, Expr, IndexValue, Local, Read, SizeValue, children, rebuild
from tcdsl.ir.span import Span
from tcdsl.shapes.sketch import Reduction

__all__ = [
    "FACTOR",
    "GENERATED",
    "PointValue",
    "combine_points",
    "is_affine_test",
    "open_transform",
    "open_walk",
    "scalar_of",
]

# Marks names that the user did not write: variables of generators (`j#0`) and local definitions (`z#7`). Both get
# readable names when the statement is complete.
GENERATED = "#"

# Marks the name of a local definition that stands behind its own brackets, as a factor of a product.
FACTOR = "!"

_serial = itertools.count()

# So many nodes of index arithmetic are written out wherever they are used.
_FEW = 32


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


def open_transform(expr: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """Apply ``rule`` to every node, innermost first, those inside of `Reduction`s included."""
    if isinstance(expr, Reduction):
        ranges = tuple(
            replace(stated, low=open_transform(stated.low, rule), high=open_transform(stated.high, rule))
            for stated in expr.ranges
        )
        conditions = tuple(open_transform(condition, rule) for condition in expr.conditions)
        filters = tuple(open_transform(condition, rule) for condition in expr.filters)
        value = open_transform(expr.value, rule)
        whole = replace(expr, ranges=ranges, conditions=conditions, filters=filters, value=value)
        return rule(cast(Expr, whole))
    parts = children(expr)
    if parts:
        expr = rebuild(expr, tuple(open_transform(part, rule) for part in parts))
    return rule(expr)


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
        case PendingArray() if operand.rank == 0:
            return operand.element
        case np.ndarray() if operand.ndim == 0:
            # An array from around the function is read at every call, of whatever rank it is.
            return scalar_of(session_of("a tensor statement").capture(operand), span)
        case SymbolicTensor() if operand.rank == 0:
            return Value(Read(operand.name, (), (), compute_dtype(operand.dtype), span=span), None, operand.dtype)
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
        """The local definition ``name = value``: computed once per point however often it is used.

        Its brackets stay those of every product that it becomes a factor of. What is made of indices and numbers
        alone gets no name, so that it can be an index or bound a loop.
        """
        if _is_plain(value.expr):
            return PointValue(value, definitions, span)
        known = dict(definitions)
        product = value.product
        if product is not None:
            tests = (Value(bracket, None, "bool") for bracket in product.brackets)
            brackets = tuple(
                test.expr if _is_plain(test.expr) else _defined(f"{name}_if", test, known, span) for test in tests
            )
            value = replace(value, product=replace(product, brackets=brackets))
        local = value.with_expr(_defined(name, value, known, span))
        if product is not None:
            rest = product.rest if _is_plain(product.rest.expr) else local.with_expr(_as_factor(local.expr, known))
            local = replace(local, product=Product(brackets, rest))
        return PointValue(local, known, span)

    def named(self, name: str) -> PointValue:
        """The same value under a name, so that it is computed once per point."""
        return PointValue.define(name, self.value, self.definitions, self.span)

    def index_names(self) -> Iterator[str]:
        """The index variables that the value mentions, in the order of their first occurrence."""
        return iter(dict.fromkeys(self._index_names(self.value.expr)))

    def _index_names(self, expr: Expr) -> Iterator[str]:
        for node in open_walk(expr):
            if isinstance(node, IndexValue) and GENERATED not in node.name:
                yield node.name
            elif isinstance(node, Local) and node.name in self.definitions:
                yield from self._index_names(self.definitions[node.name].expr)

    def within(self, scope: Mapping[str, Expr]) -> PointValue:
        """The same value inside of a generator: its index variables that the generator binds are the generator's."""
        captured = [name for name in self.index_names() if name in scope]
        if not captured:
            return self
        mark = "_".join(repr(scope[name]) for name in captured)
        keys = {key: _marked(key, mark) for key in self.definitions}

        def rule(node: Expr) -> Expr:
            if isinstance(node, IndexValue):
                return scope.get(node.name, node)
            return (
                Local(keys[node.name], node.dtype, node.span) if isinstance(node, Local) and node.name in keys else node
            )

        definitions = {
            keys[key]: value.mapped(lambda expr: open_transform(expr, rule)) for key, value in self.definitions.items()
        }
        return PointValue(self.value.mapped(lambda expr: open_transform(expr, rule)), definitions, self.span)

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

    def __pos__(self) -> PointValue:
        return self

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **kwargs: object) -> Any:
        name = recognize(ufunc)
        if name is None or method != "__call__" or kwargs:
            raise Diagnostic(DtypeError, f"np.{ufunc.__name__} is not a primitive of the language", self.span).error()
        return combine_points(name, inputs)


def combine_points(name: str, operands: Sequence[object]) -> Any:
    """A function of the language on operands one of which is a `PointValue`; ``NotImplemented`` if one is no scalar."""
    spans = [operand.span for operand in operands if isinstance(operand, PointValue) and operand.span is not None]
    span = spans[0] if spans else None
    values: list[Value] = []
    definitions: dict[str, Value] = {}
    for operand in operands:
        value = scalar_of(operand, span)
        if value is None:
            _refuse_array(operand, span)
            return NotImplemented
        values.append(value)
        if isinstance(operand, PointValue):
            definitions.update(operand.definitions)
    return PointValue(call_function(name, values, span), definitions, span)


def _defined(name: str, value: Value, definitions: dict[str, Value], span: Span | None) -> Local:
    key = f"{name}{GENERATED}{next(_serial)}"
    definitions[key] = value
    return Local(key, value.expr.dtype, span)


def _as_factor(local: Expr, definitions: dict[str, Value]) -> Local:
    assert isinstance(local, Local)
    name, serial = local.name.split(GENERATED)
    key = f"{name}{FACTOR}{GENERATED}{serial}"
    definitions[key] = definitions[local.name]
    return replace(local, name=key)


def _is_plain(expr: Expr) -> bool:
    if isinstance(expr, Local):
        return True  # it has a name
    few = len(tuple(itertools.islice(open_walk(expr), _FEW + 1))) <= _FEW
    return few and is_affine_test(expr)


def is_affine_test(condition: Expr) -> bool:
    """Whether a condition is made of index variables, sizes and numbers alone, so that it can bound a loop."""
    return all(isinstance(node, Apply | Constant | IndexValue | SizeValue) for node in open_walk(condition))


def _refuse_array(operand: object, span: Span | None) -> None:
    if getattr(operand, "shape", ()):
        session = current_session()
        raise Diagnostic(
            ShapeError,
            "a value that is different at every point meets a whole array",
            span if session is None else session.location() or span,
            hint="write a statement that indexes the array too, as in `y[i] = A[i] * z`",
        ).error()


def _marked(key: str, mark: str) -> str:
    # Another definition of the same readable name and serial number: `z#7` becomes `z#<mark>#7`.
    name, serial = key.split(GENERATED, maxsplit=1)[0], key.rsplit(GENERATED, 1)[1]
    return f"{name}{GENERATED}{mark}{GENERATED}{serial}"


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
_UNARY = {"neg": "neg", "abs": "abs", "invert": "bit_not"}


def _install() -> None:
    # One method per operator, made from the table: they differ in nothing but the primitive.
    def unary(primitive: str) -> Any:
        return lambda self: combine_points(primitive, (self,))

    def binary(primitive: str) -> Any:
        return lambda self, other: combine_points(primitive, (self, other))

    def reflected(primitive: str) -> Any:
        return lambda self, other: combine_points(primitive, (other, self))

    for operator, primitive in _OPERATORS.items():
        setattr(PointValue, f"__{operator}__", binary(primitive))
        setattr(PointValue, f"__r{operator}__", reflected(primitive))
    for comparison in _COMPARISONS:
        setattr(PointValue, f"__{comparison}__", binary(comparison))
    for operator, primitive in _UNARY.items():
        setattr(PointValue, f"__{operator}__", unary(primitive))


_install()
