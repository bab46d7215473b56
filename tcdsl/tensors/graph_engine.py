"""What works on graphs, as tensors ask for it (`tcdsl.tensors.graphs.engine`); each part is loaded when it is first
needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcdsl.rows.inference import Shape
    from tcdsl.span import Span
    from tcdsl.tensors.graphs.node_operations import Operation, Recorded

__all__ = ["GraphEngine"]


class GraphEngine:
    """A `tcdsl.tensors.graphs.engine.Engine`."""

    def operators(self) -> Any:
        """`tcdsl.tensors.graphs.graph_operators`."""
        from tcdsl.tensors.graphs.graph_operators import GRAPH

        return GRAPH

    def evaluate(self, tensors: Sequence[Any]) -> None:
        """`tcdsl.tensors.linking.asked_values`."""
        from tcdsl.tensors.linking.asked_values import evaluate

        evaluate(tensors)

    def staged(self, operation: Operation, arguments: Sequence[Any], location: Span | None) -> tuple[Shape, Recorded]:
        """`tcdsl.tensors.staging.fragments`."""
        from tcdsl.tensors.staging.fragments import staged

        return staged(operation, arguments, location)

    def settled(self, tensor: Any) -> Recorded:
        """`tcdsl.tensors.staging.fragments`."""
        from tcdsl.tensors.staging.fragments import settled

        return settled(tensor)

    def reduced(self, tensor: Any) -> tuple[Any, ...]:
        """`tcdsl.tensors.tensor_pickling`."""
        from tcdsl.tensors.tensor_pickling import reduced

        return reduced(tensor)

    def restore(self, tensor: Any, state: tuple[Any, ...]) -> None:
        """`tcdsl.tensors.tensor_pickling`."""
        from tcdsl.tensors.tensor_pickling import restore_memory

        restore_memory(tensor, state)
