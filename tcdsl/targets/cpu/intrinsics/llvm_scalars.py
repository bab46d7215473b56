"""Scalars of the code being compiled: ``x * x + 1`` on them writes LLVM instructions.

The functions of generated code (`tcdsl.targets.cpu.intrinsics.scalar_intrinsics`) are written with these, so that they
read like formulas and keep the type of their arguments.
"""

from __future__ import annotations

import math
import struct
from typing import Any

from tcdsl.ir.dtypes import is_floating
from tcdsl.targets.cpu.instructions import ir

__all__ = ["Scalar", "llvm_type"]

_TYPES: dict[str, Any] = {
    "float16": ir.HalfType(),
    "float32": ir.FloatType(),
    "float64": ir.DoubleType(),
    "bool": ir.IntType(1),
    **{f"{sign}int{bits}": ir.IntType(bits) for bits in (8, 16, 32, 64) for sign in ("", "u")},
}


def llvm_type(dtype: str) -> Any:
    """The LLVM type of values of ``dtype``: ``i1`` for bool, which memory holds as ``i8``."""
    found = _TYPES.get(dtype)
    if found is None:
        found = _TYPES[dtype] = ir.IntType(int(dtype.removeprefix("u").removeprefix("int")))
    return found


def _rounded(number: float, code: str) -> float:
    try:
        return float(struct.unpack(code, struct.pack(code, number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


class Scalar:
    """A value of type ``dtype`` at the place where ``builder`` writes.

    Python numbers beside a scalar take its type. ``/`` is for floats; comparisons give bool scalars; ``&``, ``|`` and
    ``~`` are bitwise. ``flags`` go onto the floating-point operations that read the scalar: those that have none
    take the liberties of the function, so a formula that must be evaluated as it is written uses
    `exact` arguments.
    """

    __slots__ = ("_least", "builder", "dtype", "flags", "value")

    def __init__(self, builder: ir.Builder, value: ir.Operand, dtype: str, flags: str | None = None) -> None:
        self.builder = builder
        self.value = value
        self.dtype = dtype
        self.flags = flags
        self._least: int | None = None

    # making scalars

    def like(self, value: ir.Operand, dtype: str | None = None) -> Scalar:
        """``value`` as a scalar at the same place."""
        return Scalar(self.builder, value, dtype or self.dtype, self.flags)

    def constant(self, number: bool | int | float, dtype: str | None = None) -> Scalar:
        """A constant of ``dtype``, by default the scalar's own."""
        dtype = dtype or self.dtype
        if is_floating(dtype):
            # A float32 constant is printed as a double: round it here.
            number = float(number) if dtype == "float64" else _rounded(number, "f" if dtype == "float32" else "e")
        else:
            number = int(number) % 2 ** llvm_type(dtype).width
        one = ir.ConstantOperand(llvm_type(dtype), number)
        return self.like(self.builder.in_all_lanes(one, self.lanes) if self.lanes else one, dtype)

    def lift(self, other: Scalar | bool | int | float) -> Scalar:
        """``other``, made a constant of this scalar's type if it is a Python number; in all lanes beside a vector."""
        return other.in_lanes(self.lanes) if isinstance(other, Scalar) else self.constant(other)

    @property
    def lanes(self) -> int:
        """How many numbers it is, as a vector; 0 for a scalar."""
        kind = self.value.type
        return kind.count if isinstance(kind, ir.VectorType) else 0

    def in_lanes(self, count: int) -> Scalar:
        """The same number in so many lanes, if it is one number and ``count`` is not 0."""
        if not count or self.lanes:
            return self
        return self.like(self.builder.in_all_lanes(self.value, count))

    def kind(self, dtype: str) -> Any:
        """LLVM's type for ``dtype`` in as many lanes."""
        element = llvm_type(dtype)
        return ir.VectorType(element, self.lanes) if self.lanes else element

    def exact(self) -> Scalar:
        """The same value, whose operations keep infinities, NaN and the order of evaluation."""
        return Scalar(self.builder, self.value, self.dtype, "")

    @property
    def least(self) -> int | None:
        """What the integer is never less than, if that is known and it has a sign."""
        if not self.signed:
            return None
        return self.value.least if self._least is None else self._least

    def never_less(self, least: int | None) -> Scalar:
        """The same, known here never to be less than ``least``; elsewhere the same operand may wrap."""
        result = self.like(self.value)
        result._least = least
        return result

    @property
    def floating(self) -> bool:
        """Whether the type is a floating one."""
        return is_floating(self.dtype)

    @property
    def signed(self) -> bool:
        """Whether the type is a signed integer."""
        return self.dtype.startswith("int")

    @property
    def bits(self) -> int:
        """The width of the type in bits; 1 for bool."""
        return int(self.dtype.removeprefix("float")) if self.floating else int(llvm_type(self.dtype).width)

    # arithmetic

    def _binary(self, other: Scalar | float, floating: str, integer: str) -> Scalar:
        left, right = self._beside(other)
        if self.floating:
            return self.like(self.builder.floating(floating, left, right, self.flags))
        return self.like(self.builder.whole(integer, left, right))

    def _beside(self, other: Scalar | float) -> tuple[ir.Operand, ir.Operand]:
        # Both as vectors if one of them is.
        right = self.lift(other)
        return self.in_lanes(right.lanes).value, right.value

    def __add__(self, other: Scalar | float) -> Scalar:
        return self._binary(other, "fadd", "add")

    def __radd__(self, other: float) -> Scalar:
        return self.constant(other) + self

    def __sub__(self, other: Scalar | float) -> Scalar:
        return self._binary(other, "fsub", "sub")

    def __rsub__(self, other: float) -> Scalar:
        return self.constant(other) - self

    def __mul__(self, other: Scalar | float) -> Scalar:
        return self._binary(other, "fmul", "mul")

    def __rmul__(self, other: float) -> Scalar:
        return self.constant(other) * self

    def __truediv__(self, other: Scalar | float) -> Scalar:
        return self._binary(other, "fdiv", "sdiv")

    def __rtruediv__(self, other: float) -> Scalar:
        return self.constant(other) / self

    def __neg__(self) -> Scalar:
        if self.floating:
            # 0 - x would lose the sign of zero.
            return self.constant(-0.0) - self
        return self.constant(0) - self

    def quotient(self, other: Scalar) -> Scalar:
        """The integer quotient, truncated; the divisor must not be 0, nor -1 beside the least value."""
        return self._binary(other, "fdiv", "sdiv" if self.signed else "udiv")

    def remainder(self, other: Scalar) -> Scalar:
        """What `quotient` leaves, with the sign of the dividend; C's ``fmod`` for floats."""
        if self.floating:
            return self._binary(other, "frem", "frem")
        return self._binary(other, "frem", "srem" if self.signed else "urem")

    # bits

    def __and__(self, other: Scalar | int) -> Scalar:
        return self.like(self.builder.whole("and", *self._beside(other)))

    def __or__(self, other: Scalar | int) -> Scalar:
        return self.like(self.builder.whole("or", *self._beside(other)))

    def __xor__(self, other: Scalar | int) -> Scalar:
        return self.like(self.builder.whole("xor", *self._beside(other)))

    def __invert__(self) -> Scalar:
        return self.like(self.builder.not_(self.value))

    def __lshift__(self, other: Scalar | int) -> Scalar:
        return self.like(self.builder.whole("shl", *self._beside(other)))

    def __rshift__(self, other: Scalar | int) -> Scalar:
        shift = "ashr" if self.signed else "lshr"
        return self.like(self.builder.whole(shift, *self._beside(other)))

    def reinterpret(self, dtype: str) -> Scalar:
        """The same bits as another type of the same width."""
        return self.like(self.builder.cast("bitcast", self.value, self.kind(dtype)), dtype)

    # comparison and choice

    def _compare(self, symbol: str, other: Scalar | float) -> Scalar:
        left, right = self._beside(other)
        if self.floating:
            return self.like(self.builder.compare_floating(symbol, left, right, self.flags), "bool")
        compare = self.builder.compare_signed if self.signed else self.builder.compare_unsigned
        return self.like(compare(symbol, left, right), "bool")

    def __lt__(self, other: Scalar | float) -> Scalar:
        return self._compare("<", other)

    def __le__(self, other: Scalar | float) -> Scalar:
        return self._compare("<=", other)

    def __gt__(self, other: Scalar | float) -> Scalar:
        return self._compare(">", other)

    def __ge__(self, other: Scalar | float) -> Scalar:
        return self._compare(">=", other)

    def equals(self, other: Scalar | float) -> Scalar:
        """``self == other``, bool; a method, so that scalars keep Python's equality."""
        return self._compare("==", other)

    def differs(self, other: Scalar | float) -> Scalar:
        """``self != other``; true for NaN."""
        return self._compare("!=", other)

    def choose(self, yes: Scalar | float, no: Scalar | float) -> Scalar:
        """``yes`` if this bool holds, else ``no``; both are evaluated, one of them is a scalar."""
        if not isinstance(yes, Scalar):
            assert isinstance(no, Scalar)
            yes = no.constant(yes)
        first, second = yes.in_lanes(self.lanes)._beside(no)
        return yes.like(self.builder.select(self.value, first, second))

    # functions

    def intrinsic(self, name: str, *others: Scalar) -> Scalar:
        """LLVM's function ``llvm.<name>`` for this type: ``x.intrinsic("sqrt")``."""
        lanes = max(self.lanes, *(other.lanes for other in others)) if others else self.lanes
        arguments = [each.in_lanes(lanes).value for each in (self, *others)]
        kind = arguments[0].type
        signature = ir.FunctionType(kind, [kind] * len(arguments))
        return self.like(self.builder.call(self.builder.module.intrinsic(f"llvm.{name}", [kind], signature), arguments))

    def library(self, name: str, *others: Scalar) -> Scalar:
        """The C library's function: ``x.library("tan")`` calls ``tan`` or ``tanf``."""
        arguments = (self, *others)
        symbol = name + ("f" if self.dtype == "float32" else "")
        function = self.builder.module.symbols.get(symbol)
        if function is None:
            kind = llvm_type(self.dtype)
            function = ir.Function(self.builder.module, ir.FunctionType(kind, [kind] * len(arguments)), symbol)
            # They may set errno, which nobody reads: let LLVM move and drop the calls.
            function.attributes += ["nounwind", "readnone"]
        return self.like(self.builder.call(function, [argument.value for argument in arguments]))
