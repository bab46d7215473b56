"""Calls in decorated functions outside of statements: primitives and reductions of whole arrays, else Python's call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.arithmetic import cast_any, combine
from tcdsl.frontend.contraction import reduce_array
from tcdsl.frontend.operators import ArithmeticOperators
from tcdsl.frontend.points import PointValue, combine_points
from tcdsl.frontend.recognition import CASTS, REDUCTIONS, recognize
from tcdsl.frontend.session import current_session, session_of
from tcdsl.frontend.symbols import SymbolicArray
from tcdsl.ir.primitives import PRIMITIVES

__all__ = ["call_function"]


def call_function(function: Any, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """``function(*arguments, **keywords)``, where recognized functions of symbolic arguments become parts of the
    program.

    ``relu(x)``, ``np.exp(x)`` and ``math.sqrt(rate)`` are primitives, ``float32(x)`` a cast, ``max(a, b)`` is
    elementwise, and ``sum(x)``, ``np.max(x, axis=0)`` reduce whole arrays as NumPy's functions do.
    """
    name = recognize(function)
    if name is not None and not keywords and any(isinstance(a, PointValue) for a in arguments):
        return combine_points(name, arguments)
    symbolic = any(isinstance(a, ArithmeticOperators) for a in (*arguments, *keywords.values()))
    if name is None or not symbolic or current_session() is None:
        return function(*arguments, **keywords)
    if name in REDUCTIONS and len(arguments) == 1 and isinstance(arguments[0], SymbolicArray):
        return reduce_array(REDUCTIONS[name], arguments[0], **keywords)
    if keywords:
        raise session_of(name).fault(
            DslSyntaxError, f"`{name}` does not take {', '.join(keywords)} here", "write a statement in index notation"
        )
    if name in CASTS or name == "bool":
        return cast_any(arguments[0], CASTS.get(name, name))
    if name in PRIMITIVES:
        if name in ("max", "min") and len(arguments) > 2:
            return reduce(lambda left, right: combine(name, left, right), arguments)
        if len(arguments) != PRIMITIVES[name].arity:
            raise session_of(name).fault(
                DslSyntaxError, f"`{name}` takes {PRIMITIVES[name].arity} arguments, not {len(arguments)}"
            )
        return combine(name, *arguments)
    return function(*arguments, **keywords)
