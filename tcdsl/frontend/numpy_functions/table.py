"""Which of NumPy's functions, of its ufuncs' methods and of its arrays' methods there are, and what each does.

A row gives a function of the arrays, with NumPy's parameters. It may use NumPy's functions itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, TcdslError
from tcdsl.frontend.numpy_functions.cells import CELLS, accumulated
from tcdsl.frontend.numpy_functions.linear_algebra import LINEAR_ALGEBRA
from tcdsl.frontend.numpy_functions.products import PRODUCT_UFUNCS, PRODUCTS
from tcdsl.frontend.numpy_functions.reductions import REDUCTIONS
from tcdsl.frontend.numpy_functions.shapes import SHAPES
from tcdsl.frontend.numpy_functions.sorting import SORTING
from tcdsl.frontend.staging.session import session_of
from tcdsl.frontend.symbols.pointwise_functions import POINTWISE, UFUNCS
from tcdsl.frontend.symbols.recognition import recognize

__all__ = ["FUNCTIONS", "PRODUCT_UFUNCS", "called", "of_ufunc"]

_ROWS = (SHAPES, POINTWISE, REDUCTIONS, PRODUCTS, CELLS, LINEAR_ALGEBRA, SORTING)
FUNCTIONS: Mapping[Any, Callable[..., Any]] = {function: row for rows in _ROWS for function, row in rows.items()}


def called(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """``function(*arguments, **keywords)``; ``NotImplemented`` if there is no row, or it has not these parameters."""
    row = FUNCTIONS.get(function)
    if row is None or not _takes(row, len(arguments), frozenset(keywords)):
        return NotImplemented
    try:
        return row(*arguments, **keywords)
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, TcdslError):
            raise
        fact = f"`{function.__name__}` of arguments that do not fit it: {error}"
        raise session_of(function.__name__).fault(DslSyntaxError, fact, "it takes what NumPy's does") from error


@lru_cache(maxsize=512)
def _takes(row: Callable[..., Any], count: int, names: frozenset[str]) -> bool:
    try:
        inspect.signature(row).bind(*(None,) * count, **dict.fromkeys(names))
    except TypeError:
        return False
    return True


# By the primitive: the accumulator, and the reduction.
_METHODS: Mapping[str | None, tuple[str, Any]] = {
    "add": ("add", np.sum),
    "mul": ("multiply", np.prod),
    "max": ("max", np.max),
    "min": ("min", np.min),
    "and_": ("and", np.all),
    "or_": ("or", np.any),
}


def of_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """``np.hypot(x, y)``, ``np.maximum.accumulate(x)``, ``np.add.reduce(x)``; ``NotImplemented`` as above."""
    if method == "__call__" and not keywords:
        row = UFUNCS.get(ufunc) or PRODUCT_UFUNCS.get(ufunc)
        return NotImplemented if row is None else row(*inputs)
    accumulate, reduction = _METHODS.get(recognize(ufunc), ("", None))
    axis = inputs[1] if len(inputs) > 1 else keywords.get("axis", 0)
    if method == "accumulate" and accumulate and keywords.keys() <= {"axis", "dtype"}:
        return accumulated(accumulate, inputs[0], axis, keywords.get("dtype"))
    if method == "reduce" and accumulate:
        return reduction(inputs[0], **{**keywords, "axis": axis})
    if method == "outer" and not keywords and ufunc in UFUNCS:
        left, right = inputs
        return UFUNCS[ufunc](left[(..., *[None] * np.ndim(right))] if np.ndim(left) else left, right)
    return NotImplemented
