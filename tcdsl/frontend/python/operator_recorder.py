"""What operators and calls in a rewritten function call, where Python's own would not ask the program."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.names.array_calls import call_function, is_plain_call
from tcdsl.frontend.python.list_operands import binary, unary
from tcdsl.frontend.running_loops.outside_changes import binds_globals, refuse_globals
from tcdsl.frontend.staging.held_memory import indexed
from tcdsl.frontend.staging.session import current_session, session_of
from tcdsl.frontend.symbols.operators import PrimitiveOperators

__all__ = ["OperatorRecorder"]


class OperatorRecorder:
    """The part of the recorder for calls, and for operators whose operands may be lists or arrays around it.

    A lambda may run when nothing is staged any more, as those that initialize parameters do: then all is Python's.
    """

    def operation(self, kind: str, left: Any, right: Any, *written: bool) -> Any:
        """``left + right`` and the like, where lists may take part."""
        return binary(current_session(), kind, left, right, written)

    def item(self, value: Any, key: Any) -> Any:
        """``value[key]``, where an array of the function's surroundings becomes an input if the program has the key."""
        return indexed(current_session(), value, key)

    def sign(self, kind: str, operand: Any) -> Any:
        """``-[x, y]``."""
        return unary(current_session(), kind, operand)

    def called(self, function: Any) -> Callable[..., Any]:
        """What is called for ``function(...)``: a primitive on symbolic arguments, else the function itself.

        The user's own frame calls it, of which `breakpoint`, logging and warnings show the line.
        """
        if isinstance(function, PrimitiveOperators):
            fact = f"{function!r} is no function"
            raise session_of("a call").fault(
                DslSyntaxError, fact, "write `z[1]` for a cell, and `z * (1)` for a product"
            )
        is_plain = is_plain_call(function) and not binds_globals(function)
        return function if is_plain else partial(self._call, function)

    def _call(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        result = call_function(function, arguments, keywords)
        session = current_session()
        if session is not None and session.running:
            refuse_globals(session, function)
        return result
