"""The language's functions to import, for code that static checkers read: ``from tcdsl.primitives import relu, exp,
clamp``.

Decorated functions know them without an import. On symbolic arrays the primitives build programs; on NumPy arrays and
numbers they compute.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tcdsl.tensors import LANGUAGE_FUNCTIONS
from tcdsl.tracebacks import missing_name

__all__ = ["names"]

if TYPE_CHECKING:
    # What checkers find here. They must accept numbers, arrays and index notation as arguments.
    def _function(*arguments: Any, **named: Any) -> Any: ...

    abs = acos = acosh = add = and_ = argmax = argmin = asin = asinh = assign = atan = atan2 = atanh = _function
    batch = bit_and = bit_not = bit_or = bit_xor = ceil = clamp = comment = constraints_only = copy = cos = _function
    cosh = div = einsum = eq = erf = exp = exp2 = expm1 = float16 = float32 = float64 = floor = floor_div = _function
    fma = fst = ge = gelu = get = gt = id = int16 = int32 = int64 = int8 = le = log = log1p = log2 = lt = _function
    max = mean = min = mod = mul = ne = neg = not_ = number = or_ = param = pow = prod = recip = _function
    recip_sqrt = reflect = relu = relu_gate = round = sat01 = sat01_gate = shift_left = shift_right = _function
    sigmoid = sign = silu = sin = sinh = snd = softplus = sqrt = square = stop_gradient = sub = symmetric = _function
    tan = tanh = tensor = uint16 = uint32 = uint64 = uint8 = where = wrap = _function


def names() -> list[str]:
    """The names that this module offers."""
    return sorted(LANGUAGE_FUNCTIONS)


def __getattr__(name: str) -> Any:
    try:
        return LANGUAGE_FUNCTIONS[name]
    except KeyError:
        raise missing_name(f"module {__name__}", name, sys.modules[__name__], names()) from None


def __dir__() -> list[str]:
    return names()
