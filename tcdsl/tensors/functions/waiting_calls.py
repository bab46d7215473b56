"""Calls of ops that are staged as a whole, and wait until shapes are known: later uses may say them.

What such an op says about shapes is known at the call; its results are nodes whose shapes inference finds out. Where a
value, a shape or a type is asked, shapes are closed, and the op is staged, once for all its results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tcdsl.frontend.staging.declarations import DeclaredTarget, Unwritten
from tcdsl.frontend.symbols.symbols import SymbolicArray, SymbolicNumber, SymbolicSize
from tcdsl.rows.inference import Origin, Shape, close, scalar
from tcdsl.runtime.calling.results import copied
from tcdsl.runtime.calling.structure import Structure, flatten
from tcdsl.tensors.graph_staging.fragments import settled, staged
from tcdsl.tensors.graph_staging.graph_recordings import InputRecording, known_shape
from tcdsl.tensors.graphs.element_types import FloatingType
from tcdsl.tensors.graphs.location import located
from tcdsl.tensors.graphs.node_operations import Operation
from tcdsl.tensors.graphs.tensor import Tensor, is_differentiable
from tcdsl.tracebacks import user_location

__all__ = ["Promised", "waiting"]


class Promised:
    """The ``structure`` of what a call gives, and the ``shapes`` of its tensors, of which some may be found out yet.

    A name holds after a loop that is staged for shapes what it holds before, so nothing else is told.
    """

    def __init__(self, recording: InputRecording, result: Any) -> None:
        kinds = SymbolicArray | SymbolicNumber | SymbolicSize | Tensor | Unwritten | DeclaredTarget
        leaves, structure = flatten(result, lambda value: isinstance(value, kinds))
        self.structure: Structure = structure
        self.shapes = [_shape_of(recording, leaf) for leaf in leaves]


def _shape_of(recording: InputRecording, leaf: Any) -> Shape | None:
    match leaf:
        case SymbolicArray():
            return known_shape(leaf, recording.session)
        case SymbolicNumber() | SymbolicSize():
            return scalar()
        case Tensor():
            return leaf.rows
    return None


def waiting(
    name: str, structure: Structure, shapes: Sequence[Shape], operands: Sequence[Tensor], call: Callable[[], Any]
) -> Any:
    """The results of ``call``, of these ``shapes``; it is made when shapes that its ``operands`` have are closed."""
    location = user_location()

    def settle() -> None:
        unknown = [each for each in (*operands, *made) if not each.rows.is_known]
        with located(location):
            close([each.rows for each in unknown], Origin(location, operands=tuple(each.label for each in unknown)))
            results = flatten(call(), lambda value: isinstance(value, Tensor))[0]
        for node, result in zip(made, results, strict=True):
            node.arguments, node.recorded = _recorded(result)

    operation = Operation(name, None, call=settle)
    floating = FloatingType.meeting([each.floating for each in operands])
    inherited = next((each.labels for each in operands), ())
    made = [
        Tensor(
            (name if len(shapes) == 1 else f"{name}.{k}", *inherited),
            shape,
            None,
            operation,
            operands,
            floating=floating,
            differentiable=is_differentiable(None, operands),
            location=location,
        )
        for k, shape in enumerate(shapes)
    ]
    for each in made:
        each.labelled = True
    return structure.build(made)


def _recorded(found: Tensor) -> tuple[tuple[Any, ...], Any]:
    if not found.is_leaf:
        recorded = settled(found)
        return found.arguments, recorded
    copy = Operation(found.label, lambda session, given: copied(session, given[0], found.label))
    return (found,), staged(copy, (found,), found.location)[1]
