"""What the frontend knows of lazily computed tensors: that they take part in arithmetic, and how they get into a program.

`tcdsl.tensor` builds the graphs. A `GraphTensor` outside of a decorated function makes a new node when an operator is
applied to it. Inside one it becomes an input of the program that is being staged: the session's `GraphRecording` says
which.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from tcdsl.frontend.operators import Algebra, ArithmeticOperators
from tcdsl.frontend.symbols import SymbolicArray, SymbolicNumber, SymbolicSize

__all__ = ["GraphRecording", "GraphTensor", "algebra_of"]


class GraphTensor(ArithmeticOperators):
    """A tensor whose value is computed when it is asked for. ``builder.algebra`` makes new nodes of its graph."""

    __slots__ = ()


class GraphRecording(Protocol):
    """How the tensors of graphs get into the program that a session records."""

    def lift(self, tensor: GraphTensor, label: str) -> Any:
        """The tensor of the program that stands for ``tensor``."""


def algebra_of(operands: Iterable[object]) -> Algebra | None:
    """What arithmetic on these operands does: recorded where one belongs to the program under construction."""
    found: Algebra | None = None
    for operand in operands:
        if isinstance(operand, SymbolicArray | SymbolicNumber | SymbolicSize):
            return operand.builder.algebra
        if isinstance(operand, GraphTensor):
            found = operand.builder.algebra
    return found
