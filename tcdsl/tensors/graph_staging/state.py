"""State of code: what a `@cd` function reads before it writes it, such as a momentum.

::

    @cd
    def momentum(p, *, learning_rate, beta):
        velocity = beta * velocity + p.grad          # starts at zero, and keeps its value from run to run
        p -= learning_rate * velocity

State belongs to the function, its configuration and the tensors that it is called with. It starts at zero, or as
``velocity = output(init=...)`` says. Its shape is that of the array
that is first stored into it, that of a number if none is. So the function is staged as often as it takes to know all of
them: reading state of unknown shape gives one, and stores tell the shape. In ``v *= 0.9; v[i] += p.grad[i]`` the second
statement does, as if it made a new tensor.

What only a run knows, as ``output(init=p.grad)``, is stored by the first run: it finds a flag beside the state unset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tcdsl.errors import ConfigurationError, ShapeError
from tcdsl.frontend.arrays.arithmetic import combine
from tcdsl.frontend.arrays.array_stores import store_elementwise
from tcdsl.frontend.symbols.graph_tensors import PendingState
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicNumber, SymbolicTensor
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Constant
from tcdsl.rows.inference import Shape, known
from tcdsl.tensors.graph_staging.graph_recordings import InputRecording, StagedTensor, known_shape
from tcdsl.tensors.graphs.initialization import Copied, Filled, Given, InitialValue
from tcdsl.tensors.graphs.location import fault
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory

if TYPE_CHECKING:
    from tcdsl.runtime.decorated import Decorated

__all__ = ["CodeState", "StateShape"]


class StateShape(BaseException):
    """The shape of state has become known, or an index list will tell it (``shape`` is ``None``): stage again.

    Not an `Exception`, so that no ``except`` in user code catches it.
    """

    def __init__(self, states: CodeState, name: str, shape: Shape | None, element_type: str) -> None:
        super().__init__(name)
        self.states = states
        self.name = name
        self.shape = shape
        self.element_type = element_type


_NUMBERS = float | SymbolicNumber | Tensor
_ZERO = Filled(0.0)
_BEGUN = "_begun"


def _memory(value: object) -> TensorMemory | None:
    # Staged tensors stand for their memory.
    if isinstance(value, StagedTensor):
        return value.buffer
    return value.buffer("value") if isinstance(value, Tensor) else None


class CodeState:
    """The state of one call of a `@cd` function. A `tcdsl.frontend.symbols.graph_tensors.KeptTensors`."""

    def __init__(
        self,
        function: Decorated,
        positional: Sequence[tuple[str, Any]],
        configuration: Mapping[str, Any],
    ) -> None:
        memory = [each for each in (_memory(value) for _, value in positional) if each is not None]
        # Numbers of the run, such as a learning rate, may change without a new start.
        kept = tuple((name, value) for name, value in sorted(configuration.items()) if not isinstance(value, _NUMBERS))
        self.function, self.kept, self.memory = function, kept, tuple(memory)
        # Kept by the tensor that they are for, and no longer than that.
        self._key, self._owner = (function, kept, self.memory), memory[0].owner
        self._labels = self._owner.labels
        self._made: dict[str, Tensor] = dict(self._owner.states.get(self._key, {}))
        self._pending: set[str] = set()
        #: State that is a number as far as stores have told.
        self._numbers: set[str] = set()
        #: State whose shape a statement with an index list tells.
        self._open: set[str] = set()
        #: How state starts that does not start at zero.
        self._starts: dict[str, InitialValue] = {}
        self._recording: InputRecording | None = None
        self._inner: list[CodeState] = []

    @property
    def made(self) -> Mapping[str, Tensor]:
        """The tensors, by name."""
        return self._made

    def all_states(self) -> list[CodeState]:
        """It, and the state of the functions that the code has called in its last staging run."""
        return [self, *(each for inner in self._inner for each in inner.all_states())]

    def begin(self, recording: InputRecording) -> CodeState:
        """A staging run starts."""
        self._recording = recording
        self._pending = set()
        self._inner = []
        return self

    def inner(
        self, function: Decorated, positional: Sequence[tuple[str, Any]], configuration: Mapping[str, Any]
    ) -> CodeState:
        """The state of another function that the code calls: the same as where that one is called by itself.

        One that is given no memory of a tensor's has its state here.
        """
        if self._recording is None or not any(_memory(value) is not None for _, value in positional):
            return self
        self._inner.append(CodeState(function, positional, configuration).begin(self._recording))
        return self._inner[-1]

    def known(self, name: str) -> Any:
        """The memory of ``name``, if it is known to be state."""
        if name not in self._made or self._recording is None:
            return None
        return self._recording.lift(self._made[name], name)

    def begun(self, name: str, init: Any) -> Any:
        """The memory of ``name``, which starts from ``init``; ``None`` where stores have to tell its shape.

        Raises `StateShape` where the array or the tensor ``init`` tells it.
        """
        held = self.known(name)
        if held is not None and f"{name}{_BEGUN}" in self._made:
            self._store_first(name, held, init)
        if init is None or held is not None or self._recording is None:
            return held
        session = self._recording.session
        if isinstance(init, SymbolicNumber | bool | int | float | np.generic):
            self._starts[name] = Filled(float(init))
            return None
        if isinstance(init, np.ndarray | list):
            self._starts[name] = Given(np.array(init))
            return None
        init = session.capture(init) if isinstance(init, Tensor) else init
        if not isinstance(init, SymbolicArray):
            fact = f"`{name}` starts from {init!r}"
            hint = "state starts from a number, an array, a tensor such as `p`, or `np.full_like(p, 0.1)`"
            raise session.fault(ConfigurationError, fact, hint)
        if isinstance(init, StagedTensor) and init.buffer.kind == "value":
            self._starts[name] = Copied(init.buffer.owner)
        elif isinstance(init, PendingArray) and isinstance(init.element.expr, Constant):
            self._starts[name] = Filled(float(init.element.expr.value))
        else:
            self._made[f"{name}{_BEGUN}"] = Tensor((f"{name}{_BEGUN}", *self._labels), known(), "bool", initial=_ZERO)
        raise StateShape(self, name, known_shape(init, session), str(init.dtype))

    def _store_first(self, name: str, memory: SymbolicTensor, init: Any) -> None:
        begun = self.known(f"{name}{_BEGUN}")
        for target, value in ((memory, combine("where", begun, memory, init)), (begun, True)):
            target.become(store_elementwise(target.held(), "assign", value))

    def label(self, name: str) -> str:
        """``name`` with the label of the tensor that the code is for."""
        return f"{name}_{self._owner.name}"

    def read(self, name: str) -> PendingState:
        """``name`` is state whose shape is not known yet."""
        self._pending.add(name)
        return PendingState(1)

    def created(self, name: str, value: Any) -> None:
        """The first store into ``name``. Raises `StateShape` if it was read before."""
        if name not in self._pending or self._recording is None:
            return
        if isinstance(value, SymbolicArray):
            if not value.rank and name not in self._open:
                self._numbers.add(name)
            raise StateShape(self, name, known_shape(value, self._recording.session), str(value.dtype))
        self._numbers.add(name)
        if isinstance(value, SymbolicNumber | float):
            whole = isinstance(value, SymbolicNumber) and value.weak_kind != "float"
            raise StateShape(self, name, known(), "int64" if whole else "float64")
        if isinstance(value, int):
            raise StateShape(self, name, known(), "int64")

    def waits(self, name: str, value: Any) -> bool:
        """Whether the store of a number is left out, because an index list will tell the shape of ``name``."""
        return name in self._open and getattr(value, "ndim", 0) == 0

    def indexed(self, memory: object) -> None:
        """A statement with an index list. Raises `StateShape` if it is of state where a number was stored before."""
        for name in self._numbers:
            if isinstance(memory, StagedTensor) and self._made[name] is memory.buffer.owner:
                raise StateShape(self, name, None, "")

    def stored(self, memory: object, value: Any) -> None:
        """A later store. Raises `StateShape` if it is of an array, where a number was stored before."""
        if self._recording is None or not isinstance(memory, StagedTensor) or not isinstance(value, SymbolicArray):
            return
        for name in self._numbers:
            if self._made[name] is memory.buffer.owner and value.rank > 0:
                self._numbers.remove(name)
                raise StateShape(self, name, known_shape(value, self._recording.session), str(value.dtype))

    def make(self, found: StateShape) -> None:
        """Make the tensor; it starts at zero unless code says otherwise."""
        if found.shape is None:
            self._numbers.remove(found.name)
            self._open.add(found.name)
            del self._made[found.name]
            return
        start = self._starts.get(found.name, _ZERO)
        kind = found.element_type
        if isinstance(start, Filled) and not start.number.is_integer() and not is_floating(kind):
            kind = "float64"
        shape = found.shape
        if isinstance(start, Given) and found.name in self._numbers:
            shape = known(start.value.shape)  # until an array is stored
        made = Tensor((found.name, *self._labels), shape, kind, initial=start)
        if isinstance(start, Given) and start.value.shape != made.sizes:
            sizes, given = list(made.sizes), list(start.value.shape)
            fact = f"the state `{found.name}` has the shape {sizes}, and starts from an array of the shape {given}"
            raise fault(ShapeError, fact, "give an array of the state's shape, or a number")
        self._made[found.name] = made
        self._owner.states[self._key] = self._made
