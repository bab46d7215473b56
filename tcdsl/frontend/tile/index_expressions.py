"""`TensorIndex` and its arithmetic: index expressions, which are linear, and constraints on them.

::

    i, j = TensorIndexes(2)
    I[2 * i + j - 1]          expressions of indices, integers and sizes
    I[(i - 1) // 2]           where 2 divides i - 1; other points are not valid
    O.add_constraint(j < 2)   0 <= j < 2

An index ranges over all integers; what it indexes, and constraints, say which of them count.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

from tcdsl.errors import DslSyntaxError, DtypeError, TcdslError
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.operators import IndexSymbol
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.frontend.tile.sizes import extent_expression, how_many, kind_of, known_size
from tcdsl.frontend.tile.user_lines import fault, location
from tcdsl.ir.build import apply, in_range, index, integer
from tcdsl.ir.expressions import Expr, index_variables
from tcdsl.span import Span
from tcdsl.tracebacks import user_facing

__all__ = ["Constraint", "IndexExpression", "TensorIndex", "TensorIndexes", "as_index"]

_NUMBERS = itertools.count(1)
_BETWEEN = "__"


@dataclass(frozen=True, slots=True)
class Constraint:
    """``j < 2``: the expression is at least 0 and less than the bound."""

    holds: Expr
    divisions: tuple[Expr, ...]
    span: Span | None

    def __bool__(self) -> bool:
        raise fault(
            DslSyntaxError,
            "a constraint has no truth value",
            "give it to the output: `O.add_constraint(j < 2)`, which means 0 <= j < 2",
        )


def _refused(written: str) -> Any:
    def method(self: IndexExpression, *others: object) -> Any:
        raise fault(
            DslSyntaxError,
            f"`{written}` of an index, whose expressions are linear",
            "write sums of indices, integers and sizes, multiples by these, and `//` by an integer",
        )

    return method


def _no_constraint(written: str, instead: str) -> Any:
    def method(self: IndexExpression, other: object) -> Any:
        raise fault(
            DslSyntaxError,
            f"a constraint is written with `<`, not with `{written}`",
            f"{instead}; `i < n` means 0 <= i < n",
        )

    return method


class IndexExpression(IndexSymbol):
    """A linear expression of indices, which operators make. ``divisions`` are what has to divide for it to be valid."""

    __slots__ = ("divisions", "expr")
    __array_ufunc__ = None
    __hash__ = object.__hash__

    def __init__(self, expr: Expr, divisions: tuple[Expr, ...] = ()) -> None:
        self.expr = expr
        self.divisions = divisions

    def _with(self, primitive: str, left: object, right: object) -> Any:
        operands = [as_index(each) for each in (left, right)]
        divisions = tuple(dict.fromkeys((*operands[0].divisions, *operands[1].divisions)))
        return IndexExpression(apply(primitive, operands[0].expr, operands[1].expr), divisions)

    def __add__(self, other: object) -> Any:
        return self._with("add", self, other)

    def __radd__(self, other: object) -> Any:
        return self._with("add", other, self)

    def __sub__(self, other: object) -> Any:
        return self._with("sub", self, other)

    def __rsub__(self, other: object) -> Any:
        return self._with("sub", other, self)

    def __mul__(self, other: object) -> Any:
        if index_variables(self.expr) and index_variables(as_index(other).expr):
            raise fault(
                DslSyntaxError,
                "the product of two indices, whose expressions are linear",
                "multiply an index by an integer or a size",
            )
        return self._with("mul", self, other)

    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return self._with("sub", 0, self)

    def __pos__(self) -> Any:
        return self

    def __floordiv__(self, other: object) -> Any:
        divisor = known_size(other)
        if not isinstance(divisor, int) or divisor == 0:
            fact = "an index is divided by what is no integer"
            if isinstance(divisor, int):
                fact = "an index is divided by 0"
            elif isinstance(divisor, SymbolicSize):
                fact = "an index is divided by a size"
            raise fault(DslSyntaxError, fact, "write `//` with an integer that staging knows: `(i - 1) // 2`")
        whole = self if divisor > 0 else -self
        quotient = apply("floor_div", whole.expr, integer(abs(divisor)))
        exact = apply("eq", apply("mod", whole.expr, integer(abs(divisor))), integer(0))
        return IndexExpression(quotient, tuple(dict.fromkeys((*self.divisions, exact))))

    __truediv__ = _refused("/")
    __mod__, __pow__, __matmul__ = _refused("%"), _refused("**"), _refused("@")
    __rfloordiv__, __rtruediv__, __rmod__, __rpow__ = _refused("//"), _refused("/"), _refused("%"), _refused("**")
    __and__, __or__, __xor__, __invert__ = _refused("&"), _refused("|"), _refused("^"), _refused("~")
    __lshift__, __rshift__, __abs__ = _refused("<<"), _refused(">>"), _refused("abs")

    def __lt__(self, other: object) -> Any:
        if isinstance(other, IndexExpression) and index_variables(other.expr):
            raise fault(
                DslSyntaxError,
                "an index on the right of a constraint",
                "put all indices on the left: `i - k < N` says 0 <= i - k, which is k <= i",
            )
        bound = as_index(other)
        return Constraint(in_range(self.expr, bound.expr), self.divisions, location())

    __le__ = _no_constraint("<=", "write `j < n + 1` for `j <= n`")
    __gt__ = _no_constraint(">", "write `n - j < n` for `j > 0`: that is 1 <= j")
    __ge__ = _no_constraint(">=", "0 <= j is part of every constraint on j")

    def __repr__(self) -> str:
        from tcdsl.ir.text.expression_printer import format_expr

        return f"<index {format_expr(self.expr)}>"


class TensorIndex(IndexExpression):
    """``i = TensorIndex()``: a symbol that stands for all integers. ``name`` is what programs call it."""

    __slots__ = ("symbol",)

    def __init__(self, name: str = "") -> None:
        #: What stands for it in expressions, unlike any other.
        self.symbol = f"{name}{_BETWEEN}{next(_NUMBERS)}"
        super().__init__(index(self.symbol))


@user_facing
def TensorIndexes(count: int) -> list[TensorIndex]:  # noqa: N802  # Tile's name
    """``i, j, k = TensorIndexes(3)``."""
    return [TensorIndex() for _ in range(how_many(count, "TensorIndexes"))]


def given_name(symbol: str) -> str:
    """The name that a `TensorIndex` was given, of its symbol."""
    return symbol.rpartition(_BETWEEN)[0]


def as_index(value: object) -> IndexExpression:
    """An index expression, an integer or a size as an index expression. `DtypeError`; `DslSyntaxError` for others."""
    if isinstance(value, IndexExpression):
        return value
    size = known_size(value)
    if size is None:
        raise _no_index(value)
    return IndexExpression(extent_expression(size))


def _no_index(value: object) -> TcdslError:
    hint = "indices are expressions of `TensorIndex`es, integers and sizes"
    if isinstance(value, SymbolicArray | GraphTensor):
        return fault(DslSyntaxError, "a tensor as an index", f"{hint}; positions that are data go to `gather(x, y)`")
    if isinstance(value, float | SymbolicNumber):
        return fault(DtypeError, "a float as an index", f"{hint}; `//` divides to an integer")
    if isinstance(value, slice) or value is None or value is Ellipsis:
        return fault(DslSyntaxError, "a slice beside an index", f"{hint}, one for each axis")
    return fault(DslSyntaxError, f"{kind_of(value)} as an index", hint)
