"""Scalars at a point as Python objects: what helper functions receive, and what local definitions are.

::

    z = x[i] * x[i]             z is a `PointValue`; the index variables in it become those of the statement that uses z
    O[i] += helper(x[i], z)     helper runs at staging on `PointValue`s and returns one

In a `BareReduction` nothing stands outside of reductions: ``n = sqrt(sum(g[i] * g[i]))``. In a tensor statement such a
name is its text, as every local definition is: ``O[i, j] = E[i, j] / z`` with ``z = sum(E[i, l])`` divides by the sums
of rows. Where that text would leave a reduction nothing to bind, and wherever whole arrays are computed with, it is a
tensor of rank 0: ``g * (1 / n)``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError, TcdslError
from tcdsl.frontend.points.definitions import Definition, bounded, captured, define, index_names, marked, outside_names
from tcdsl.frontend.staging.given_arrays import instead_of
from tcdsl.frontend.staging.session import current_session, session_of
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.operators import OperatorHost, PrimitiveOperators, itself
from tcdsl.frontend.symbols.point_calls import AtEachPoint
from tcdsl.frontend.symbols.pointwise_functions import UFUNCS
from tcdsl.frontend.symbols.recognition import name_of_ufunc, recognize
from tcdsl.frontend.symbols.scalar_primitives import call_function, of_a_number
from tcdsl.frontend.symbols.symbols import ElementType, PendingArray, SymbolicTensor, number_value
from tcdsl.frontend.symbols.values import Value, stored_dtype
from tcdsl.ir.expressions import Expr, Reduction, transform
from tcdsl.rows.ranks import RowRanks
from tcdsl.span import Span

__all__ = [
    "BareReduction",
    "PointValue",
    "as_points",
    "combine_points",
    "leaves_of",
    "meeting_an_array",
    "point_of",
    "points_in",
    "scalar_of",
    "standing_alone",
]

# So many nodes are written out once more where a helper function uses a value again.
_REUSED = 30


def scalar_of(operand: object, span: Span | None = None) -> Value | None:
    """A number, a size or a scalar at a point as a value; ``None`` for anything else."""
    match operand:
        case Value():
            return operand
        case PointValue():
            return operand.value
        case PendingArray() if operand.rank == 0:
            return operand.element
        case np.ndarray() if operand.ndim == 0:
            # An array from around the function is read at every call, of whatever rank it is.
            return scalar_of(session_of("a tensor statement").capture(operand), span)
        case SymbolicTensor() if operand.rank == 0:
            return operand.cell((), span)
        case GraphTensor() if session_of("a tensor statement").context.graph is not None:
            return scalar_of(session_of("a tensor statement").capture(operand), span)
    return number_value(operand, span)


class PointValue(PrimitiveOperators):
    """A scalar at every point of the statement that will use it.

    ``definitions`` are the local definitions that ``value`` mentions, by their generated names.
    """

    __slots__ = ("_uses", "definitions", "span", "value")

    def __init__(self, value: Value, definitions: Mapping[str, Definition], span: Span | None = None) -> None:
        self.value = value
        self.definitions: Mapping[str, Definition] = dict(definitions)
        self.span = span
        self._uses = 0

    @staticmethod
    def define(name: str, value: Value, definitions: Mapping[str, Definition], span: Span | None = None) -> PointValue:
        """The local definition ``name = value``: computed once per point however often it is used."""
        return PointValue(*define(name, value, definitions, span), span)

    @staticmethod
    def mark(name: str, value: Value, definitions: Mapping[str, Definition], span: Span | None = None) -> PointValue:
        """The same, under a name however small the value is."""
        return PointValue(*marked(name, value, definitions, span), span)

    @property
    def dtype(self) -> ElementType:
        """The element type, as an array has it."""
        return ElementType(self.value.logical)

    def named(self, name: str) -> PointValue:
        """The same value under a name, so that it is computed once per point."""
        return PointValue.define(name, self.value, self.definitions, self.span)

    def use(self) -> None:
        """Note that something is computed with it: a large value that is used again gets a name."""
        self._uses += 1
        if self._uses > 1:
            self.value, self.definitions = bounded(self.value, self.definitions, self.span, nodes=_REUSED)

    def index_names(self) -> tuple[str, ...]:
        """The index variables that the value mentions, in the order of their first occurrence."""
        return index_names(self.value.expr, self.definitions)

    def variables(self) -> frozenset[str]:
        """All index variables that the value mentions, those of generators around it too."""
        expr, known = self.value.expr, self.definitions
        return frozenset((*index_names(expr, known), *outside_names(expr, known)))

    def keep_apart(self, letters: frozenset[str]) -> None:
        """A function that is given these ``letters`` is called for each point, if the value mentions one of them."""
        if letters and not letters.isdisjoint(self.variables()):
            raise AtEachPoint

    def within(self, scope: Mapping[str, Expr]) -> PointValue:
        """The same value inside of a generator: its index variables that the generator binds are the generator's."""
        return PointValue(*captured(self.value, self.definitions, scope), self.span)

    def __repr__(self) -> str:
        return f"<{self.value.logical} scalar at a point>"

    # -- what a scalar at a point cannot answer while Python runs --------------------------------------------

    def __bool__(self) -> bool:
        raise DslSyntaxError.at(
            "Python branches on a value that is different at every point",
            self.span,
            "write `a if condition else b` in the statement, or in a function that it calls",
        )

    def __index__(self) -> Any:
        session = current_session()
        if session is not None:  # `row[a]` is whole-array indexing outside of statements, which one point can do
            session.needs_one_point()
        return self._no_number()

    def _no_number(self) -> Any:
        raise DtypeError.at(
            "Python asks for the number behind a value that is different at every point",
            self.span,
            "use the primitives of the language or np.exp and the like; `math` functions need plain numbers",
        )

    def __array__(self, *_: object, **_options: object) -> Any:
        session = current_session()
        if session is not None:  # whole arrays take it outside of statements, which one point can do
            session.needs_one_point()
        raise DtypeError.at(
            "NumPy asks for the array behind a value that is different at every point",
            self.span,
            "use the primitives of the language or np.exp and the like; other functions of NumPy take whole arrays",
        )

    __float__ = __int__ = __complex__ = __len__ = __iter__ = __reversed__ = _no_number

    def __getitem__(self, key: object) -> Any:
        raise ShapeError.at("a scalar at a point has no axes to index", self.span)

    def _composed(self, _: object) -> Any:
        raise ShapeError.at("`@` of a scalar at a point", self.span, "write the sum: `sum(a[i, k] * b[k, j])`")

    __matmul__ = __rmatmul__ = _composed

    __deepcopy__ = itself

    def __pos__(self) -> PointValue:
        of_a_number("pos", self.value, self.span)
        return self

    def _fault(self, fact: str, hint: str) -> TcdslError:
        return DslSyntaxError.at(fact, self.span, hint)

    def _combined(self, primitive: str, *operands: object) -> Any:
        # The primitive on operands, one of which this is.
        return combine_points(primitive, operands)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **kwargs: object) -> Any:
        if ufunc in (np.positive, np.conjugate) and method == "__call__" and not kwargs:
            return +self
        name, row = recognize(ufunc), UFUNCS.get(ufunc)
        if row is not None and method == "__call__" and not kwargs:
            return row(*inputs)
        if name is None or method != "__call__" or kwargs:
            raise DtypeError.at(f"{name_of_ufunc(ufunc)} is not a primitive of the language", self.span)
        return combine_points(name, inputs)


