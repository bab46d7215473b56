"""Operators in ops on tensors, where what is staged meets parameters of unknown shape.

An op whose loops run is staged as a whole, for which shapes have to be known. Where they are not, it runs once more
before that, for what it says about shapes alone: a parameter, and what is computed from it, is a tensor of the graph
there, and what a name holds before a round and after it has one shape. Later uses may say more, until shapes are asked
(`tcdsl.tensors.functions.waiting_calls`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcdsl.errors import DslSyntaxError
from tcdsl.frontend.arrays.array_literals import is_literal, leaves_of
from tcdsl.frontend.staging.declarations import DeclaredTarget, Unwritten
from tcdsl.frontend.staging.run_time_integers import RunsOnTensors, UnknownShapes
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbolic_operators import WholeArrays
from tcdsl.frontend.symbols.graph_tensors import GraphTensor
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize, SymbolicTensor
from tcdsl.rows.inference import Origin, Shape, equate, scalar
from tcdsl.span import Span
from tcdsl.tensors.graph_staging.fragments import exported
from tcdsl.tensors.graph_staging.graph_recordings import InputRecording, known_shape
from tcdsl.tensors.graphs.graph_operators import GRAPH, as_operand
from tcdsl.tensors.graphs.initialization import Given
from tcdsl.tensors.graphs.tensor import Tensor

__all__ = ["Mixed", "OfRounds", "ShapesOfRounds"]

_NUMBERS = SymbolicNumber | SymbolicSize


class Mixed(WholeArrays):
    """Operators in an op that is called with tensors: of what it stages, and of tensors of unknown shape."""

    recording: InputRecording

    def _algebra(self, operands: Sequence[object]) -> tuple[Any, list[object]]:
        # Beside a tensor of unknown shape what is staged is a tensor of the graph too.
        given = list(map(_declared, operands))
        if not any(isinstance(each, Tensor) and not each.rows.is_known for each in given):
            return super(), given
        session = self.recording.session
        in_round = session.running and any(isinstance(each, SymbolicArray) for each in given)
        if session.may_be_whole and (in_round or any(isinstance(each, _NUMBERS) for each in given)):
            raise RunsOnTensors  # what a round has computed, or a number of the program, is no tensor of the graph
        known = [exported(self.recording, [each])[0] if isinstance(each, SymbolicArray) else each for each in given]
        return GRAPH.algebra, known

    def literal(self, value: Any) -> Any:
        """A literal that holds nothing staged is a tensor of the graph."""
        staged = any(isinstance(leaf, SymbolicArray | _NUMBERS) for leaf in leaves_of(value))
        return super().literal(value) if staged else GRAPH.algebra.literal(value)

    def combine(self, primitive: str, *operands: object) -> Any:
        """A primitive on operands, some of them symbolic."""
        algebra, given = self._algebra(operands)
        return algebra.combine(primitive, *given)

    def matrix_product(self, left: object, right: object) -> Any:
        """``left @ right``."""
        algebra, given = self._algebra((left, right))
        return algebra.matrix_product(*given)

    def einsum(self, spec: str, operands: tuple[object, ...], *meaning: Any) -> Any:
        """``einsum(spec, *operands)``."""
        algebra, given = self._algebra(operands)
        return algebra.einsum(spec, tuple(given), *meaning)


class OfRounds(Mixed):
    """Operators in an op that is staged as a whole, so that loops run in it."""

    def _algebra(self, operands: Sequence[object]) -> tuple[Any, list[object]]:
        given = list(map(_declared, operands))
        if any(map(_is_unknown, given)):
            raise UnknownShapes
        return super()._algebra(given)


class ShapesOfRounds(Mixed):
    """Operators in an op that runs for what it says about shapes. A `tcdsl.frontend.symbols.graph_tensors.GraphShapes`.

    What stands for what is staged, beside a parameter, has its shape and no value.
    """

    def __init__(self) -> None:
        super().__init__()
        self._met: dict[int, Tensor] = {}

    def _algebra(self, operands: Sequence[object]) -> tuple[Any, list[object]]:
        given = list(map(_declared, operands))
        for each in given:
            self.meets(each)
        if not any(map(_is_unknown, given)):
            return super()._algebra(given)
        return GRAPH.algebra, [self._like(each) for each in given]

    def _like(self, operand: object) -> object:
        match operand:
            case SymbolicArray():
                shape = _shape_of(self.recording.session, operand)
                label = getattr(operand, "label", "x")
                return Tensor((label,), shape, str(operand.dtype), initial=Given(np.zeros(())))
            case SymbolicNumber() | SymbolicSize():
                return 1.0
            case _:
                return operand

    def meets(self, tensor: object) -> None:
        """A leaf, or a result, takes part."""
        if isinstance(tensor, Tensor) and tensor.is_leaf:
            self._met[id(tensor)] = tensor

    def same(self, before: Any, after: Any, label: str, span: Span | None) -> bool:
        """What is called ``label`` has one shape before a round, or an arm of a branch, and ``after`` it.

        False if it is no tensor of a graph, so that staging compares shapes.
        """
        if not isinstance(before, GraphTensor) and not isinstance(after, GraphTensor):
            return False
        session = self.recording.session
        if isinstance(before, str):
            fact = f"`{label}` is the text {before!r} before a round, and a tensor after it"
            raise DslSyntaxError.at(fact, span, f'for a parameter, declare it before: `{label} = param("{before}")`')
        if not isinstance(before, Unwritten | DeclaredTarget):
            hint = f"bind `{label}` before to what it is to be, or use another name in the round"
            origin = Origin(span, (label, label), hint)
            equate(_shape_of(session, before), _shape_of(session, after), origin)
        return True

    def truth(self) -> Any:
        """Stands for the truth value of a tensor: nobody asks which."""
        made = self.recording.session.builder.fixed_input("condition", "bool", ())
        return SymbolicTensor(self.recording.session.builder, made.name, "bool", (), "condition")

    @property
    def met(self) -> list[Tensor]:
        """The tensors that have taken part, which are to be known where the op is staged."""
        return list(self._met.values())


def _is_unknown(operand: object) -> bool:
    return isinstance(operand, Tensor) and not operand.rows.is_known


def _shape_of(session: Session, value: Any) -> Shape:
    if isinstance(value, GraphTensor):
        assert isinstance(value, Tensor)
        return value.rows
    return known_shape(value, session) if isinstance(value, SymbolicArray) else scalar()


def _declared(operand: object) -> object:
    return as_operand(operand) if isinstance(operand, str) or is_literal(operand) else operand
