"""What operators of a rewritten function call, where Python's own would not ask the program."""

from __future__ import annotations

from typing import Any

from tcdsl.frontend.python.list_operands import binary, unary
from tcdsl.frontend.staging.held_memory import indexed
from tcdsl.frontend.staging.session import session_of

__all__ = ["OperatorRecorder"]


class OperatorRecorder:
    """The part of the recorder for operators whose operands may be lists, or arrays around the function."""

    def operation(self, kind: str, left: Any, right: Any, *written: bool) -> Any:
        """``left + right`` and the like, where lists may take part."""
        return binary(session_of("arithmetic"), kind, left, right, written)

    def item(self, value: Any, key: Any) -> Any:
        """``value[key]``, where an array of the function's surroundings becomes an input if the program has the key."""
        return indexed(session_of("an index"), value, key)

    def sign(self, kind: str, operand: Any) -> Any:
        """``-[x, y]``."""
        return unary(session_of("arithmetic"), kind, operand)
