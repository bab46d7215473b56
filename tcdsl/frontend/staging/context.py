"""What holds around the statements that are being staged. A session has one at a time; it changes by blocks alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tcdsl.frontend.symbols.graphs import GraphRecording, KeptTensors
from tcdsl.span import Span

__all__ = ["StagingContext"]


def _nowhere() -> Span | None:
    return None


@dataclass(frozen=True, slots=True)
class StagingContext:
    """``with session.within(oob="skip"): ...`` stages what is in the block in another context.

    ``oob`` is what happens where a data index is out of range. ``tracing_rules`` are the derivative rules that are
    being traced: in its own rule an operation is what its statements say. ``slots`` says what the slot names of a
    function with projections stand for. ``graph`` is how tensors of graphs get into the program; without one they are
    arrays like any other. ``states`` are the tensors that code on tensors of graphs keeps from run to run.
    ``outer_location`` is the place of what is staged outside of decorated functions.
    """

    oob: str = "check"
    tracing_rules: tuple[object, ...] = ()
    slots: Mapping[str, Any] = field(default_factory=dict)
    graph: GraphRecording | None = None
    states: KeptTensors | None = None
    outer_location: Callable[[], Span | None] = _nowhere

    def traces(self, rules: object) -> bool:
        """Whether ``rules`` are being traced."""
        return any(rules is each for each in self.tracing_rules)
