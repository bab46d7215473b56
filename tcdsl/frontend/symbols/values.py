"""Typed scalar values: an expression with the type that its user sees, and NumPy 2's promotion of these types.

::

    x = Value(Read("x", ...), None, "float32")
    common_dtype((Value.of(2), x))        float32: a Python number is weak, it takes the type of what it meets

`tcdsl.frontend.symbols.scalar_primitives` computes with them. float16 is storage only: such a value is computed as
float32 while ``logical`` remembers the type that the user sees. Nothing here knows about syntax trees; index notation
and whole-array arithmetic share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tcdsl.errors import DtypeError, TcdslError
from tcdsl.ir.build import apply, cast, constant, integer, result_dtype
from tcdsl.ir.dtypes import (
    DTYPES,
    INTEGER,
    accumulation_dtype,
    compute_dtype,
    is_boolean,
    is_floating,
    is_integer,
    same_kind,
)
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, Local, Read, Reduction, walk
from tcdsl.span import Span

__all__ = [
    "Conversion",
    "Product",
    "Value",
    "applied",
    "as_truth",
    "cast_value",
    "common_dtype",
    "convert",
    "int64_constant",
    "require_fitting",
    "store_value",
    "stored_dtype",
    "sum_dtype",
    "value_fault",
]

_WEAK_DTYPES = {"bool": "bool", "int": "int64", "float": "float64"}
_WEAK_SAMPLES: dict[str, Any] = {"bool": False, "int": 0, "float": 0.0}


@dataclass(frozen=True, slots=True)
class Value:
    """A scalar at a point: its expression, and the type that it has for the user.

    ``weak`` is ``bool``, ``int`` or ``float`` for Python scalars, sizes, index variables and what is computed from them
    alone: they take the type of what they meet. ``logical`` is the NumPy type, of whole numbers int64, or a smaller one
    if it is not known yet; ``expr.dtype`` is its compute type.
    ``product`` is there for a product with brackets: what it is multiplied or divided by is guarded by them too.
    """

    expr: Expr
    weak: str | None
    logical: str
    product: Product | None = None

    @staticmethod
    def of(number: bool | int | float | np.generic, span: Span | None = None) -> Value:
        """A number as a value: Python's are weak, NumPy's have their type. `DtypeError` for other element types."""
        if isinstance(number, np.generic):
            dtype = str(number.dtype)
            if dtype not in DTYPES:
                raise value_fault(
                    f"numbers of type {dtype} are not handled", span, f"convert to one of {', '.join(DTYPES)}"
                )
            return Value(constant(number.item(), compute_dtype(dtype), span), None, dtype)
        if isinstance(number, bool):
            return Value(Constant(number, "bool", span), "bool", "bool")
        if isinstance(number, int):
            return Value(Constant(int(number), "int64", span), "int", "int64")
        return Value(constant(number, "float64", span), "float", "float64")

    @property
    def number(self) -> bool | int | float | None:
        """The Python number that this is, if it is one that staging knows and that is weak."""
        return self.expr.value if self.weak is not None and isinstance(self.expr, Constant) else None

    def with_expr(self, expr: Expr) -> Value:
        """The same type, another expression of that type."""
        return replace(self, expr=expr, product=None)

    def mapped(self, rule: Callable[[Expr], Expr]) -> Value:
        """The same value after ``rule``, which renames or substitutes leaves, its brackets included."""
        product = self.product
        if product is not None:
            product = Product(tuple(map(rule, product.brackets)), product.rest.mapped(rule))
        return replace(self, expr=rule(self.expr), product=product)


@dataclass(frozen=True, slots=True)
class Product:
    """A product with Iverson's brackets: truth values as factors, those of a quotient's numerator included.

    Where one of ``brackets`` is false the product is 0, and ``rest``, what all other factors make, is not evaluated: no
    NaN, no read out of range. It does not matter how the product is parenthesized, negated or divided, or which of its
    factors stand in helper functions and local definitions.
    """

    brackets: tuple[Expr, ...]
    rest: Value


def value_fault(fact: str, span: Span | None, hint: str = "", kind: type[TcdslError] = DtypeError) -> TcdslError:
    """What is wrong with a value at ``span``."""
    return kind.at(fact, span, hint)


# -- types ---------------------------------------------------------------------------------------------------


def common_dtype(values: Sequence[Value]) -> tuple[str, str | None]:
    """The type in which ``values`` meet, and its weakness if all of them are weak."""
    strong = [np.dtype(value.logical) for value in values if value.weak is None]
    kinds = [value.weak for value in values if value.weak is not None]
    if not strong:
        weak = max(kinds, key=list(_WEAK_DTYPES).index)
        narrow = [value.logical for value in values if value.weak == weak and value.logical != _WEAK_DTYPES[weak]]
        return narrow[0] if narrow else _WEAK_DTYPES[weak], weak
    return str(np.result_type(*strong, *(_WEAK_SAMPLES[kind] for kind in kinds))), None


def convert(value: Value, dtype: str, span: Span | None = None) -> Expr:
    """``value`` in the compute type of ``dtype``, as NumPy converts operands.

    A Python integer that does not fit stays what it is: in an index it means that number, and `require_fitting` refuses
    it elsewhere.
    """
    number = value.number
    if isinstance(number, int) and not isinstance(number, bool) and is_integer(dtype):
        return Constant(int(number), dtype, span or value.expr.span)
    if isinstance(value.expr, Constant) and value.weak is None and is_integer(dtype) and is_integer(value.logical):
        return constant(np.array(value.expr.value, value.logical).astype(dtype).item(), dtype, value.expr.span)
    try:
        return cast(value.expr, compute_dtype(dtype), span or value.expr.span)
    except OverflowError:
        assert isinstance(number, int)
        raise too_large(number, dtype, span or value.expr.span) from None


def require_fitting(expr: Expr, span: Span | None = None) -> None:
    """`DtypeError` if ``expr`` is a Python integer that does not fit into the type that it takes as a value."""
    if isinstance(expr, Constant) and expr.dtype != INTEGER and is_integer(expr.dtype):
        ends = np.iinfo(expr.dtype)
        if not ends.min <= expr.value <= ends.max:
            hint = f"{expr.dtype} holds {ends.min} to {ends.max}"
            hint += "" if expr.dtype == "int64" else "; convert the other operand to a wider type, as in int64(x)"
            raise too_large(int(expr.value), expr.dtype, expr.span or span, hint)


def cast_value(value: Value, dtype: str, span: Span | None = None) -> Value:
    """``float32(x)``: what ``ndarray.astype`` gives. The result has this type whatever it meets later."""
    if is_boolean(dtype):
        return Value(as_truth(value, span).expr, None, "bool")
    converted = convert(value, dtype, span)
    require_fitting(converted, span)
    return Value(converted, None, dtype)


@dataclass(frozen=True, slots=True)
class Conversion(Cast):
    """A conversion of an integer that is written, ``int8(n)``: it wraps around in indices too, where others do not."""


def stored_dtype(value: Value) -> str:
    """The element type of a new tensor that holds ``value``: weak numbers become bool, int64 or float64."""
    return value.logical


def sum_dtype(value: Value) -> str:
    """The element type of a new sum or product of ``value``: 64-bit for bool and small integers, as in ``np.sum``."""
    return accumulation_dtype(stored_dtype(value))


def store_value(value: Value, dtype: str, span: Span | None = None, advice: str = "") -> Expr:
    """``value`` in the compute type of a target of type ``dtype``. `DtypeError`: NumPy's same-kind rule.

    ``advice`` follows that of the error.
    """
    if value.weak in (None, "bool"):
        allowed = same_kind(value.logical, dtype)
    else:
        allowed = is_floating(dtype) or (is_integer(dtype) and value.weak == "int")
    if not allowed:
        given = value.logical if value.weak is None else f"{value.weak} numbers"
        raise value_fault(
            f"a tensor of {dtype} cannot hold {given}{' values' if value.weak is None else ''}",
            span or value.expr.span,
            f"write `{dtype}(...)` around the value to convert it{advice}",
        )
    converted = convert(value, dtype, span)
    require_fitting(converted, span)
    return converted


def as_truth(value: Value, span: Span | None = None) -> Value:
    """``value`` as a truth value: numbers are true unless they are 0, as in Python and NumPy."""
    if is_boolean(value.logical):
        return value
    zero = constant(0, value.expr.dtype)
    return Value(applied("ne", (value.expr, zero), span), None, "bool")


def applied(primitive: str, arguments: tuple[Expr, ...], span: Span | None) -> Expr:
    """A primitive on arguments of its types, simplified where every access stays: the range of `x[i] * 0` is x's."""
    result = apply(primitive, *arguments, span=span)
    if isinstance(result, Apply) and result.primitive == primitive:
        return result
    if _accesses(arguments) <= _accesses((result,)):
        return result
    return Apply(primitive, arguments, result_dtype(primitive, (argument.dtype for argument in arguments)), span)


