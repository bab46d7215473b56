"""A tensor's memory inside a decorated function: a tensor of the program that knows its gradient and its copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tcdsl.errors import Diagnostic, DslSyntaxError
from tcdsl.frontend.arrays.array_stores import store_elementwise
from tcdsl.frontend.staging.session import current_session
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.tensors.graphs.tensor_memory import TensorMemory

if TYPE_CHECKING:
    from tcdsl.tensors.staging.staging import InputRecording

__all__ = ["StagedTensor"]


class StagedTensor(SymbolicTensor):
    """``p`` inside ``@cd def sgd(p, ...)``: ``p`` and ``p.value`` are its value, ``p.grad`` its gradient.

    In `@cd` these are memory: ``p.grad = 0.0`` stores. The copies that arrive from other devices, ``p.merge`` and
    ``p.grad.merge``, can only be read.
    """

    __slots__ = ("_recording", "buffer")

    def __init__(self, recording: InputRecording, buffer: TensorMemory, name: str, memory: bool) -> None:
        declared = recording.session.builder.tensor(name)
        super().__init__(recording.session.builder, name, declared.dtype, declared.shape, buffer.label, memory)
        self.rows = buffer.owner.row_ranks
        self._recording = recording
        self.buffer = buffer

    def _other(self, kind: str) -> StagedTensor:
        return self._recording.lift_buffer(self.buffer.owner.buffer(kind))

    def _stored(self, kind: str, given: Any) -> None:
        memory = self._other(kind)
        if given is memory:
            return
        if not memory.memory:
            session = current_session()
            hint = "only code changes memory: use @cd"
            if kind.endswith(".merge"):
                hint = "a copy that arrives from another device can only be read"
            raise Diagnostic(
                DslSyntaxError,
                f"`{self.buffer.owner.name}.{kind}` cannot be stored into here",
                None if session is None else session.location(),
                hint=hint,
            ).error()
        memory.become(store_elementwise(memory.held(), "assign", given))

    @property
    def value(self) -> StagedTensor:
        """The value itself."""
        return self

    @value.setter
    def value(self, given: Any) -> None:
        self._stored("value", given)

    @property
    def grad(self) -> StagedTensor:
        """The gradient."""
        return self._other("grad")

    @grad.setter
    def grad(self, given: Any) -> None:
        self._stored("grad", given)

    @property
    def merge(self) -> StagedTensor:
        """The copy of this memory that arrives from another device."""
        return self._other(f"{self.buffer.kind}.merge")

    @merge.setter
    def merge(self, given: Any) -> None:
        self._stored(f"{self.buffer.kind}.merge", given)
