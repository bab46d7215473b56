"""Code that a `@cd` function gives for tensors, taken from an earlier call with tensors of the same shapes and types.

::

    [adam(p, learning_rate=0.1) for p in parameters]      # is staged once for all that are alike

What was recorded then is kept without the tensors: which memory of which argument, or of which state, each input and
output was. A call with others puts theirs in these places, makes their state, and has their names. What depends on
anything else, such as a tensor around the function, is staged at every call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tcdsl.config import settings
from tcdsl.frontend.surroundings.readings import Reading
from tcdsl.ir.program import Program
from tcdsl.recent import Recent
from tcdsl.rows.inference import known
from tcdsl.tensors.graph_linking.code import Assignments
from tcdsl.tensors.graph_staging.state import CodeState
from tcdsl.tensors.graphs.element_types import FloatingType
from tcdsl.tensors.graphs.initialization import Copied, InitialValue
from tcdsl.tensors.graphs.settings import Setting
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory

if TYPE_CHECKING:
    from tcdsl.runtime.function import DecoratedFunction

__all__ = ["EqualCode"]

_KEPT = 64  # How many shapes and configurations are remembered of one function.
_PLAIN = (bool, int, float, str, type(None))


@dataclass(frozen=True, slots=True)
class _Place:
    # Memory of an argument, ``(0, "grad")``, or of state: the name of a tensor of the first, second, ... state.
    number: int
    kind: str
    state: str = ""


@dataclass(frozen=True, slots=True)
class _State:
    # The state of one call: its key, where its memory belongs, and for each tensor its sizes, type and start.
    function: Any
    kept: tuple[Any, ...]
    memory: tuple[_Place, ...]
    made: Mapping[str, tuple[Any, str, InitialValue | _Place]]


@dataclass(frozen=True, slots=True)
class _Kept:
    readings: tuple[Reading, ...]
    name: str
    program: Program
    inputs: tuple[_Place | Setting, ...]
    outputs: tuple[_Place, ...]
    states: tuple[_State, ...]
    # What the first argument was called, and the memory of the inputs.
    owner: str
    labels: tuple[str, ...]


class _ElsewhereError(Exception):
    # Memory that belongs neither to an argument nor to state.
    pass


class EqualCode:
    """The code of one call, to be taken from an equal one, or to be kept for those to come."""

    def __init__(
        self, function: DecoratedFunction, positional: Sequence[tuple[str, Any]], configuration: Mapping[str, Any]
    ) -> None:
        self._function, self._positional, self._configuration = function, positional, configuration
        self._given: list[Tensor] = [value for _, value in positional if isinstance(value, Tensor)]
        others = [value for _, value in positional if not isinstance(value, Tensor)]
        plain = all(type(value) in _PLAIN for value in (*others, *configuration.values()))
        shared = plain and bool(self._given) and function.receiver is None
        self._key = self._described() if shared else None
        self._readings: tuple[Reading, ...] = ()

    def _described(self) -> object:
        places = {id(tensor): k for k, tensor in reversed([*enumerate(self._given)])}
        # Derivatives inside of the code keep as much of their loops as settings say.
        described: list[object] = [settings()]
        for name, value in (*self._positional, *self._configuration.items()):
            if isinstance(value, Tensor):
                described.append(
                    (name, value.sizes, value.row_ranks, value.element_type, value.is_leaf, places[id(value)])
                )
            else:
                # By text, so that not-a-number equals itself and -0.0 differs from 0.0.
                described.append((name, type(value), repr(value)))
        return tuple(described)

    def _known(self) -> Recent[object, _Kept]:
        found: Recent[object, _Kept] = self._function.__dict__.setdefault("_equal_code", Recent(_KEPT))
        return found

    def found(self) -> Assignments | None:
        """What an equal call gives for these tensors; `keep` if there is none."""
        if self._key is None:
            return None
        kept = self._known().get(self._key)
        if kept is None or not all(reading.unchanged() for reading in kept.readings):
            self._readings = self._function.template.surroundings.read(None, self._configuration)
            if any(hasattr(reading.current(), "__array__") for reading in self._readings):
                self._key = None
            return None
        return _Call(self._given, kept).assignments()

    def keep(self, made: Assignments, states: CodeState) -> None:
        """``made`` was staged for this call, with ``states``."""
        if self._key is None or made.late:
            return
        finder = _Finder(self._given)
        try:
            found = tuple(map(finder.state, states.all_states()))
            inputs = tuple(each if isinstance(each, Setting) else finder.place(each) for each in made.inputs)
            outputs = tuple(map(finder.place, made.outputs))
        except _ElsewhereError:
            return
        labels = tuple(each.name if isinstance(each, Setting) else each.label for each in made.inputs)
        self._known()[self._key] = _Kept(
            self._readings, made.name, made.program, inputs, outputs, found, self._given[0].name, labels
        )


class _Finder:
    # Where memory belongs.

    def __init__(self, given: Sequence[Tensor]) -> None:
        self._owners: dict[int, _Place] = {}
        for number, tensor in enumerate(given):
            self._owners.setdefault(id(tensor), _Place(number, ""))
        self._count = 0

    def state(self, states: CodeState) -> _State:
        memory = tuple(map(self.place, states.memory))
        number, self._count = self._count, self._count + 1
        made: dict[str, tuple[Any, str, InitialValue | _Place]] = {}
        for name, tensor in states.made.items():
            start = tensor.initial
            assert start is not None
            begun = self.place(start.source.buffer("value")) if isinstance(start, Copied) else start
            made[name] = (_rows(tensor), tensor.element_type, begun)
            self._owners.setdefault(id(tensor), _Place(number, "", name))
        return _State(states.function, states.kept, memory, made)

    def place(self, memory: TensorMemory) -> _Place:
        found = self._owners.get(id(memory.owner))
        if found is None:
            raise _ElsewhereError
        return _Place(found.number, memory.kind, found.state)


class _Call:
    # What was kept, for the tensors ``given``.

    def __init__(self, given: Sequence[Tensor], kept: _Kept) -> None:
        self._given, self._kept = given, kept
        self._states: list[dict[str, Tensor]] = []

    def assignments(self) -> Assignments | None:
        kept = self._kept
        begun: dict[Any, tuple[Tensor, dict[str, Tensor]]] = {}
        for state in kept.states:
            memory = tuple(map(self._memory, state.memory))
            owner, key = memory[0].owner, (state.function, state.kept, memory)
            made = begun[key][1] if key in begun else owner.states.get(key)
            if made is None:
                made = self._made(state, owner)
                begun[key] = owner, made
            elif _shapes(made) != {name: (rows, kind) for name, (rows, kind, _) in state.made.items()}:
                return None
            self._states.append(made)
        inputs = tuple(each if isinstance(each, Setting) else self._memory(each) for each in kept.inputs)
        outputs = tuple(map(self._memory, kept.outputs))
        for key, (owner, made) in begun.items():
            owner.states[key] = made
        FloatingType.meeting([None, *(each.floating for each in self._given)])
        return Assignments(kept.name, kept.program, inputs, outputs, labels=self._labels(inputs))

    def _memory(self, place: _Place) -> TensorMemory:
        owner = self._states[place.number][place.state] if place.state else self._given[place.number]
        return owner.buffer(place.kind)

    def _made(self, state: _State, owner: Tensor) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name, ((batch, output, inputs), kind, start) in state.made.items():
            begun = Copied(self._memory(start).owner) if isinstance(start, _Place) else start
            found[name] = Tensor((name, *owner.labels), known(output, inputs, batch), kind, initial=begun)
        return found

    def _labels(self, inputs: Sequence[TensorMemory | Setting]) -> dict[str, str]:
        # Tensors are called after memory, `w` in `w_2`, or after what the code is for, `w` in `rate_w`.
        kept = self._kept
        labels = {old: new.label for old, new in zip(kept.labels, inputs, strict=True) if isinstance(new, TensorMemory)}
        end, name = f"_{kept.owner}", self._given[0].name
        for tensor in kept.program.tensors:
            label = tensor.label or tensor.name
            if label not in labels and label.endswith(end):
                labels[label] = f"{label.removesuffix(end)}_{name}"
        return {
            tensor.name: labels[tensor.label or tensor.name]
            for tensor in kept.program.tensors
            if (tensor.label or tensor.name) in labels
        }


def _rows(tensor: Tensor) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    ranks, sizes = tensor.row_ranks, tensor.sizes
    output, inputs = ranks.batch, ranks.batch + ranks.output
    return sizes[:output], sizes[output:inputs], sizes[inputs:]


def _shapes(made: Mapping[str, Tensor]) -> dict[str, tuple[Any, str]]:
    return {name: (_rows(tensor), tensor.element_type) for name, tensor in made.items()}
