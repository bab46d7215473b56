"""What works on graphs, as tensors ask for it (`tcdsl.tensors.engine`); each part is loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tcdsl.ir.span import Span
    from tcdsl.shapes.rows.inference import Shape
    from tcdsl.tensors.operations import Operation

__all__ = ["GraphEngine"]


class GraphEngine:
    """A `tcdsl.tensors.engine.Engine`."""

    def operators(self) -> Any:
        """`tcdsl.tensors.algebra`."""
        from tcdsl.tensors.algebra import GRAPH

        return GRAPH

    def evaluate(self, tensors: Sequence[Any]) -> None:
        """`tcdsl.tensors.evaluation`."""
        from tcdsl.tensors.evaluation import evaluate

        evaluate(tensors)

    def staged_shape(self, operation: Operation, arguments: Sequence[Any], location: Span | None) -> tuple[Shape, str]:
        """`tcdsl.tensors.staging`."""
        from tcdsl.tensors.staging import shape_by_staging

        return shape_by_staging(operation, arguments, location)

    def reduced(self, tensor: Any) -> tuple[Any, ...]:
        """`tcdsl.tensors.pickling`."""
        from tcdsl.tensors.pickling import reduced

        return reduced(tensor)

    def restore(self, tensor: Any, state: tuple[Any, ...]) -> None:
        """`tcdsl.tensors.pickling`."""
        from tcdsl.tensors.pickling import restore_memory

        restore_memory(tensor, state)
