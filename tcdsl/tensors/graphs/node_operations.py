"""What computes a node of a graph: how it is staged, and what it says about shapes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tcdsl.frontend.staging.session import Session
from tcdsl.rows.inference import Origin, Shape

__all__ = ["Operation"]


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """``stage`` records the operation in a session, on staged operands and numbers, and gives the staged result.

    ``constrain`` relates the shapes of the operands to that of the result, which it returns. An operation without it
    needs operands of known shape; its result's shape is found by staging it.
    """

    name: str
    stage: Callable[[Session, Sequence[Any]], Any]
    constrain: Callable[[Sequence[Shape], Origin], Shape] | None = None
    #: As ``stage``, for a result of these sizes: where the operands do not say how large it is, inference does.
    stage_sized: Callable[[Session, Sequence[Any], Sequence[int]], Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # Shapes are known where it is pickled, so that what it says about them has been said.
        return Operation, (self.name, self.stage)
