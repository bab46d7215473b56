"""Tensors as bytes, and copies of them: a leaf is its data, a computed tensor the graph that it is computed from.

Graphs are deeper than Python's stack, so the computed tensors that are pickled together are written as one list,
operands first. Values and gradients of computed tensors are not written: they are computed again where they are asked
for. Shapes are closed, as they are when a value is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ref

from tcdsl.rows.inference import Shape
from tcdsl.tensors.graph_staging.graph_recordings import ancestors
from tcdsl.tensors.graphs.node_operations import Recorded
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory, tick

__all__ = ["Graph", "reduced"]


def reduced(tensor: Tensor) -> tuple[Any, ...]:
    """What ``tensor.__reduce__()`` gives."""
    tensor.sizes  # noqa: B018  # closes the shape
    if tensor.is_leaf:
        return _leaf, (type(tensor), *_description(tensor), tensor.parameter, _own_slots(tensor)), _memory(tensor)
    graph = None if tensor.graph is None else tensor.graph()
    if graph is None:
        graph = Graph(tensor)
    return _node, (graph, graph.places[id(tensor)])


def _description(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.labels, tensor.rows, tensor.element_type, tensor.differentiable


# -- leaves --------------------------------------------------------------------------------------------------


def _own_slots(tensor: Tensor) -> dict[str, Any]:
    # What a class of tensors knows beside what all of them do.
    kind = type(tensor)
    return {} if kind is Tensor else {name: getattr(tensor, name) for name in kind.__dict__.get("__slots__", ())}


def _memory(tensor: Tensor) -> tuple[Any, ...]:
    from tcdsl.tensors.graph_linking.asked_values import read_memory

    if tensor.initial is not None:
        read_memory(tensor.buffer("value"))
    return {kind: buffer.array for kind, buffer in tensor.memory.items() if buffer.clock}, tensor.states


def _leaf(
    kind: type[Tensor],
    labels: Sequence[str],
    rows: Shape,
    element_type: str,
    differentiable: bool,
    parameter: bool,
    slots: dict[str, Any],
) -> Tensor:
    made = kind.__new__(kind)
    Tensor.__init__(made, labels, rows, element_type, differentiable=differentiable, parameter=parameter)
    for name, value in slots.items():
        setattr(made, name, value)
    return made


def restore_memory(tensor: Tensor, memory: tuple[Any, ...]) -> None:
    """The counterpart of what `reduced` says of a leaf: its data, and the state that code keeps for it."""
    arrays, tensor.states = memory
    for kind, array in arrays.items():
        buffer = tensor.buffer(kind)
        # Moments of another process mean nothing here.
        buffer.array, buffer.clock = array, tick()


# -- computed tensors ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Argument:
    # A tensor of the same graph, by its place, or memory of it.
    place: int
    kind: str | None = None


class Graph:
    """Computed tensors that are pickled as one thing, while that lasts: one that is met again is the same one."""

    __slots__ = ("__weakref__", "nodes", "places")

    def __init__(self, last: Tensor) -> None:
        self.nodes = [
            each for each in ancestors([last]) if not each.is_leaf and (each.graph is None or each.graph() is None)
        ]
        self.places = {id(node): place for place, node in enumerate(self.nodes)}
        for node in self.nodes:
            node.graph = ref(self)

    def __reduce__(self) -> tuple[Any, ...]:
        described = []
        for node in self.nodes:
            node.sizes  # noqa: B018  # closes the shape
            arguments = [self._argument(argument) for argument in node.arguments]
            # What staging an operation has recorded is recorded anew; the rest was recorded by a call.
            is_staged = node.operation is not None and node.operation.stage is not None
            kept = None if is_staged or node.recorded is None else (node.recorded.program, node.recorded.output)
            described.append((_description(node), node.operation, kept, arguments, node.labelled, node.location))
        return _rebuilt, (described,)

    def _argument(self, argument: Any) -> Any:
        owner = argument.owner if isinstance(argument, TensorMemory) else argument
        if id(owner) not in self.places:
            return argument
        return _Argument(self.places[id(owner)], argument.kind if isinstance(argument, TensorMemory) else None)


def _rebuilt(described: Sequence[Any]) -> Sequence[Tensor]:
    made: list[Tensor] = []

    def operand(argument: Any) -> Any:
        if not isinstance(argument, _Argument):
            return argument
        return made[argument.place] if argument.kind is None else made[argument.place].buffer(argument.kind)

    for (labels, rows, element_type, differentiable), operation, kept, arguments, labelled, location in described:
        operands = [operand(argument) for argument in arguments]
        node = Tensor(labels, rows, element_type, operation, operands, differentiable=differentiable, location=location)
        node.labelled = labelled
        if kept is not None:
            program, output = kept
            inputs = tuple(each.buffer("value") if isinstance(each, Tensor) else each for each in operands)
            node.recorded = Recorded(program, inputs, output)
        made.append(node)
    return made


def _node(nodes: Sequence[Tensor], place: int) -> Tensor:
    return nodes[place]
