"""The functions that generated code calls, by name: what each writes where it is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tcdsl.ir.dtypes import DTYPES, WIDE_INTEGERS, is_integer
from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.conversions import convert
from tcdsl.targets.cpu.intrinsics.formulas import FORMULAS, repeated_product, whole_power
from tcdsl.targets.cpu.intrinsics.frame_memory import box, fail, frame_buffer, frame_size, local_buffer
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics.elementary_functions import ELEMENTARY, POWERS_OF_HALVES

__all__ = ["FUNCTIONS", "EmittedFunction", "scalar"]

_NOTHING = ir.Operand(ir.VoidType(), "")

EmittedFunction = Callable[..., Any]
"""Of the builder and the arguments: numbers and texts as Python has them, all else as values of the code."""


def scalar(builder: ir.Builder, given: Any) -> Scalar:
    """``given`` as a value of the code: Python's numbers are bool, int64 and float64."""
    if isinstance(given, Scalar):
        return given
    dtype = "bool" if isinstance(given, bool) else "int64" if isinstance(given, int) else "float64"
    return Scalar(builder, _NOTHING, dtype).constant(given)


def _formula(formula: Callable[..., Scalar]) -> EmittedFunction:
    # All arguments have one type, which the result has too: nothing is promoted, as in the intermediate representation.
    def write(builder: ir.Builder, *arguments: Any) -> Scalar:
        operands = [scalar(builder, argument) for argument in arguments]
        if len({operand.dtype for operand in operands}) > 1:
            raise TypeError(f"operands of {[operand.dtype for operand in operands]}")
        lanes = max(operand.lanes for operand in operands)
        return formula(*[operand.in_lanes(lanes) for operand in operands])

    return write


def _conversion(dtype: str) -> EmittedFunction:
    def write(builder: ir.Builder, given: Any) -> Scalar:
        if isinstance(given, str):
            # A constant that Python's compiler would not keep: the digits as text.
            return Scalar(builder, _NOTHING, dtype).constant(int(given))
        if isinstance(given, int) and is_integer(dtype):
            return Scalar(builder, _NOTHING, dtype).constant(given)
        if isinstance(given, float) and dtype in ("float32", "float64"):
            return Scalar(builder, _NOTHING, dtype).constant(given)
        return convert(scalar(builder, given), dtype)

    return write


def _power(builder: ir.Builder, a: Any, b: Any) -> Scalar:
    # A constant exponent multiplies repeatedly, whatever the type of ``a``.
    base = scalar(builder, a)
    if isinstance(b, int) and (b >= 0 or base.floating):
        return repeated_product(base, b)
    if isinstance(b, float) and b in POWERS_OF_HALVES and base.floating:
        return POWERS_OF_HALVES[b](base)
    result: Scalar = _formula(ELEMENTARY["power"] if base.floating else whole_power)(builder, base, b)
    return result


def _fail(builder: ir.Builder, frame: Scalar, check: int, value: Any, extent: Any, at: Sequence[Any]) -> None:
    positions = [scalar(builder, position) for position in at]
    fail(builder, frame.value, check, scalar(builder, value), scalar(builder, extent), positions)


def _view(builder: ir.Builder, parent: Any, starts: Sequence[Any], extents: Sequence[Any]) -> Any:
    counts = [None if extent is None else scalar(builder, extent) for extent in extents]
    return box(builder, parent, [scalar(builder, start) for start in starts], counts)


def _checked_local(builder: ir.Builder, frame: Scalar, slot: int, description: str, extents: Sequence[Any]) -> Any:
    return local_buffer(builder, slot, description, frame.value, [scalar(builder, extent) for extent in extents])


FUNCTIONS: Mapping[str, EmittedFunction] = {
    **{name: _formula(formula) for name, formula in {**FORMULAS, **ELEMENTARY}.items()},
    **{"bool_" if dtype == "bool" else dtype: _conversion(dtype) for dtype in (*DTYPES, *WIDE_INTEGERS)},
    "power": _power,
    "size": lambda builder, frame, place: frame_size(builder, frame.value, place),
    "buffer": lambda builder, frame, place, text: frame_buffer(builder, frame.value, place, text),
    "checked_buffer": lambda builder, frame, slot, text: frame_buffer(builder, frame.value, slot, text, checked=True),
    "local_buffer": local_buffer,
    "checked_local_buffer": _checked_local,
    "view": _view,
    "fail": _fail,
}
