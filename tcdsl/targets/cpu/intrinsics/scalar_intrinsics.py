"""What generated modules import, as Numba intrinsics: the functions of `FORMULAS`, conversions, access to the frame.

Intrinsics are typed by a few lines of Python and emit their instructions in place, so that they cost a nest no compile
time.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, type_callable

from tcdsl.ir.dtypes import DTYPES, WIDE_INTEGERS
from tcdsl.targets.cpu.intrinsics.arithmetic import Scalar, llvm_type
from tcdsl.targets.cpu.intrinsics.conversions import convert
from tcdsl.targets.cpu.intrinsics.formulas import FORMULAS, repeated_product
from tcdsl.targets.cpu.intrinsics.frame_memory import buffer, checked_buffer, fail, placed_buffer, placed_size, size
from tcdsl.targets.cpu.intrinsics.local_memory import checked_local_buffer, local_buffer, view
from tcdsl.targets.cpu.intrinsics.number_types import WideInteger, dtype_of, type_of

__all__ = [
    "buffer",
    "checked_buffer",
    "checked_local_buffer",
    "fail",
    "local_buffer",
    "placed_buffer",
    "placed_size",
    "power",
    "size",
    "view",
]


def _typed(formula: Callable[..., Scalar], arguments: tuple[Any, ...]) -> Any:
    # All arguments have one type, which the result has too: nothing is promoted, as in the intermediate representation.
    kinds = {types.unliteral(argument) for argument in arguments}
    kind = kinds.pop()
    dtype = dtype_of(kind)
    if kinds or dtype is None:
        return None

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        return formula(*(Scalar(builder, value, dtype) for value in values)).value

    return kind(*[kind] * len(arguments)), emit


def _function(name: str, formula: Callable[..., Scalar]) -> Any:
    # Numba asks a definition for as many arguments as it has parameters.
    def unary(typing_context: Any, a: Any) -> Any:
        return _typed(formula, (a,))

    def binary(typing_context: Any, a: Any, b: Any) -> Any:
        return _typed(formula, (a, b))

    definition = (unary, binary)[len(inspect.signature(formula).parameters) - 1]
    definition.__name__ = definition.__qualname__ = name
    definition.__doc__ = f"``{name}`` of numbers of one type, as `FORMULAS` computes it."
    return intrinsic(definition)


def _conversion(dtype: str) -> Any:
    result = type_of("float32" if dtype == "float16" else dtype)

    def conversion(typing_context: Any, x: Any) -> Any:
        if isinstance(x, types.StringLiteral):
            return _literal(dtype, x)
        kind = types.unliteral(x)
        source = dtype_of(kind)
        if source is None:
            return None

        def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
            return convert(Scalar(builder, values[0], source), dtype).value

        return result(kind), emit

    conversion.__name__ = conversion.__qualname__ = dtype
    conversion.__doc__ = f"A number as {dtype}, converted as ``astype`` does."
    return intrinsic(prefer_literal=True)(conversion) if dtype in WIDE_INTEGERS else intrinsic(conversion)


def _literal(dtype: str, text: Any) -> Any:
    # A constant that Python's compiler would not keep: the digits as text.
    kind = type_of(dtype)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        return ir.Constant(llvm_type(dtype), int(text.literal_value) % 2 ** llvm_type(dtype).width)

    return kind(text), emit


def _operator(function: Callable[..., Any], formula: Callable[..., Scalar], result: str = "") -> None:
    # Python's operators on wide integers; Numba knows those on all other types.
    def unary(a: Any) -> Any:
        return type_of(result or a.dtype) if isinstance(a, WideInteger) else None

    def binary(a: Any, b: Any) -> Any:
        return unary(a) if a == b else None

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        return formula(*(Scalar(builder, value, signature.args[0].dtype) for value in values)).value

    arity = len(inspect.signature(formula).parameters)
    type_callable(function)(lambda context: unary if arity == 1 else binary)
    lower_builtin(function, *[WideInteger] * arity)(emit)


for _arithmetic in (operator.add, operator.sub, operator.mul, operator.and_, operator.or_, operator.xor):
    _operator(_arithmetic, _arithmetic)
for _comparison in (operator.lt, operator.le, operator.gt, operator.ge):
    _operator(_comparison, _comparison, "bool")
_operator(operator.eq, Scalar.equals, "bool")
_operator(operator.ne, Scalar.differs, "bool")
_operator(operator.neg, operator.neg)


# One function per row: generated modules import them by the names that rows and types have.
for _name, _formula in FORMULAS.items():
    globals()[_name] = _function(_name, _formula)
for _dtype in (*DTYPES, *WIDE_INTEGERS):
    globals()["bool_" if _dtype == "bool" else _dtype] = _conversion(_dtype)


@intrinsic(prefer_literal=True)
def power(typing_context: Any, a: Any, b: Any) -> Any:
    """``a ** b`` for numbers of one type; a literal integer ``b`` multiplies repeatedly, whatever the type of ``a``."""
    kind = types.unliteral(a)
    dtype = dtype_of(kind)
    if dtype is None or not isinstance(b, types.IntegerLiteral):
        return _typed(FORMULAS["power"], (a, b))
    exponent = b.literal_value
    if exponent < 0 and not isinstance(kind, types.Float):
        return _typed(FORMULAS["power"], (a, b))

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: tuple[ir.Value, ...]) -> ir.Value:
        return repeated_product(Scalar(builder, values[0], dtype), exponent).value

    return kind(kind, b), emit
