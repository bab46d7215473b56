"""Arrays that NumPy's functions fill, of sizes of the program: ``np.zeros(n)``, ``np.ones_like(x)``, ``np.eye(n)``.

::

    states = np.zeros((len(x) + 1, 3))
    for t in range(len(x)):
        states[t + 1] = step(states[t], x[t])

Types are NumPy's: float64, unless ``dtype`` or what is like another array says something else. Of integers of Python
alone they are NumPy's own arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, DtypeError, ShapeError
from tcdsl.frontend.arrays.arithmetic import broadcast, combine, element_of, staged_operand
from tcdsl.frontend.arrays.row_alignment import axis_variable, rows_of
from tcdsl.frontend.staging.declarations import given_extent
from tcdsl.frontend.staging.session import Session, session_of
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.recognition import CASTS, recognize
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicNumber, SymbolicSize, number_value
from tcdsl.frontend.symbols.values import Value, cast_value, stored_dtype
from tcdsl.ir.build import apply, integer
from tcdsl.ir.dtypes import DTYPES
from tcdsl.ir.expressions import Expr, IndexValue, SizeValue
from tcdsl.ir.text.printer import format_expr

__all__ = ["filled_array", "fills_array"]

_SYMBOLIC = (GraphTensor, SymbolicArray, SymbolicNumber, SymbolicSize)


def filled_array(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """``function(*arguments, **keywords)`` if that fills an array whose extents or cells only the call knows, else
    ``NotImplemented``.
    """
    rule = _rule(function)
    if rule is None or not any(map(_is_symbolic, (*arguments, *keywords.values()))):
        return NotImplemented
    session = session_of(f"np.{function.__name__}")
    try:
        given = signature(rule).bind(session, *arguments, **keywords)
    except TypeError as error:
        fact = f"np.{function.__name__} of sizes: {error}"
        raise session.fault(DslSyntaxError, fact, "write the cells in a statement: `y[i] = ...`") from None
    return rule(*given.args, **given.kwargs)


def fills_array(function: Any) -> bool:
    """Whether `filled_array` may know ``function``."""
    return _rule(function) is not None


def _rule(function: Any) -> Callable[..., PendingArray] | None:
    return next((made for numpys, made in _RULES if numpys is function), None)


def _is_symbolic(given: Any) -> bool:
    return any(map(_is_symbolic, given)) if isinstance(given, tuple | list) else isinstance(given, _SYMBOLIC)


def _constant(number: float) -> Callable[..., PendingArray]:
    def rule(session: Session, shape: Any, dtype: Any = None) -> PendingArray:
        return _full(session, shape, np.float64(number), dtype)

    return rule


def _constant_like(number: float) -> Callable[..., PendingArray]:
    def rule(session: Session, a: Any, dtype: Any = None, *, shape: Any = None) -> PendingArray:
        return _full_like(session, a, number, dtype, shape=shape)

    return rule


def _full(session: Session, shape: Any, fill_value: Any, dtype: Any = None) -> PendingArray:
    wanted = tuple(shape) if isinstance(shape, tuple | list) else (shape,)
    extents = tuple(given_extent(extent, session.location()) for extent in wanted)
    value, own = element_of(fill_value, session)
    (_, value), common = broadcast(session, [(Value.of(0), extents), (value, own)])
    if common != extents:
        shown, wanted_shape = (", ".join(map(format_expr, each)) for each in (own, extents))
        fact = f"what fills an array of shape ({wanted_shape}) has shape ({shown})"
        raise session.fault(ShapeError, fact, "give a number, or an array that broadcasts to the shape")
    return _of(session, value, extents, dtype)


def _full_like(session: Session, a: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None) -> PendingArray:
    a = staged_operand(a, session)
    value, extents = element_of(a, session)
    like = tuple(SymbolicSize(session.builder, extent) for extent in extents) if shape is None else shape
    made = _full(session, like, fill_value, stored_dtype(value) if dtype is None else dtype)
    # As the array that it is like, it has batch and input axes.
    return PendingArray(made.builder, made.element, made.extents, rows_of(a, extents)) if shape is None else made


def _eye(session: Session, N: Any, M: Any = None, k: Any = 0, dtype: Any = None) -> PendingArray:
    extents = tuple(given_extent(extent, session.location()) for extent in (N, N if M is None else M))
    offset = number_value(k, session.location())
    if offset is None or offset.weak != "int":
        raise session.fault(DtypeError, "the number of a diagonal is an integer", "write `np.eye(n, k=1)`")
    row, column = IndexValue(axis_variable(1)), IndexValue(axis_variable(0))
    diagonal = Value(apply("eq", column, apply("add", row, offset.expr)), None, "bool")
    return _of(session, diagonal, extents, "float64" if dtype is None else dtype)


def _identity(session: Session, n: Any, dtype: Any = None) -> PendingArray:
    return _eye(session, n, dtype=dtype)


def _arange(session: Session, start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> PendingArray:
    if stop is None:
        start, stop = 0, start
    if not isinstance(step, int) or isinstance(step, bool) or step == 0:
        raise session.fault(DslSyntaxError, "the step of `np.arange` of sizes", "give an integer other than 0")
    first, _ = (_whole(session, each) for each in (start, stop))
    away = combine("sub", stop, start) if step > 0 else combine("sub", start, stop)
    count = combine("floor_div", combine("add", away, abs(step) - 1), abs(step))
    # An extent of an array is never below 0.
    plain = isinstance(count, SymbolicSize) and isinstance(count.expr, SizeValue)
    extent = given_extent(count if plain else combine("max", count, 0), session.location())
    cell = apply("add", first, apply("mul", integer(step), IndexValue(axis_variable(0))))
    return _of(session, Value(cell, None, "int64"), (extent,), dtype)


def _linspace(session: Session, start: Any, stop: Any, num: Any = 50, dtype: Any = None) -> PendingArray:
    # Of the type that both ends have as floating numbers, and computed in it.
    start, stop = combine("mul", start, 1.0), combine("mul", stop, 1.0)
    ends, _ = element_of(combine("add", start, stop), session)
    numbers, steps = _arange(session, num, dtype=stored_dtype(ends)), combine("max", combine("sub", num, 1), 1)
    between = combine("add", start, combine("mul", numbers, combine("div", combine("sub", stop, start), steps)))
    made: PendingArray = combine("where", combine("eq", numbers, steps), stop, between)
    return made if dtype is None else _of(session, made.element, tuple(made.extents), dtype)


def _whole(session: Session, given: Any) -> Expr:
    number = number_value(given, session.location())
    if number is None or number.weak != "int":
        hint = "write its cells in a statement: `y = output(n)` and `y[i] = 0.5 * i`"
        raise session.fault(DslSyntaxError, "`np.arange` of sizes takes integers", hint)
    return number.expr


def _of(session: Session, value: Value, extents: tuple[Expr, ...], dtype: Any) -> PendingArray:
    name = stored_dtype(value) if dtype is None else _type_of(session, dtype)
    return PendingArray(session.builder, cast_value(value, name, session.location()), extents)


def _type_of(session: Session, dtype: Any) -> str:
    named = recognize(dtype)
    try:
        name = CASTS[named] if named is not None and named in CASTS else str(np.dtype(dtype))
    except (TypeError, ValueError):  # ValueError where it has a `dtype`, as a tensor has
        name = str(dtype)
    if name not in DTYPES:
        raise session.fault(DtypeError, f"{name} is no element type of the language", f"use {', '.join(DTYPES)}")
    return name


_RULES: tuple[tuple[Any, Callable[..., PendingArray]], ...] = (
    (np.zeros, _constant(0)),
    (np.ones, _constant(1)),
    (np.empty, _constant(0)),
    (np.ndarray, _constant(0)),
    (np.full, _full),
    (np.zeros_like, _constant_like(0)),
    (np.ones_like, _constant_like(1)),
    (np.empty_like, _constant_like(0)),
    (np.full_like, _full_like),
    (np.eye, _eye),
    (np.identity, _identity),
    (np.arange, _arange),
    (np.linspace, _linspace),
)
