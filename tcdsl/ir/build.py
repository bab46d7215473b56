"""Typed construction of expressions, with the simplifications that cost nothing.

``apply("add", a, b)`` checks the types against the primitive's row and computes the result's type; neutral operands and
constant integer arithmetic disappear. Everything that builds expressions after the front end uses these functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial, reduce

from tcdsl.ir.accumulators import neutral_element
from tcdsl.ir.constant_folding import fold
from tcdsl.ir.dtypes import INTEGER, compute_dtype, is_boolean, is_floating, is_integer
from tcdsl.ir.exact import EXACT
from tcdsl.ir.expressions import Apply, Boundary, Cast, Constant, Expr, IndexValue, Read, SizeValue, children
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.span import Span

__all__ = [
    "all_of",
    "apply",
    "cast",
    "conjuncts",
    "constant",
    "in_range",
    "index",
    "integer",
    "neutral_constant",
    "plain_read",
    "product_of",
    "range_tests",
    "result_dtype",
    "size",
    "truth",
]


def constant(value: bool | int | float, dtype: str, span: Span | None = None) -> Constant:
    """``value`` as a constant of ``dtype``, converted to Python's type of that kind. NaN is always ``math.nan``."""
    if is_boolean(dtype):
        return Constant(bool(value), dtype, span)
    if is_floating(dtype):
        number = float(value)
        return Constant(math.nan if math.isnan(number) else number, dtype, span)
    return Constant(int(value), dtype, span)


def integer(value: int) -> Constant:
    """An int64 constant, as in indices and sizes."""
    return Constant(int(value), "int64")


def truth(value: bool) -> Constant:
    """A bool constant."""
    return Constant(bool(value), "bool")


def index(name: str) -> IndexValue:
    """The index variable ``name``."""
    return IndexValue(name)


def size(name: str) -> SizeValue:
    """The size ``name``."""
    return SizeValue(name)


def plain_read(tensor: str, indices: Iterable[Expr], dtype: str, span: Span | None = None) -> Read:
    """``tensor[indices]``, which are in range."""
    cell = tuple(indices)
    return Read(tensor, cell, (Boundary.SKIP,) * len(cell), dtype, span=span)


def cast(operand: Expr, dtype: str, span: Span | None = None) -> Expr:
    """``operand`` as ``dtype``; nothing if it has that type, folded if it is a constant and the value survives."""
    if operand.dtype == dtype:
        return operand
    if isinstance(operand, Constant) and (is_floating(dtype) or (is_integer(dtype) and not is_floating(operand.dtype))):
        return constant(operand.value, dtype, operand.span)
    return Cast(operand, dtype, span)


def in_range(position: Expr, extent: Expr) -> Expr:
    """``0 <= position and position < extent``."""
    return apply("and_", *range_tests(position, extent))


def range_tests(position: Expr, extent: Expr) -> tuple[Expr, Expr]:
    """``0 <= position`` and ``position < extent``, in the type of the position."""
    zero, end = cast(integer(0), position.dtype), cast(extent, position.dtype)
    return apply("ge", position, zero, span=position.span), apply("lt", position, end, span=position.span)


_KIND_CHECKS: Mapping[str, Callable[[str], bool]] = {
    "real": is_floating,
    "number": lambda dtype: dtype != "bool",
    "any": lambda dtype: True,
    "compare": lambda dtype: True,
    "logical": is_boolean,
    "bits": lambda dtype: not is_floating(dtype),
    "integer": is_integer,
    "select": lambda dtype: True,
}


def result_dtype(primitive: str, dtypes: Iterable[str]) -> str:
    """The type of a primitive's result. ``TypeError`` if the row does not take such arguments (a fault of tcdsl)."""
    return _result_dtype(primitive, tuple(dtypes))


@cache
def _result_dtype(primitive: str, given: tuple[str, ...]) -> str:
    row = PRIMITIVES[primitive]
    if len(given) != row.arity:
        raise TypeError(f"{primitive} takes {row.arity} arguments, not {len(given)}")
    operands = given[1:] if row.kind == "select" else given
    if row.kind == "select" and given[0] != "bool":
        raise TypeError(f"the first argument of {primitive} is {given[0]}, not bool")
    if len(set(operands)) != 1 or not _KIND_CHECKS[row.kind](operands[0]):
        raise TypeError(f"{primitive} ({row.kind}) does not take {', '.join(given)}")
    return "bool" if row.kind in ("compare", "logical") else operands[0]


