"""`TensorOutput`s outside of decorated functions: nodes of a graph whose operation is their statement."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.tile.contractions import Contraction, record_contraction
from tcdsl.frontend.tile.outputs import OutputStatements
from tcdsl.frontend.tile.sizes import extent_expression
from tcdsl.frontend.tile.user_lines import names_held
from tcdsl.rows.inference import known
from tcdsl.tensors.graphs.element_types import FloatingType
from tcdsl.tensors.graphs.graph_operators import as_operand
from tcdsl.tensors.graphs.node_operations import Operation
from tcdsl.tensors.graphs.tensor import Tensor, is_differentiable
from tcdsl.tracebacks import user_location

__all__ = ["GraphOutput"]


class GraphOutput(OutputStatements, Tensor):
    """A `TensorOutput` of a graph. Its statement is recorded when its type or its value is asked for."""

    __slots__ = ("contraction", "lens", "made_at")

    def __init__(self, sizes: Sequence[int], lens: Any = None) -> None:
        self.contraction: Contraction | None = None
        self.lens = lens
        self.made_at = user_location()
        super().__init__(("output",), known(sizes, name="output"), None, Operation("output", self._nothing_written))

    def _nothing_written(self, *_: Any) -> Any:
        raise self._unwritten()

    def called(self) -> str:
        """What the user calls it."""
        return names_held(GraphOutput).get(id(self), "the output") if self.labels == ("output",) else self.label

    def _is_part_of(self, default: Any) -> bool:
        waiting, seen = [default], set()
        while waiting:
            node = waiting.pop()
            if node is self:
                return True
            if isinstance(node, Tensor) and id(node) not in seen:
                seen.add(id(node))
                waiting.extend(node.operands)
        return False

    def is_used(self) -> bool:
        """Whether the statement has been recorded."""
        return self.recorded is not None

    def complete(self, contraction: Contraction) -> None:
        """``contraction`` is the statement; again, when a default has been given to it."""
        self.contraction = contraction
        name = names_held(GraphOutput).get(id(self), "output")
        self.labels = (name,)
        self.arguments = tuple(map(as_operand, contraction.operands))
        self.operation = Operation(name, partial(_staged, contraction, self.sizes, name))
        self.location = user_location()
        self.differentiable = is_differentiable(None, self.operands)
        self._floating = FloatingType.meeting([each.floating for each in self.operands])


def _staged(
    contraction: Contraction, sizes: Sequence[int], label: str, session: Session, given: Sequence[Any]
) -> SymbolicTensor:
    return record_contraction(session, contraction, given, tuple(map(extent_expression, sizes)), label)