_LEAVES = (Read, Local, Reduction)


def _accesses(expressions: Sequence[Expr]) -> set[Expr]:
    # A conversion that is still open counts as an access.
    found: set[Expr] = set()
    for expr in expressions:
        found |= {node for node in walk(expr) if isinstance(node, _LEAVES) or type(node).__module__ != Apply.__module__}
    return found


# Longer numbers are shown by their ends.
_MOST_DIGITS = 40


def int64_constant(number: int, span: Span | None) -> Constant:
    """``number`` as a constant of the program; `DtypeError` if it does not fit into 64 bits."""
    if not -(2**63) <= number < 2**63:
        raise too_large(number, "int64", span)
    return integer(number)


def too_large(number: int, dtype: str, span: Span | None, hint: str = "") -> TcdslError:
    """The error of a number that ``dtype`` cannot hold."""
    if dtype == "int64":
        hint = hint or f"{dtype} holds {-(2**63)} to {2**63 - 1}"
    fact = f"the integer {shown_number(number)} does not fit in {dtype}"
    return DtypeError.at(fact, span, hint)


def shown_number(number: int) -> str:
    """``number`` in digits; the first of them if there are many."""
    bits = abs(number).bit_length()
    if bits < 3 * _MOST_DIGITS:
        return str(number)
    digits = int(bits * 0.30103)
    return f"{'-' if number < 0 else ''}{abs(number) // 10 ** (digits - 5)}... (about {digits} digits)"
