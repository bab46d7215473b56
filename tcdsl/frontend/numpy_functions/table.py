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
from tcdsl.frontend.numpy_functions.recording import array_of
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
    names = None if row is None else _names(row, len(arguments), frozenset(keywords))
    if row is None or names is None:
        return NotImplemented
    given = [_fitting(name, each) for name, each in zip(names, arguments, strict=True)]
    return _of(function.__name__, row, given, {name: _fitting(name, each) for name, each in keywords.items()})


def _of(name: str, row: Callable[..., Any], arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    try:
        return row(*arguments, **keywords)
    except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError) as error:
        if isinstance(error, TcdslError):
            raise
        fact = f"`{name}` of arguments that do not fit it: {error}"
        raise session_of(name).fault(DslSyntaxError, fact, "it takes what NumPy's does") from error


@lru_cache(maxsize=512)
def _names(row: Callable[..., Any], count: int, names: frozenset[str]) -> tuple[str, ...] | None:
    # Of the parameters that the arguments by position are for; None where the row has not all parameters.
    signature = inspect.signature(row)
    try:
        signature.bind(*(None,) * count, **dict.fromkeys(names))
    except TypeError:
        return None
    named = [each.name for each in signature.parameters.values() if each.kind is not each.VAR_POSITIONAL]
    return tuple(named[k] if k < len(named) else "" for k in range(count))


# NumPy's names of parameters that are arrays, for which lists and numbers may stand, and of those that count or place.
_NAMES_OF_ARRAYS = "a b v x y m p A arr ary array a1 a2 x1 x2 xp fp weights val z f values"
_NAMES_OF_COUNTS = "axis axes axis1 axis2 source destination shape repeats reps shift k n N offset ddof correction"
_MORE_OF_COUNTS = "pad_width decimals indices_or_sections minlength obj"
_ARRAYS = frozenset(_NAMES_OF_ARRAYS.split())
_COUNTS = frozenset((*_NAMES_OF_COUNTS.split(), *_MORE_OF_COUNTS.split()))


def _fitting(name: str, given: Any) -> Any:
    if name in _ARRAYS:
        return array_of(given)
    return _counted(given) if name in _COUNTS else given


def _counted(given: Any) -> Any:
    # With Python's integers for those of NumPy, which would be arrays beside sizes.
    if isinstance(given, tuple | list):
        return type(given)(map(_counted, given)) if type(given) in (tuple, list) else given
    return given.tolist() if isinstance(given, np.integer | np.ndarray) and given.dtype.kind in "iu" else given


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
        given = [array_of(each) if isinstance(each, list | tuple) else each for each in inputs]
        return NotImplemented if row is None else _of(ufunc.__name__, row, given, {})
    accumulate, reduction = _METHODS.get(recognize(ufunc), ("", None))
    axis = inputs[1] if len(inputs) > 1 else keywords.get("axis", 0)
    if method == "accumulate" and accumulate and keywords.keys() <= {"axis", "dtype"}:
        return accumulated(accumulate, inputs[0], axis, keywords.get("dtype"))
    if method == "reduce" and accumulate:
        return _of(f"{ufunc.__name__}.reduce", reduction, inputs[:1], {**keywords, "axis": axis})
    if method == "outer" and not keywords and ufunc in UFUNCS:
        left, right = map(array_of, inputs)
        return UFUNCS[ufunc](left[(..., *[None] * np.ndim(right))] if np.ndim(left) else left, right)
    return NotImplemented