def meeting_an_array(span: Span | None) -> TcdslError:
    """The error of whole-array arithmetic with a scalar at a point; a function that a statement calls may do it."""
    session = current_session()
    if session is not None:
        session.needs_one_point()
        span = session.location() or span
    hint = "write a statement that indexes the array too, as in `y[i] = A[i] * z`"
    return ShapeError.at("a value that is different at every point meets a whole array", span, hint)


def combine_points(name: str, operands: Sequence[object]) -> Any:
    """A function of the language on operands one of which is a `PointValue`; ``NotImplemented`` if one is no scalar."""
    spans = [operand.span for operand in operands if isinstance(operand, PointValue) and operand.span is not None]
    span = spans[0] if spans else None
    for operand in operands:
        if isinstance(operand, PointValue):
            operand.use()
    values: list[Value] = []
    definitions: dict[str, Definition] = {}
    for operand in operands:
        value = scalar_of(operand, span)
        if value is None:
            if getattr(operand, "shape", ()):
                raise meeting_an_array(span)
            if name not in ("eq", "ne") and type(operand).__module__ == "builtins":
                fact = f"a {type(operand).__name__} does not take part in arithmetic at a point"
                hint = (
                    instead_of(operand, "")
                    or "tensor statements compute with numbers, sizes, index variables and cells"
                )
                raise DtypeError.at(fact, span, hint)
            return NotImplemented
        values.append(value)
        if isinstance(operand, PointValue):
            definitions.update(operand.definitions)
    return PointValue(*bounded(call_function(name, values, span), definitions, span), span)


