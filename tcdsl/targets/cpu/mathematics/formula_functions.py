"""Formulas as functions of the module: written once, and put by LLVM where they are called; those of vectors in place.

The instructions of a formula have no fast-math flags, whatever liberties the nest takes that calls it: sums of parts
are added in the order in which they are written, and infinities, NaN and signed zeros are what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type

__all__ = ["function"]


def function(name: str, formula: Callable[..., Scalar]) -> Callable[..., Scalar]:
    """``function("exp", exponential)(x)`` calls ``formula`` of the type of ``x``, as a function of ``x``'s module."""

    def call(*operands: Scalar) -> Scalar:
        first = operands[0]
        if first.lanes:
            return _written(formula, operands)
        module = first.builder.module
        symbol = f"tcdsl.{name}.{first.dtype}"
        made = module.symbols.get(symbol)
        if made is None:
            made = _definition(module, symbol, formula, [operand.dtype for operand in operands])
        if made.alignment:
            # LLVM drops it with the function.
            first.builder.function.alignment = made.alignment
        return first.like(first.builder.call(made, [operand.value for operand in operands]))

    return call


def _written(formula: Callable[..., Scalar], operands: Sequence[Scalar]) -> Scalar:
    # Of vectors in place, so that nothing is left for LLVM to do.
    builder = operands[0].builder
    flags, builder.flags = builder.flags, ""
    result = formula(*[Scalar(builder, operand.value, operand.dtype) for operand in operands])
    builder.flags = flags
    return operands[0].like(result.value)


def _definition(module: ir.Module, symbol: str, formula: Callable[..., Scalar], dtypes: list[str]) -> ir.Function:
    kind = ir.FunctionType(llvm_type(dtypes[0]), [llvm_type(dtype) for dtype in dtypes])
    made = ir.Function(module, kind, symbol)
    made.linkage = "internal"
    made.attributes += ["alwaysinline", "nounwind"]
    builder = ir.Builder(made.append_block())
    operands = [Scalar(builder, value, dtype) for value, dtype in zip(made.args, dtypes, strict=True)]
    builder.ret(formula(*operands).value)
    return made
