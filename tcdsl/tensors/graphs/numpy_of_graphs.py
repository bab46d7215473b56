"""NumPy's functions of tensors that make nodes: ``np.where(c, a, b)``, ``np.sum(t, axis=0)``.

The same ones as in decorated functions, so that a helper means the same in both, and gradients go through them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.frontend.numpy_of_arrays import options_of
from tcdsl.frontend.symbols.graphs import GraphTensor
from tcdsl.frontend.symbols.recognition import REDUCTIONS, recognize

if TYPE_CHECKING:
    from tcdsl.tensors.graphs.graph_operators import GraphAlgebra

__all__ = ["graph_function"]

#: The reductions that tensors have as methods.
_METHODS = ("sum", "prod", "max", "min", "mean")


def graph_function(
    algebra: GraphAlgebra, function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """The node that ``function(*arguments, **keywords)`` makes, or `NotImplemented` if it makes none."""
    options = options_of(function, arguments, keywords)
    array = options.get("a")
    name = recognize(function)
    if function is np.where and len(options) == 3:
        return algebra.combine("where", *options.values())
    if function is np.dot and all(getattr(value, "ndim", 0) in (1, 2) for value in options.values()):
        return algebra.matrix_product(*options.values())
    if not isinstance(array, GraphTensor):
        return NotImplemented
    if name in _METHODS and options.keys() <= {"a", "axis", "keepdims"}:
        return algebra.reduced(REDUCTIONS[name], array, options.get("axis"), options.get("keepdims", False))
    if function is np.round and options.keys() == {"a"}:
        return algebra.combine("round", array)
    if function is np.transpose and options.keys() == {"a"}:
        return algebra.transposed(array)
    return NotImplemented
