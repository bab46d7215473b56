"""Calls in decorated functions outside of statements: primitives and reductions of whole arrays, else Python's call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from inspect import signature
from types import BuiltinFunctionType, GeneratorType
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError, TcdslError, raised_in_a_call
from tcdsl.frontend.arrays.array_literals import Batch, holds_tensors, is_literal, literal_of
from tcdsl.frontend.arrays.filled_arrays import filled_array, fills_array
from tcdsl.frontend.points.point_scalars import PointValue, combine_points
from tcdsl.frontend.staging.declared_parameters import declared_parameter
from tcdsl.frontend.staging.session import Poison, StagingStopped, current_session, session_of
from tcdsl.frontend.surroundings.named_values import is_of_numba
from tcdsl.frontend.symbols.graph_tensors import GraphTensor, algebra_of
from tcdsl.frontend.symbols.operators import Algebra
from tcdsl.frontend.symbols.pointwise_functions import pointwise_function
from tcdsl.frontend.symbols.recognition import CASTS, REDUCTIONS, names_axes, of_one_cell, recognize
from tcdsl.frontend.symbols.symbols import SymbolicArray, reduced
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["as_python_does", "call_function", "is_plain_call", "refuse_compiled"]


def call_function(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """``function(*arguments, **keywords)``, where recognized functions of symbolic arguments become parts of the
    program.

    ``relu(x)``, ``np.exp(x)`` and ``math.sqrt(rate)`` are primitives, ``float32(x)`` a cast, ``max(a, b)`` is
    elementwise, and ``sum(x)``, ``np.max(x, axis=0)`` reduce whole arrays as NumPy's functions do.
    """
    if len(arguments) == 1 and isinstance(arguments[0], GeneratorType):
        name = recognize(function)
        if name in _TAKE_ALL:
            return _of_generator(name, function, list(arguments[0]), keywords)
    return _called(function, arguments, keywords)


def _called(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    if function is len and len(arguments) == 1 and _is_array(arguments[0]):
        return _length(arguments[0])
    filled = filled_array(function, arguments, keywords)
    if filled is not NotImplemented:
        return filled
    name = recognize(function)
    if name is not None and not keywords and any(isinstance(a, PointValue) for a in arguments):
        return _of_points(function, name, arguments)
    if any(isinstance(each, str) for each in arguments) and _declares(function, name, arguments):
        arguments = _declared(arguments)
    if name is not None and _takes_literals(function, name, arguments):
        session = session_of(name)
        arguments = [literal_of(session, each) if is_literal(each) else each for each in arguments]
    if name in _OF_SCALARS and isinstance(function, BuiltinFunctionType) and len(arguments) == 1 and not keywords:
        scalars = _scalars(arguments[0])
        if scalars is not None:
            primitive = _OF_SCALARS[name]
            return reduce(lambda left, right: scalars[0].combine(primitive, left, right), scalars[1])
    algebra = algebra_of((*arguments, *keywords.values()))
    if name is None or algebra is None:
        return as_python_does(function if algebra is None else _row(function), *arguments, **keywords)
    options = _options(name, function, arguments, keywords)
    if options is not None:
        return reduced(algebra, name, arguments[0], **options)
    if keywords:
        hint = "assign what it gives: `a[...] = a + b`" if "out" in keywords else "write a statement in index notation"
        raise _fault(f"`{name}` does not take {', '.join(keywords)} here", hint)
    if name in CASTS or name == "bool":
        if len(arguments) != 1:
            raise _fault(f"`{name}` takes 1 argument, not {len(arguments)}", f"write `{name}(x)`")
        return algebra.cast(arguments[0], CASTS.get(name, name))
    if name in PRIMITIVES:
        return _primitive(algebra, name, arguments)
    return as_python_does(function, *arguments, **keywords)


def _of_points(function: Any, name: str, arguments: Sequence[Any]) -> Any:
    if name in REDUCTIONS and names_axes(function, arguments):
        raise _fault(*of_one_cell(name))
    return combine_points(name, arguments)


def _is_array(given: Any) -> bool:
    return isinstance(given, SymbolicArray | GraphTensor)


def _options(name: str, function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any] | None:
    # Of a reduction of a whole array: `np.max(x, 0)` names an axis, where `max(x, 0)` compares.
    if name not in REDUCTIONS or not _is_array(arguments[0]):
        return None
    if len(arguments) == 1:
        return dict(keywords)
    if not names_axes(function, arguments):
        return None
    _, *given = signature(function).bind(*arguments, **keywords).arguments.items()
    return {option: value for option, value in given if value is not np._NoValue}


def _row(function: Any) -> Any:
    # `math.hypot(x, y)` of arrays; NumPy's functions ask the arrays themselves.
    row = pointwise_function(function) if isinstance(function, BuiltinFunctionType) else None
    return row or function


def as_python_does(function: Any, /, *arguments: Any, **keywords: Any) -> Any:
    """``function(*arguments, **keywords)``; what Python or NumPy say is wrong with it is a fault of the user's line."""
    refuse_compiled(function, (*arguments, *keywords.values()))
    try:
        return function(*arguments, **keywords)
    except (TypeError, ValueError, LookupError, ArithmeticError) as error:
        if any(isinstance(each, Poison) for each in (*arguments, *keywords.values())):
            raise StagingStopped from None  # of a fault that has been told
        session, trace = current_session(), error.__traceback__
        while trace is not None and (trace := trace.tb_next) is not None:
            if not str(trace.tb_frame.f_globals.get("__name__")).startswith("numpy"):
                raise  # what the user's own code has raised, or a fault of this one's
        span = None if session is None else session.location()
        if span is None or isinstance(error, TcdslError):
            raise
        raise raised_in_a_call(error, span) from None


