"""Primitives on `Value`s, which is where NumPy 2's promotion, Iverson's brackets and integer powers are applied.

::

    apply_primitive("mul", (Value.of(2), x))                 float32: a Python number is weak
    apply_primitive("div", (n, n))                           float64 for integers n
    apply_primitive("mul", (x > 0, log(x)))                  where(x > 0, log(x), 0)

Casts become explicit here, so that the expressions obey the IR's rule of one operand type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import numpy as np

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.symbols.values import (
    Conversion,
    Product,
    Value,
    applied,
    as_truth,
    cast_value,
    common_dtype,
    convert,
    value_fault,
)
from tcdsl.ir.build import cast, constant
from tcdsl.ir.constant_folding import fold
from tcdsl.ir.dtypes import DTYPES, compute_dtype, is_boolean, is_floating, is_integer
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, Let, Local, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.text.expression_printer import format_expr
from tcdsl.span import Span

__all__ = ["apply_primitive", "call_function", "of_a_number"]

# Beyond this, exponents are left to the pow primitive; a power of two of this size takes 16 multiplications.
_LARGEST_EXPONENT = 2**16


def apply_primitive(name: str, values: Sequence[Value], span: Span | None = None) -> Value:
    """The primitive ``name`` of the table on ``values``, after promotion. `DtypeError`; `DslSyntaxError` (counts)."""
    row = PRIMITIVES[name]
    if len(values) != row.arity:
        raise value_fault(
            f"`{name}` takes {row.arity} argument{'s' * (row.arity != 1)}, not {len(values)}", span, kind=DslSyntaxError
        )
    folded = fold(name, [value.number for value in values])
    if folded is not None:
        return Value.of(folded, span)
    if name in ("floor_div", "mod") and values[0].weak == values[1].weak == "int" and values[1].number == 0:
        raise value_fault(f"`{row.operator}` by 0", span, "divide by a number that is not 0", DslSyntaxError)
    if name in _OF_NUMBERS:
        of_a_number(name, values[0], span)
    if any(value.product or is_boolean(value.logical) for value in values[: _FACTORS.get(name, 0)]):
        return _bracketed(name, values, span)
    if name == "pow":
        return _power(values[0], values[1], span)
    return _KINDS[row.kind](name, values, span)


def of_a_number(name: str, value: Value, span: Span | None) -> Value:
    """``value``, of which a number is asked: `DtypeError` for ``-a``, ``+a`` and ``sign(a)`` of a truth value."""
    if is_boolean(value.logical) and value.weak is None:
        sign, instead = _OF_NUMBERS[name]
        raise value_fault(f"`{sign}` of a truth value, which NumPy does not have", span, instead)
    return value


def _numeric(name: str, values: Sequence[Value], span: Span | None) -> Value:
    dtype, weak = common_dtype(values)
    if is_boolean(dtype):
        if name == "abs":
            return values[0]
        if name in ("max", "min"):
            return _logical("or_" if name == "max" else "and_", values, span)
        if name == "add" and weak is None:
            return _logical("or_", values, span)
        if name == "sub" and weak is None:
            hint = "write `a != b` for where they differ, or convert what is to count: `int64(a) - int64(b)`"
            raise value_fault("`-` between truth values, which NumPy does not subtract", span, hint)
        # bool counts as an integer in other arithmetic.
        dtype = "int64"
        weak = None
    if weak and dtype == "uint64" and (name == "neg" or (name == "sub" and values[1].expr.dtype == "uint64")):
        # An integer of the call that int64 does not hold.
        texts = [format_expr(each.expr) for each in values]
        fact = f"`{' - '.join(texts) if name == 'sub' else f'-{texts[0]}'}` does not fit into 64 bits"
        raise value_fault(fact, span, "compute with a float, `float(n)`, or with the arrays first: `x - n`")
    expr = applied(name, tuple(convert(value, dtype, span) for value in values), span)
    return Value(expr, weak, dtype)


def _real(name: str, values: Sequence[Value], span: Span | None) -> Value:
    dtype, weak = common_dtype(values)
    if not is_floating(dtype):
        if name in ("floor", "ceil") or (name == "round" and is_integer(dtype)):
            return values[0]
        dtype, weak = "float64", "float" if weak else None
    expr = applied(name, tuple(convert(value, dtype, span) for value in values), span)
    return Value(expr, weak, dtype)


def _any(name: str, values: Sequence[Value], span: Span | None) -> Value:
    # id, fst, snd: the type is that of the argument that they give; the others are converted to it.
    kept = values[1] if name == "snd" else values[0]
    expr = applied(name, tuple(cast(value.expr, kept.expr.dtype) for value in values), span)
    return Value(expr, kept.weak, kept.logical)


def _compare(name: str, values: Sequence[Value], span: Span | None) -> Value:
    left, right = (_widened(value, other) for value, other in (values, (values[1], values[0])))
    dtype, _ = common_dtype((left, right))
    if is_floating(dtype) and is_integer(left.logical) and is_integer(right.logical):
        return Value(_compare_mixed_signs(name, left, right, span), None, "bool")
    expr = applied(name, (convert(left, dtype, span), convert(right, dtype, span)), span)
    return Value(expr, None, "bool")


def _widened(value: Value, other: Value) -> Value:
    # A Python int out of range of the other's integer type is compared as the number that it is, as NumPy 2 does; one
    # that staging does not know (an argument, a size, an index variable) may be out of range.
    if value.weak == "int" and value.number is None and other.weak is None and is_integer(other.logical):
        return cast_value(value, "uint64" if value.expr.dtype == "uint64" else "int64")
    number = other.number
    if isinstance(number, int) and not isinstance(number, bool) and is_integer(value.logical) and value.weak is None:
        ends = np.iinfo(value.logical)
        if not ends.min <= number <= ends.max:
            return value if value.logical == "uint64" else cast_value(value, "int64")
    number = value.number
    if isinstance(number, int) and not isinstance(number, bool) and is_integer(other.logical) and other.weak is None:
        ends = np.iinfo(other.logical)
        if not ends.min <= number <= ends.max:
            return Value.of(_exact(number), value.expr.span)
    return value


def _exact(number: int) -> np.generic:
    if -(2**63) <= number < 2**64:
        return np.int64(number) if number < 2**63 else np.uint64(number)
    return np.float64(np.inf if number > 0 else -np.inf)  # Nearer ends of the types would be rounded to it.


def _compare_mixed_signs(name: str, left: Value, right: Value, span: Span | None) -> Expr:
    # int64 against uint64: float64 would lose digits, so the sign decides first.
    swapped = left.logical == "uint64"
    signed, unsigned = (right, left) if swapped else (left, right)
    negative = applied("lt", (signed.expr, constant(0, signed.expr.dtype)), span)
    positive_part = convert(replace(signed, weak=None), "uint64")
    pair = (unsigned.expr, positive_part) if swapped else (positive_part, unsigned.expr)
    compared = applied(name, pair, span)
    if name in ({"gt", "ge"} if swapped else {"lt", "le"}) or name == "ne":
        return applied("or_", (negative, compared), span)
    return applied("and_", (applied("not_", (negative,), span), compared), span)


def _logical(name: str, values: Sequence[Value], span: Span | None) -> Value:
    return Value(applied(name, tuple(as_truth(value, span).expr for value in values), span), None, "bool")


_ON_TRUTH = {"bit_and": "and_", "bit_or": "or_", "bit_not": "not_", "bit_xor": "ne"}


def _bits(name: str, values: Sequence[Value], span: Span | None) -> Value:
    dtype, weak = common_dtype(values)
    if is_boolean(dtype):
        if name in _ON_TRUTH:
            return Value(applied(_ON_TRUTH[name], tuple(value.expr for value in values), span), None, "bool")
        dtype, weak = "int64", None
    if is_floating(dtype):
        raise value_fault(
            f"`{PRIMITIVES[name].operator}` takes integers or truth values, not {dtype}",
            span,
            "compare first, or write `and`, `or`, `not`",
        )
    return Value(applied(name, tuple(convert(value, dtype, span) for value in values), span), weak, dtype)


def _select(name: str, values: Sequence[Value], span: Span | None) -> Value:
    condition, *branches = values
    dtype, weak = common_dtype(branches)
    arguments = (as_truth(condition, span).expr, *(convert(value, dtype, span) for value in branches))
    return Value(applied(name, arguments, span), weak, dtype)


_KINDS = {
    "real": _real,
    "number": _numeric,
    "any": _any,
    "compare": _compare,
    "logical": _logical,
    "bits": _bits,
    "integer": _bits,
    "select": _select,
}


_OF_NUMBERS = {
    "neg": ("-", "write `~a` for the other one, or convert what is to count: `-int64(a)`"),
    "pos": ("+", "write `a`, or `int64(a)` to count"),
    "sign": ("sign", "write `a`, or `int64(a)` to count"),
}

# How many of a primitive's operands, from the left, are factors of what it computes.
_FACTORS = {"mul": 2, "neg": 1, "div": 1, "floor_div": 1, "mod": 1}


def _bracketed(name: str, values: Sequence[Value], span: Span | None) -> Value:
    # A product, a negation or a quotient with brackets: they guard all of its other factors, and the divisor.
    brackets: list[Expr] = []
    rests: list[Value] = []
    for value in values[: _FACTORS[name]]:
        if value.product is not None:
            brackets.extend(value.product.brackets)
            rests.append(value.product.rest)
        elif is_boolean(value.logical):
            brackets.append(value.expr)
        else:
            rests.append(value)
    if not rests and name == "mul":
        return _logical("and_", values, span)
    if not rests:
        # As a number a truth value is an integer.
        rests = [_one(values, span)]
    rest = (
        rests[0]
        if name == "mul" and len(rests) == 1
        else apply_primitive(name, (*rests, *values[_FACTORS[name] :]), span)
    )
    condition = reduce(lambda left, right: applied("and_", (left, right), span), brackets)
    expr = applied("where", (condition, rest.expr, constant(0, rest.expr.dtype)), span)
    return replace(rest, expr=expr, product=Product(tuple(brackets), rest))


def _one(values: Sequence[Value], span: Span | None) -> Value:
    # What a true bracket is in a quotient, of the type in which its operands meet.
    dtype, weak = common_dtype(values)
    if is_boolean(dtype):
        dtype, weak = "int64", None
    return Value(constant(1, compute_dtype(dtype), span), weak, dtype)


def _power(base: Value, exponent: Value, span: Span | None) -> Value:
    number = exponent.expr.value if isinstance(exponent.expr, Constant) else None
    dtype, weak = common_dtype((base, exponent))
    dtype = "int64" if is_boolean(dtype) else dtype
    if not is_floating(dtype) and (_is_negated(exponent.expr) if number is None else number < 0):
        raise _negative_power(base, exponent, span)
    if number is None or isinstance(number, bool) or not abs(number) <= _LARGEST_EXPONENT or number % 1:
        return _numeric("pow", (base, exponent), span)
    value = Value(_repeated(convert(base, dtype, span), abs(int(number)), span), weak, dtype)
    return _real("recip", (value,), span) if number < 0 else value


def _is_negated(expr: Expr) -> bool:
    # `-t`: where nobody knows its sign, what is written is taken for what is meant.
    match expr:
        case Apply(primitive="neg"):
            return True
        case Apply(primitive="mul" | "floor_div", arguments=(left, right)):
            return _is_negated(left) != _is_negated(right)
        case Constant(value=value):
            return value < 0
        case Cast(operand=operand):
            return _is_negated(operand)
        case _:
            return False


def _negative_power(base: Value, exponent: Value, span: Span | None) -> TcdslError:
    power = format_expr(exponent.expr)
    power = power if isinstance(exponent.expr, Constant | Apply) else f"({power})"
    written = "float64(x)" if base.number is None else repr(float(base.number))
    hint = f"make the base a float: `{written} ** {power}`"
    if not isinstance(exponent.expr, Constant):
        hint += f"; if the exponent is never negative, write `abs({power})` for it"
    return value_fault("integers have no negative integer powers", span, hint)


def _repeated(base: Expr, exponent: int, span: Span | None) -> Expr:
    # Binary powering; the base is shared by a Let where it is needed more than once.
    if exponent == 0:
        return applied("snd", (base, constant(1, base.dtype)), span)
    if exponent & (exponent - 1) == 0:
        return _squared(base, exponent, base, span)
    if isinstance(base, Constant | Local):
        return _squared(base, exponent, base, span)
    taken = {node.name for node in walk(base) if isinstance(node, Let | Local)}
    name = FreshNames(taken).fresh("base")
    local = Local(name, base.dtype, span)
    return Let(name, base, _squared(local, exponent, local, span), span)


def _squared(base: Expr, exponent: int, factor: Expr, span: Span | None) -> Expr:
    if exponent == 1:
        return base
    half = applied("square", (_squared(base, exponent // 2, factor, span),), span)
    return applied("mul", (half, factor), span) if exponent % 2 else half


# -- functions -----------------------------------------------------------------------------------------------


def _written_conversion(value: Value, dtype: str, span: Span | None) -> Value:
    made = cast_value(value, dtype, span)
    if is_integer(value.logical) and not is_boolean(dtype) and not isinstance(made.expr, Constant):
        return made.with_expr(Conversion(value.expr, made.expr.dtype, span))
    return made


def call_function(name: str, values: Sequence[Value], span: Span | None = None) -> Value:
    """A recognized function on scalars: a primitive, a cast, ``max`` and ``min`` of several, ``log`` with a base."""
    if name in DTYPES:
        if len(values) != 1:
            raise value_fault(f"`{name}` takes 1 argument, not {len(values)}", span, kind=DslSyntaxError)
        return _written_conversion(values[0], name, span)
    if name in ("max", "min", "and_", "or_") and len(values) > 2:
        return apply_primitive(name, (call_function(name, values[:-1], span), values[-1]), span)
    if name == "log" and len(values) == 2:
        logarithms = [apply_primitive("log", (value,), span) for value in values]
        return apply_primitive("div", logarithms, span)
    if name not in PRIMITIVES:
        fact = f"`{name}` of a scalar at a point, in a function that Python runs"
        raise value_fault(fact, span, "reduce it where it is defined, `n = sum(z)`, and pass that", kind=DslSyntaxError)
    return apply_primitive(name, values, span)
