"""Calls of decorated functions on scalars at a point, ``out[n] = root(x[n])``, where their loops and branches run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["AtEachPoint", "PointCall", "PointCalls"]


@dataclass(frozen=True, slots=True)
class PointCall:
    """``function(*positional, **keywords)`` in a statement, the ``place``-th call that its evaluation meets."""

    place: int
    function: Any
    positional: Sequence[Any]
    keywords: Mapping[str, Any]
    span: Any


class AtEachPoint(BaseException):
    """A function that a statement calls has a loop or a branch on what differs from point to point.

    The statement is evaluated again once the ``call`` has been recorded for all points.
    """

    def __init__(self) -> None:
        super().__init__()
        self.call: PointCall | None = None


@dataclass(slots=True)
class PointCalls:
    """The calls that the evaluation of a statement has ``met``, and the ``results`` of those that are recorded.

    The others stop the evaluation, or give what ``stand_in`` says.
    """

    stand_in: Callable[[PointCall], Any] | None = None
    met: int = 0
    results: dict[int, Any] = field(default_factory=dict)

    def meet(self) -> int:
        """The place of the next call."""
        self.met += 1
        return self.met
