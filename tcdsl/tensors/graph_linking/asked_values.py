"""Values that are asked for: computed by one program, and only where memory that they depend on has changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tcdsl.ir.program import Program
from tcdsl.recent import Recent
from tcdsl.runtime.calling.execution import Executable
from tcdsl.tensors.graph_linking.graph_linker import linking
from tcdsl.tensors.graph_staging.graph_recordings import ancestors
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory, tick

__all__ = ["GraphEvaluation", "evaluate", "executable", "is_current", "read_memory"]

# Equal programs share their machine code, however often their graphs are built.
_EXECUTABLES: Recent[Program, Executable] = Recent(128)


def executable(program: Program) -> Executable:
    """The executable of ``program``; the same one for equal programs."""
    found = _EXECUTABLES.get(program)
    if found is None:
        found = _EXECUTABLES[program] = Executable(program)
    return found


def read_memory(buffer: TensorMemory) -> np.ndarray:
    """The array behind ``buffer``, with its first value if nothing was written. An error if it never had one."""
    if buffer.clock == 0:
        tensor = buffer.owner
        if buffer.kind != "value" or tensor.initial is None:
            raise buffer.unwritten()
        initial, sizes, dtype = tensor.initial, tensor.sizes, tensor.element_type
        ranks = tensor.row_ranks
        fans = sizes[len(sizes) - ranks.input :] if ranks.input else sizes[-1:] if ranks.output else ()
        buffer.allocated(lambda: initial.array(sizes, int(np.prod(fans, dtype=np.int64)), dtype))
        buffer.clock = tick()
    return buffer.allocated()


def is_current(tensor: Tensor) -> bool:
    """Whether the value in memory is what computing it now would give."""
    clock = tensor.buffer("value").clock
    if tensor.is_leaf or clock == 0:
        return clock > 0
    if tensor.sources is None:
        # A graph does not change; asking for a loss after every step must not walk it every time.
        tensor.sources = tuple(_sources(tensor))
    return all(0 < buffer.clock <= clock for buffer in tensor.sources)


def _sources(tensor: Tensor) -> Iterator[TensorMemory]:
    for each in ancestors([tensor]):
        yield from (argument for argument in each.arguments if isinstance(argument, TensorMemory))
        if each.is_leaf:
            yield each.buffer("value")


def evaluate(tensors: Sequence[Tensor]) -> None:
    """Bring the values of ``tensors`` up to date, by one program for all of them."""
    stale = [tensor for tensor in tensors if not is_current(tensor)]
    for tensor in stale:
        if tensor.is_leaf:
            read_memory(tensor.buffer("value"))
    wanted = [tensor.buffer("value") for tensor in stale if not tensor.is_leaf]
    if not wanted:
        return
    first = wanted[0].owner
    if first.evaluation is None or first.evaluation.wanted != wanted:
        first.evaluation = GraphEvaluation(wanted)
    first.evaluation.run()


class GraphEvaluation:
    """What computes some values, kept by the first of these tensors: a graph does not change, its data does."""

    def __init__(self, wanted: Sequence[TensorMemory]) -> None:
        self.wanted = list(wanted)
        with linking(wanted[0].owner.name) as linker:
            self._linked = linker.finished(wanted)
        self._executable = executable(self._linked.program)

    def run(self) -> None:
        """Compute the values from the memory behind the program."""
        linked = self._linked
        inputs = [read_memory(each) if isinstance(each, TensorMemory) else each.array() for each in linked.inputs]
        results = self._executable.run(inputs)
        for buffer, result in zip(linked.outputs, results, strict=True):
            buffer.allocated()[...] = result
        now = tick()
        for buffer in linked.written:
            buffer.clock = now