def refuse_compiled(function: Any, arguments: Sequence[Any]) -> None:
    """Raise if ``function`` is compiled by Numba, and called with symbols, of which Numba knows nothing."""
    if is_of_numba(function) and (
        algebra_of(arguments) is not None or any(isinstance(each, PointValue) for each in arguments)
    ):
        name = getattr(function, "__name__", "g")
        hint = f"make an operation of it, outside of the function: `{name} = tc.interop.numba({name})`"
        raise _fault(f"`{name}` is a function of Numba, which takes arrays and numbers alone", hint)


# Those that ask a generator for all that it gives.
_TAKE_ALL = frozenset(REDUCTIONS) - {"any", "all"}


def _of_generator(name: str, function: Any, elements: list[Any], keywords: Mapping[str, Any]) -> Any:
    # What a generator of Python's has given, which NumPy would take for one object: cell by cell, as Python's `sum`.
    if isinstance(function, BuiltinFunctionType):
        return _called(function, [elements], keywords)
    if algebra_of(elements) is None and not any(isinstance(each, PointValue) for each in elements):
        return as_python_does(function, elements, **keywords)
    if keywords:
        hint = "assign what it gives: `a[...] = a + b`" if "out" in keywords else "write a statement in index notation"
        raise _fault(f"`{name}` does not take {', '.join(keywords)} here", hint)
    if name not in ("sum", "mean"):
        fact = f"`{name}` over {len(elements)} Python objects"
        raise _fault(fact, f"use a range and an index, as in `{name}(x[k] for k in range(n))`, or an array")
    total = sum(elements)
    return total / len(elements) if name == "mean" else total


def is_plain_call(function: Any) -> bool:
    """Whether `call_function` calls ``function`` as Python does, whatever its arguments are."""
    return (
        function is not len and recognize(function) is None and not fills_array(function) and not is_of_numba(function)
    )


_OF_SCALARS = {"max": "max", "min": "min", "any": "or_", "all": "and_"}


def _scalars(given: Any) -> tuple[Algebra, Sequence[Any]] | None:
    # A list of numbers, of which the call knows some: Python's `max` would ask which one is larger.
    if not isinstance(given, list | tuple) or not given:
        return None
    algebra = algebra_of(given)
    plain = all(isinstance(each, int | float) or getattr(each, "ndim", 0) == 0 for each in given)
    return None if algebra is None or not plain else (algebra, given)


def _length(array: Any) -> Any:
    # A size, where Python's `len` would ask for an integer.
    return array.shape[0] if array.ndim else len(array)


def _takes_literals(function: Any, name: str, arguments: Sequence[Any]) -> bool:
    """Whether lists and tuples among the arguments are arrays: those that hold tensors, and those of a function of the
    language itself. Python's ``max([a, b])`` and ``sum([x, y])``, and NumPy on numbers, are what they are.
    """
    given = [each for each in arguments if is_literal(each)]
    if not given or current_session() is None:
        return False
    if name in REDUCTIONS and len(arguments) == 1:
        return isinstance(given[0], Batch) or (
            holds_tensors(given[0]) and not isinstance(function, BuiltinFunctionType)
        )
    if name not in CASTS and (name not in PRIMITIVES or PRIMITIVES[name].arity != len(arguments)):
        return False
    return hasattr(function, "__tcdsl_name__") or any(isinstance(each, Batch) or holds_tensors(each) for each in given)


def _declares(function: Any, name: str | None, arguments: Sequence[Any]) -> bool:
    # Whether strings among the arguments are parameters: what Python's own functions make of text is text.
    if len(arguments) == 1 and isinstance(arguments[0], str) and isinstance(function, BuiltinFunctionType | type):
        return name == "sum" or (name in PRIMITIVES and name not in _OF_SCALARS)
    return name in PRIMITIVES or name in REDUCTIONS or name in CASTS or function is len


def _declared(arguments: Sequence[Any]) -> list[Any]:
    # `relu("w"[3])`: as an argument of a primitive a string declares a parameter, where the function runs on tensors.
    session = current_session()
    if session is None:
        return list(arguments)
    return [declared_parameter(each, session.location()) if isinstance(each, str) else each for each in arguments]


def _primitive(algebra: Algebra, name: str, arguments: Sequence[Any]) -> Any:
    if name in ("max", "min") and len(arguments) > 2:
        return reduce(lambda left, right: algebra.combine(name, left, right), arguments)
    if len(arguments) != PRIMITIVES[name].arity:
        raise _fault(f"`{name}` takes {PRIMITIVES[name].arity} arguments, not {len(arguments)}")
    return algebra.combine(name, *arguments)


def _fault(fact: str, hint: str = "") -> TcdslError:
    session = current_session()
    return DslSyntaxError.at(fact, None if session is None else session.location(), hint)