def as_points(given: Any, definitions: Mapping[str, Definition], span: Span | None) -> Any:
    """``given`` as Python gets it: `Value`s, also those in tuples and lists, as `PointValue`s."""
    if isinstance(given, Value):
        return PointValue(given, definitions, span)
    if type(given) in (tuple, list):
        return type(given)(as_points(each, definitions, span) for each in given)
    return given


def leaves_of(given: Any) -> list[Any]:
    """What is in ``given``, also in tuples, lists and mappings."""
    if isinstance(given, Mapping):
        given = tuple(given.values())
    if isinstance(given, tuple | list):
        return [leaf for each in given for leaf in leaves_of(each)]
    return [given]


def points_in(given: Any) -> list[PointValue]:
    """The scalars at a point among them."""
    return [each for each in leaves_of(given) if isinstance(each, PointValue)]


class BareReduction(PendingArray):
    """A bare reduction that has a name: ``point`` in tensor statements, a tensor of rank 0 elsewhere.

    ``record(point, label)`` records the statement that computes it.
    """

    __slots__ = ("_record", "label", "point")

    def __init__(
        self, builder: OperatorHost, label: str, point: PointValue, record: Callable[[PointValue, str], SymbolicTensor]
    ) -> None:
        self.builder = builder
        self._element_type = stored_dtype(point.value)
        self.extents = ()
        self.rows = RowRanks()
        self.label = label
        self.point = point
        self._record = record
        self._made = None
        self.base = self.replaced = None
        self.uses = 0

    @property
    def element(self) -> Value:
        """The cell of the tensor."""
        return self.materialize().cell((), self.point.span)

    def materialize(self, label: str = "") -> SymbolicTensor:
        """The tensor; the statement that computes it is recorded at the first call."""
        if self._made is None or not self.builder.knows(self._made.name):
            self.point.keep_apart(session_of("a tensor statement").context.letters)
            self._made = self._record(self.point, self.label)
        return self._made


def point_of(given: object) -> PointValue | None:
    """The scalar at a point that an object is in a tensor statement, if it is one."""
    if isinstance(given, BareReduction):
        return given.point
    return given if isinstance(given, PointValue) else None


def standing_alone(value: Value) -> Value:
    """``value`` with reductions that bind all of their variables where there is nothing else for them to bind."""

    def rule(node: Expr) -> Expr:
        if isinstance(node, Reduction) and not node.variables:
            return replace(node, alone=True)
        return node

    return value.mapped(lambda expr: transform(expr, rule))
