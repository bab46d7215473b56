"""Which arrays a call of a kernel brings: one for each program input that has a buffer, one for each that it makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tcdsl.lowering.loopir.loops import Buffer, Kernel

__all__ = ["CallArray", "CallArrays"]

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True, slots=True)
class CallArray:
    """A buffer whose array changes from call to call, and where that stands among the arrays given, or made.

    ``contiguous``: nests take its last stride to be 1. ``exclusive``: nests write it, so no other array may share its
    memory. ``written``: it changes, by the nests or by the copies after them.
    """

    buffer: Buffer
    position: int
    contiguous: bool
    exclusive: bool
    written: bool


class CallArrays:
    """The arrays of a kernel's calls, for program inputs that are C-contiguous or not.

    ``given`` and ``made`` are the bindings of both kinds, ``given_positions`` and ``made_positions`` say where the
    array of a buffer is. ``direct``: the outputs are the arrays made, in order.
    """

    def __init__(self, kernel: Kernel, contiguous: tuple[bool, ...]) -> None:
        holders = {tensor: buffer for buffer in kernel.buffers for tensor in buffer.tensors}
        updated = {target for target, _ in kernel.updates}
        self.given: list[CallArray] = []
        for position, (tensor, unit) in enumerate(zip(kernel.program.inputs, contiguous, strict=True)):
            buffer = holders.get(tensor.name)
            if buffer is not None and buffer.kind in ("input", "update"):
                exclusive = buffer.kind == "update"
                self.given.append(CallArray(buffer, position, unit, exclusive, exclusive or buffer.name in updated))
        outputs = [buffer for buffer in kernel.buffers if buffer.kind == "output"]
        self.made = [CallArray(buffer, k, True, True, True) for k, buffer in enumerate(outputs)]
        self.given_positions = {binding.buffer.name: binding.position for binding in self.given}
        self.made_positions = {binding.buffer.name: binding.position for binding in self.made}
        self._program, self._counts = kernel.program.name, (len(contiguous), len(outputs))
        self.direct = list(kernel.outputs) == [buffer.name for buffer in outputs]

    @property
    def bindings(self) -> list[CallArray]:
        """All of them, in the order of the rows of a call's block."""
        return [*self.given, *self.made]

    def bound(self, inputs: Sequence[Array], made: Sequence[Array]) -> list[Array]:
        """The arrays of `bindings`. ``ValueError`` for a wrong number."""
        found = len(inputs), len(made)
        if found != self._counts:
            raise ValueError(f"{self._program} takes {sum(self._counts)} arrays, not {sum(found)}")
        return [*(inputs[binding.position] for binding in self.given), *made]
