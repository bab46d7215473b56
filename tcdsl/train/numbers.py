"""Numbers of optimizers: floats that runs may set, and tensors of one cell, which the step itself computes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl.errors import ConfigurationError
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import Tensor

__all__ = ["fixed_number", "number"]


def number(name: str, given: Any) -> float | Tensor:
    """``given`` as a float, or the tensor of one cell that it is; `ConfigurationError` for anything else."""
    if not isinstance(given, Tensor):
        return _float(name, given, f"a float, or a tensor of one cell; a schedule is called: `{name}=schedule(step)`")
    if given.size != 1:
        fact = f"`{name}` has {given.size} cells: `{given.label}` is {given.rows}"
        raise fault(ConfigurationError, fact, "give one number")
    return given


def fixed_number(name: str, given: Any) -> float:
    """``given`` as a float that decides what code is made, so that it is known now."""
    return _float(name, given, "a float: what code is made depends on it")


def _float(name: str, given: Any, wanted: str) -> float:
    scalar = isinstance(given, int | float | np.integer | np.floating)
    if isinstance(given, bool) or not (scalar or (type(given) is np.ndarray and given.ndim == 0)):
        raise fault(ConfigurationError, f"`{name}` is a number, not {given!r}", f"give {wanted}")
    return float(given)
