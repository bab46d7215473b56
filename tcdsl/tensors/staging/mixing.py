"""Arithmetic in decorated functions that run on tensors: of what is staged, and of tensors of unknown shape.

A tensor of known shape is an input of the program that is being staged. Beside one whose shape is not known yet, what
is staged becomes a tensor of the graph, and the operation a node.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tcdsl.frontend.arrays.array_literals import is_literal, leaves_of
from tcdsl.frontend.staging.declared_parameters import InlineDeclaration
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbolic_operators import WholeArrays
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.tensors.graphs.graph_operators import GRAPH, as_operand
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tensors.staging.fragments import exported
from tcdsl.tensors.staging.staging import InputRecording, recording_session

__all__ = ["tensors_session"]


class _Mixed(WholeArrays):
    recording: InputRecording

    def _algebra(self, operands: Sequence[object]) -> tuple[Any, list[object]]:
        # Beside a tensor of unknown shape what is staged is a tensor of the graph too.
        given = list(map(_declared, operands))
        if not any(isinstance(each, Tensor) and not each.rows.is_known for each in given):
            return super(), given
        known = [exported(self.recording, [each])[0] if isinstance(each, SymbolicArray) else each for each in given]
        return GRAPH.algebra, known

    def literal(self, value: Any) -> Any:
        """A literal that holds nothing staged is a tensor of the graph."""
        staged = any(isinstance(leaf, SymbolicArray | SymbolicNumber | SymbolicSize) for leaf in leaves_of(value))
        return super().literal(value) if staged else GRAPH.algebra.literal(value)

    def combine(self, primitive: str, *operands: object) -> Any:
        """A primitive on operands, some of them symbolic."""
        algebra, given = self._algebra(operands)
        return algebra.combine(primitive, *given)

    def matrix_product(self, left: object, right: object) -> Any:
        """``left @ right``."""
        algebra, given = self._algebra((left, right))
        return algebra.matrix_product(*given)

    def einsum(self, spec: str, operands: tuple[object, ...], accumulate: str, primitive: str) -> Any:
        """``einsum(spec, *operands)``."""
        algebra, given = self._algebra(operands)
        return algebra.einsum(spec, tuple(given), accumulate, primitive)


def _declared(operand: object) -> object:
    return as_operand(operand) if isinstance(operand, str | InlineDeclaration) or is_literal(operand) else operand


@contextmanager
def tensors_session(name: str, memory: bool = False) -> Iterator[tuple[Session, InputRecording]]:
    """A staging run of a decorated function on tensors; with ``memory`` its statements may store into them."""
    algebra = _Mixed()
    with recording_session(name, algebra, memory) as (session, recording):
        algebra.recording = recording
        yield session, recording