def _is(expr: Expr, value: float) -> bool:
    # A constant equal to value; -0.0 is not 0 here, because x + (-0.0) and x + 0.0 differ for x = -0.0.
    return isinstance(expr, Constant) and expr.value == value and not (value == 0 and math.copysign(1, expr.value) < 0)


# Below: only rules that keep NaN, inf and signed zeros as they are; the simplifier of tcdsl.autodiff knows more. None
# stands for no simplification.


def _simplified_sum(primitive: str, first: Expr, second: Expr, exact: bool) -> Expr | None:
    # x + 0.0 stays, because it turns -0.0 into 0.0.
    if _is(second, 0) and (exact or primitive == "sub"):
        return first
    if isinstance(second, Constant) and second.dtype in ("int64", INTEGER) and -(2**63) < second.value < 0:
        # i + -1 is i - 1.
        return apply("sub" if primitive == "add" else "add", first, constant(-int(second.value), second.dtype))
    if primitive == "add":
        return second if exact and _is(first, 0) else None
    return constant(0, first.dtype) if exact and first == second else None


def _simplified_product(first: Expr, second: Expr, exact: bool) -> Expr | None:
    if _is(first, 1):
        return second
    if _is(second, 1):
        return first
    return constant(0, first.dtype) if exact and (_is(first, 0) or _is(second, 0)) else None


def _simplified_logic(primitive: str, arguments: tuple[Expr, ...]) -> Expr | None:
    first, *others = arguments
    if primitive == "where":
        chosen, other = others
        if isinstance(first, Constant):
            return chosen if first.value else other
        return chosen if chosen == other else None
    if primitive == "not_":
        return truth(not first.value) if isinstance(first, Constant) else None
    # A first operand is evaluated in any case, so one that the second decides alone stays.
    neutral = primitive == "and_"
    if isinstance(first, Constant):
        return others[0] if first.value == neutral else first
    return first if _is(others[0], neutral) else None


def _simplified(primitive: str, arguments: tuple[Expr, ...]) -> Expr | None:
    first, last = arguments[0], arguments[-1]
    exact = not is_floating(first.dtype)
    match primitive:
        case "add" | "sub":
            return _simplified_sum(primitive, first, last, exact)
        case "mul":
            return _simplified_product(first, last, exact)
        case "div" | "floor_div" if _is(last, 1) and (exact or primitive == "div"):
            return first
        case "mod" if exact and _is(last, 1):
            return constant(0, first.dtype)
        case "max" | "min" if first == last:
            return first
        case "neg" if isinstance(first, Apply) and first.primitive == "neg":
            return first.arguments[0]
        case "not_" | "and_" | "or_" | "where":
            return _simplified_logic(primitive, arguments)
    return None


def apply(primitive: str, *arguments: Expr, span: Span | None = None) -> Expr:
    """``apply("mul", a, b)``: the primitive on arguments of fitting types, simplified where that is free."""
    dtype = _result_dtype(primitive, tuple([argument.dtype for argument in arguments]))
    if primitive in EXACT and all(isinstance(a, Constant) and a.dtype in ("int64", INTEGER) for a in arguments):
        folded = fold(primitive, [a.value for a in arguments if isinstance(a, Constant)])
        if folded is not None and (dtype in ("bool", INTEGER) or -(2**63) <= folded < 2**63):
            return constant(folded, dtype, span)
    simplified = _simplified(primitive, arguments)
    return Apply(primitive, arguments, dtype, span) if simplified is None else simplified


def neutral_constant(accumulator: str, dtype: str) -> Constant:
    """The constant that a cell of a tensor of ``dtype`` starts from."""
    return constant(neutral_element(accumulator, dtype), compute_dtype(dtype))


def all_of(conditions: Iterable[Expr]) -> Expr:
    """The conjunction of ``conditions``, the first one evaluated first; true if there are none."""
    every: Expr = truth(True)
    return reduce(partial(apply, "and_"), conditions, every)


def product_of(factors: Iterable[Expr]) -> Expr:
    """The product of integer ``factors``; one if there are none."""
    one: Expr = integer(1)
    return reduce(partial(apply, "mul"), factors, one)


def conjuncts(*conditions: Expr) -> list[Expr]:
    """The parts of conjunctions, in order: ``a and b and c`` has three."""
    found: list[Expr] = []
    for condition in conditions:
        joined = isinstance(condition, Apply) and condition.primitive == "and_"
        found.extend(conjuncts(*children(condition)) if joined else [condition])
    return found
