"""The table of elementary functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tcdsl.targets.cpu.intrinsics.arithmetic import Scalar
from tcdsl.targets.cpu.mathematics.exponentials import exponential
from tcdsl.targets.cpu.mathematics.functions import function
from tcdsl.targets.cpu.mathematics.logarithms import logarithm

__all__ = ["ELEMENTARY"]

_FORMULAS: Mapping[str, Callable[..., Scalar]] = {"exp": exponential, "log": logarithm}

ELEMENTARY: Mapping[str, Callable[..., Scalar]] = MappingProxyType(
    {name: function(name, formula) for name, formula in _FORMULAS.items()}
)
"""By name, what writes a call of the function."""
