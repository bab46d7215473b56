"""The code of primitives, as the table has it: ``"{0} * {1} + {2}"`` read once, to be written for any arguments.

``and``, ``or`` and ``a if c else b``, which evaluate what Python evaluates, are no business of this module.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Constant
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.targets.cpu.emission.control_flow import require_one_type
from tcdsl.targets.cpu.emission.emitted_functions import FUNCTIONS, scalar
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.formulas import FORMULAS
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.elementary_functions import ELEMENTARY, POWERS_OF_HALVES

__all__ = [
    "ARITHMETIC",
    "COMPARISONS",
    "EXTREMES",
    "OPERATORS",
    "PrimitiveCode",
    "constant_exponent",
    "operation",
    "primitive_code",
]

OPERATORS: Mapping[type[ast.operator], Callable[[Scalar, Scalar], Scalar]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.FloorDiv: FORMULAS["floor_div"],
    ast.Mod: FORMULAS["mod"],
    ast.BitAnd: lambda a, b: a & b,
    ast.BitOr: lambda a, b: a | b,
    ast.BitXor: lambda a, b: a ^ b,
}
"""Python's operators on values of one type. Integers wrap."""

COMPARISONS: Mapping[type[ast.cmpop], Callable[[Scalar, Scalar], Scalar]] = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a.equals(b),
    ast.NotEq: lambda a, b: a.differs(b),
}
"""Python's comparisons."""

ARITHMETIC: Mapping[str, type[ast.operator]] = {
    "add": ast.Add,
    "subtract": ast.Sub,
    "multiply": ast.Mult,
    "divide": ast.Div,
    "or": ast.BitOr,
    "and": ast.BitAnd,
}
"""The accumulators that are operators, and these."""

EXTREMES: Mapping[str, str] = {"max": "maximum", "min": "minimum"}
"""The functions that these accumulators, and the primitives of the same names, are."""

_REPEATED = 32  # The largest constant exponent that is multiplied out: beyond it rounding adds up.


def operation(kind: type[ast.operator], left: Scalar, right: Scalar, *, exact: bool = False) -> Scalar:
    """``left + right``, or another operation; ``exact`` if nothing wraps: then it is known never to be less than what
    its parts say.
    """
    require_one_type(left, right)
    right = left.lift(right)
    left = left.in_lanes(right.lanes)
    result = OPERATORS[kind](left, right)
    if not exact or left.dtype != "int64" or left.least is None or right.least is None:
        return result
    if kind is ast.Add:
        return result.never_less(left.least + right.least)
    if kind is ast.Mult and left.least >= 0 and right.least >= 0:
        return result.never_less(left.least * right.least)
    if kind is ast.Sub and right.value.text == str(right.least):
        return result.never_less(left.least - right.least)
    return result


@dataclass(frozen=True, slots=True)
class PrimitiveCode:
    """``write(builder, value, exact)`` writes the primitive, where ``value(k)`` gives its argument k; ``work`` says how
    much it computes, and ``steps`` whether several of it may be computed at once, as lanes.
    """

    write: Callable[[ir.Builder, Callable[[int], Any], bool], Any]
    work: int
    steps: bool


@cache
def primitive_code(primitive: str) -> PrimitiveCode:
    """The code of a row of the table of primitives."""
    tree = ast.parse(PRIMITIVES[primitive].code.format("_0", "_1", "_2"), mode="eval").body
    work, steps = 0, True
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp | ast.Compare):
            work += 1
        elif isinstance(node, ast.Call):
            function = _function(node)
            work += 20 if function in ELEMENTARY else 1
            # Vectors cannot be divided as whole numbers, and what is left of floats is computed one by one.
            steps = steps and function in (*FORMULAS, *ELEMENTARY, "power") and function not in ("floor_div", "mod")
    return PrimitiveCode(_writer(tree), work, steps)


def _function(node: ast.Call) -> str:
    assert isinstance(node.func, ast.Name)
    return node.func.id


def _writer(node: ast.expr) -> Callable[[ir.Builder, Callable[[int], Any], bool], Any]:
    match node:
        case ast.Name(id=name):
            number = int(name[1:])
            return lambda _builder, value, _exact: value(number)
        case ast.Constant(value=constant):
            return lambda _builder, _value, _exact: constant
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            part = _writer(operand)
            return lambda builder, value, exact: -part(builder, value, exact)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            part = _writer(operand)
            return lambda builder, value, exact: ~scalar(builder, part(builder, value, exact))
        case ast.BinOp(left=left, op=operator, right=right):
            return _of_two(left, right, lambda a, b, exact: operation(type(operator), a, b, exact=exact))
        case ast.Compare(left=left, ops=[comparison], comparators=[right]):
            return _of_two(left, right, lambda a, b, _exact: _compared(comparison, a, b))
        case ast.Call(args=arguments):
            function, parts = FUNCTIONS[_function(node)], [_writer(argument) for argument in arguments]
            return lambda builder, value, exact: function(builder, *[part(builder, value, exact) for part in parts])
    raise TypeError(f"not the code of a primitive: {ast.unparse(node)}")


def _of_two(
    left: ast.expr, right: ast.expr, rule: Callable[[Scalar, Scalar, bool], Scalar]
) -> Callable[[ir.Builder, Callable[[int], Any], bool], Scalar]:
    first, second = _writer(left), _writer(right)

    def write(builder: ir.Builder, value: Callable[[int], Any], exact: bool) -> Scalar:
        a = scalar(builder, first(builder, value, exact))
        return rule(a, scalar(builder, second(builder, value, exact)), exact)

    return write


def _compared(comparison: ast.cmpop, a: Scalar, b: Scalar) -> Scalar:
    require_one_type(a, b)
    return COMPARISONS[type(comparison)](a, b)


def constant_exponent(expr: Apply) -> int | float | None:
    """The exponent of a power by a small whole number, or by halves, which is made of products and roots."""
    if expr.primitive != "pow" or not isinstance(expr.arguments[1], Constant):
        return None
    exponent = expr.arguments[1].value
    if abs(exponent) <= _REPEATED and exponent == int(exponent):
        return int(exponent) if exponent >= 0 or is_floating(expr.dtype) else None
    return float(exponent) if is_floating(expr.dtype) and exponent in POWERS_OF_HALVES else None
