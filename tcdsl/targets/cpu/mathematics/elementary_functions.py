"""The table of elementary functions: by the names of generated code, what writes a call of each.

None of them calls the C library, and none branches, but for sin, cos and tan of very large numbers (`rare_calls`).
All are within two units in the last place of what is exact, for all arguments; ``tests/targets/mathematics`` has a
bound for each. Constant exponents of 1/2, 3/2, 5/2 and minus these are roots and products, within three units.
float16 is computed in float32.

A formula is a function of the module: written once, and put by LLVM where it is called; those of vectors in place. The
instructions of a formula have no fast-math flags, whatever liberties the nest takes that calls it: sums of parts
are added in the order in which they are written, and infinities, NaN and signed zeros are what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from tcdsl.targets.cpu.instructions import ir
from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar, llvm_type
from tcdsl.targets.cpu.mathematics import (
    activations,
    exponentials,
    hyperbolic,
    inverse_trigonometric,
    logarithms,
    powers,
    trigonometric,
)

__all__ = ["ELEMENTARY", "POWERS_OF_HALVES", "function"]


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


_FORMULAS: Mapping[str, Callable[..., Scalar]] = {
    "exp": exponentials.exponential,
    "exp2": exponentials.exponential_base_2,
    "expm1": exponentials.exponential_minus_1,
    "log": logarithms.logarithm,
    "log2": logarithms.logarithm_base_2,
    "log1p": logarithms.logarithm_of_1_plus,
    "sin": trigonometric.sine,
    "cos": trigonometric.cosine,
    "tan": trigonometric.tangent,
    "asin": inverse_trigonometric.inverse_sine,
    "acos": inverse_trigonometric.inverse_cosine,
    "atan": inverse_trigonometric.inverse_tangent,
    "atan2": inverse_trigonometric.inverse_tangent_of_quotient,
    "sinh": hyperbolic.hyperbolic_sine,
    "cosh": hyperbolic.hyperbolic_cosine,
    "tanh": hyperbolic.hyperbolic_tangent,
    "asinh": hyperbolic.inverse_hyperbolic_sine,
    "acosh": hyperbolic.inverse_hyperbolic_cosine,
    "atanh": hyperbolic.inverse_hyperbolic_tangent,
    "erf": activations.error_function,
    "gelu": activations.gaussian_error_linear_unit,
    "sigmoid": activations.sigmoid,
    "silu": activations.sigmoid_linear_unit,
    "softplus": activations.softplus,
    "power": powers.power,
}

ELEMENTARY: Mapping[str, Callable[..., Scalar]] = MappingProxyType(
    {name: function(name, formula) for name, formula in _FORMULAS.items()}
)
"""By name, what writes a call of the function."""

POWERS_OF_HALVES: Mapping[float, Callable[..., Scalar]] = MappingProxyType(
    {n / 2: function(f"power.{n / 2}", partial(powers.power_of_halves, halves=n)) for n in powers.HALVES}
)
"""By constant exponent, what writes the power: at a fraction of the cost of any exponent."""
