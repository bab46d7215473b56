"""NumPy's functions of symbolic arrays, as plain Python functions call them: ``np.sum(x)``, ``np.where(c, a, b)``.

In decorated functions the rewriting recognizes them before NumPy does; a function of ops that `tcdsl.grad` stages, and
helpers, run as they stand, and NumPy asks here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.arrays.arithmetic import combine
from tcdsl.frontend.arrays.views import transposed
from tcdsl.frontend.logics.contraction import matrix_product, reduce_array
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.recognition import REDUCTIONS, recognize
from tcdsl.frontend.symbols.symbols import SymbolicArray

__all__ = ["numpy_function", "options_of"]


def numpy_function(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """``function(*arguments, **keywords)`` where one of the arguments is symbolic; `DslSyntaxError` if it has no
    meaning here.
    """
    options = options_of(function, arguments, keywords)
    array = next((value for value in options.values() if isinstance(value, SymbolicArray)), None)
    name = recognize(function)
    if name is not None and name in REDUCTIONS and array is not None and options.keys() <= {"a", "axis", "keepdims"}:
        return reduce_array(REDUCTIONS[name], **{"array": array, **_without(options, "a")})
    if function is np.where and len(options) == 3:
        return combine("where", *options.values())
    if function is np.copy and array is not None:
        return combine("id", array)
    if function is np.round and options.keys() == {"a"}:
        return combine("round", array)
    if function is np.dot and all(getattr(value, "ndim", 0) in (1, 2) for value in options.values()):
        return matrix_product(*options.values())
    if function is np.transpose and options.keys() == {"a"} and array is not None:
        return transposed(array)
    if array is not None and function in (np.shape, np.ndim, np.size) and len(options) == 1:
        return getattr(array, function.__name__)
    given = f" with {', '.join(keywords)}" if keywords else ""
    raise session_of("a NumPy function of a tensor").fault(
        DslSyntaxError,
        f"np.{function.__name__}{given} has no meaning for tensors while a function is staged",
        "write it in index notation, or with the operators, primitives and reductions of the language",
    )


def options_of(function: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by parameter, without those that NumPy's own wrappers pass although nobody gave them."""
    try:
        bound = inspect.signature(function).bind(*arguments, **keywords).arguments
    except (TypeError, ValueError):
        bound = {**{f"argument {k}": value for k, value in enumerate(arguments)}, **keywords}
    return {name: value for name, value in bound.items() if value is not None and value is not np._NoValue}


def _without(options: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != name}
