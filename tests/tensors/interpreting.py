"""Values of tensors and runs of code by the reference interpreter: nothing is compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from tcdsl.ir.interpreter.interpreter import interpret
from tcdsl.ir.verifier.verifier import verify
from tcdsl.tensors.graph_linking.asked_values import read_memory
from tcdsl.tensors.graph_linking.code import Code
from tcdsl.tensors.graph_linking.graph_linker import LinkedProgram, linking
from tcdsl.tensors.graphs.settings import Setting
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory, tick

__all__ = ["run", "value"]


def _interpret(linked: LinkedProgram, numbers: dict[str, Any]) -> list[np.ndarray]:
    verify(linked.program)
    arrays = [
        np.asarray(numbers.get(each.name, each.initial), each.dtype) if isinstance(each, Setting) else read_memory(each)
        for each in linked.inputs
    ]
    done = interpret(linked.program, arrays)
    behind = dict(zip((tensor.name for tensor in linked.program.inputs), linked.inputs, strict=True))
    for name, array in done.updates.items():
        buffer = behind[name]
        assert isinstance(buffer, TensorMemory)
        buffer.allocated()[...] = array
    for buffer, array in zip(linked.outputs, done.outputs, strict=True):
        buffer.allocated()[...] = array
    now = tick()
    for buffer in linked.written:
        buffer.clock = now
    return done.outputs


def value(tensor: Tensor) -> np.ndarray:
    """What the tensor's value is."""
    if tensor.is_leaf:
        return np.array(read_memory(tensor.buffer("value")))
    with linking("value") as linker:
        linked = linker.finished([tensor.buffer("value")])
    return np.array(_interpret(linked, {})[0])


def run(*codes: Code, **numbers: Any) -> None:
    """Run code once."""
    with linking("run") as linker:
        for code in codes:
            code.link(linker)
        linked = linker.finished()
    _interpret(linked, numbers)
