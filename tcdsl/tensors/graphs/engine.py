"""What tensors ask of the packages that are built on them: operators, values, shapes that staging finds, pickling.

A tensor offers all of this, and all of this is written in terms of tensors. So the files that do it stand above
`Tensor`, which asks for them here; `tcdsl.tensors` registers them when it is loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from tcdsl.rows.inference import Shape
    from tcdsl.span import Span
    from tcdsl.tensors.graphs.node_operations import Operation, Recorded

__all__ = ["Engine", "engine", "use_engine"]


class Engine(Protocol):
    """What works on graphs; ``tensor`` is a `tcdsl.tensors.graphs.tensor.Tensor` throughout."""

    def operators(self) -> Any:
        """What operators and functions of the language do on tensors."""

    def evaluate(self, tensors: Sequence[Any]) -> None:
        """Bring the values of ``tensors`` up to date."""

    def staged(self, operation: Operation, arguments: Sequence[Any], location: Span | None) -> tuple[Shape, Recorded]:
        """The shape of an operation's result, and what computes it."""

    def settled(self, tensor: Any) -> Recorded:
        """What was recorded when the operation of ``tensor`` was staged."""

    def reduced(self, tensor: Any) -> tuple[Any, ...]:
        """What ``tensor.__reduce__()`` gives."""

    def restore(self, tensor: Any, state: tuple[Any, ...]) -> None:
        """What ``tensor.__setstate__(state)`` does."""


_REGISTERED: list[Engine] = []


def use_engine(engine: Engine) -> None:
    """Register what works on graphs."""
    _REGISTERED[:] = [engine]


def engine() -> Engine:
    """What works on graphs."""
    return _REGISTERED[0]
