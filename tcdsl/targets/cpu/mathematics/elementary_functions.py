"""The table of elementary functions: by the names of generated code, what writes a call of each.

None of them calls the C library, and none branches, but for sin, cos and tan of very large numbers (`rare_calls`).
All are within two units in the last place of what is exact, for all arguments; ``tests/targets/mathematics`` has a
bound for each. float16 is computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.llvm_scalars import Scalar
from tcdsl.targets.cpu.mathematics import (
    activations,
    error_function,
    exponentials,
    hyperbolic,
    inverse_trigonometric,
    logarithms,
    powers,
    trigonometric,
)
from tcdsl.targets.cpu.mathematics.formula_functions import function

__all__ = ["ELEMENTARY", "power_of_half"]

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
    "erf": error_function.error_function,
    "gelu": error_function.gaussian_error_linear_unit,
    "sigmoid": activations.sigmoid,
    "silu": activations.sigmoid_linear_unit,
    "softplus": activations.softplus,
    "power": powers.power,
}

ELEMENTARY: Mapping[str, Callable[..., Scalar]] = MappingProxyType(
    {name: function(name, formula) for name, formula in _FORMULAS.items()}
)
"""By name, what writes a call of the function."""

power_of_half = function("power_of_half", powers.power_of_half)
"""What a constant exponent of 1/2 means, at a fraction of the cost of any exponent."""
