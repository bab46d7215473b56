"""NumPy's functions of arrays and tensors, as plain Python functions call them: ``np.sum(x)``, ``np.where(c, a, b)``.

In decorated functions the rewriting recognizes them before NumPy does; a function of ops that `tcdsl.grad` stages, and
helpers, run as they stand, and NumPy asks here. They mean the same on tensors of graphs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcdsl.frontend.symbols.graphs import GraphTensor
from tcdsl.frontend.symbols.operators import Algebra
from tcdsl.frontend.symbols.recognition import REDUCTIONS, recognize
from tcdsl.frontend.symbols.symbols import SymbolicArray

__all__ = ["numpy_function"]

_POINTWISE = {np.copy: "id", np.round: "round"}


def numpy_function(
    algebra: Algebra, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """``function(*arguments, **keywords)`` by the operators of ``algebra``; ``NotImplemented`` if they have it not."""
    options = _options(function, arguments, keywords)
    array, name = options.get("a"), recognize(function)
    if function is np.where and len(options) == 3:
        return algebra.combine("where", *options.values())
    if function is np.dot and all(getattr(value, "ndim", 0) in (1, 2) for value in options.values()):
        return algebra.matrix_product(*options.values())
    if not isinstance(array, SymbolicArray | GraphTensor):
        return NotImplemented
    if name is not None and name in REDUCTIONS and options.keys() <= {"a", "axis", "keepdims"}:
        return algebra.reduced(REDUCTIONS[name], array, options.get("axis"), options.get("keepdims", False))
    if len(options) == 1 and function in _POINTWISE:
        return algebra.combine(_POINTWISE[function], array)
    if len(options) == 1 and function is np.transpose:
        return algebra.transposed(array)
    if len(options) == 1 and function in (np.shape, np.ndim, np.size):
        return getattr(array, function.__name__)
    return NotImplemented


def _options(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    # By parameter, without those that NumPy's own wrappers pass although nobody gave them.
    try:
        bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    except (TypeError, ValueError):
        bound = {**{f"argument {k}": value for k, value in enumerate(arguments)}, **keywords}
    return {name: value for name, value in bound.items() if value is not None and value is not np._NoValue}
