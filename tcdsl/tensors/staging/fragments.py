"""Statements as nodes: what an op records in index notation, as a program that computes tensors of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbols.symbols import PendingArray, SymbolicArray, SymbolicTensor
from tcdsl.ir.program import Program, tensors_read
from tcdsl.rewrite.inlining import append_program
from tcdsl.rows.ranks import RowRanks
from tcdsl.runtime.rules.subprograms import symbolic
from tcdsl.simplification.simplify import without_dead_statements
from tcdsl.tensors.graphs.node_operations import Operation
from tcdsl.tensors.graphs.tensor import Tensor, is_differentiable
from tcdsl.tensors.graphs.tensor_memory import TensorMemory
from tcdsl.tensors.staging.staging import InputRecording, known_shape

__all__ = ["Fragment", "exported", "without_unread_inputs"]


@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A program whose outputs are tensors of a graph, with the rows of these."""

    program: Program
    rows: tuple[RowRanks, ...]

    def record(self, session: Session, operands: Sequence[SymbolicTensor]) -> list[SymbolicTensor]:
        """The outputs in ``session``; recorded once, however many of them are used."""
        key = self
        if key not in session.recorded:
            builder = session.builder
            made = append_program(builder, self.program, [builder.tensor(each.name) for each in operands])
            results = symbolic(builder, made)
            for result, rows in zip(results, self.rows, strict=True):
                result.rows = rows
            session.recorded[key] = results
        found: list[SymbolicTensor] = session.recorded[key]
        return found

    def output(self, position: int, name: str) -> Operation:
        """The operation that gives one of the outputs."""
        return Operation(name, partial(_output, self, position))


def _output(fragment: Fragment, position: int, session: Session, operands: Sequence[SymbolicTensor]) -> SymbolicTensor:
    return fragment.record(session, operands)[position]


def without_unread_inputs(program: Program, buffers: Sequence[Any]) -> tuple[Program, list[Any]]:
    """``program`` without the inputs that nothing reads, and the entries of ``buffers`` for those that stay."""
    read = frozenset().union(*map(tensors_read, program.statements)) | {name for name, _ in program.updates}
    kept = [k for k, tensor in enumerate(program.inputs) if tensor.name in read]
    return replace(program, inputs=tuple(program.inputs[k] for k in kept)), [buffers[k] for k in kept]


def exported(recording: InputRecording, arrays: Sequence[SymbolicArray], labels: Sequence[str] = ()) -> list[Tensor]:
    """Staged arrays as tensors of the graph: nodes whose operation is what the session has recorded for them."""
    session = recording.session
    staged = [each.materialize("t") if isinstance(each, PendingArray) else each for each in arrays]
    inputs = {name: buffer for buffer, name in recording.names.items()}
    given = {tensor.name for tensor in session.builder.inputs}
    made = [each for each in staged if isinstance(each, SymbolicTensor) and each.name not in given]
    if made:
        names = tuple(dict.fromkeys(each.name for each in made))
        program = without_dead_statements(session.builder.program(names))
        program, buffers = without_unread_inputs(program, [inputs[tensor.name] for tensor in program.inputs])
        ranks = {each.name: each.rows for each in made}
        fragment = Fragment(program, tuple(ranks[name] for name in names))
        arguments = [_argument(buffer) for buffer in buffers]
        operands = [argument for argument in arguments if isinstance(argument, Tensor)]
    results = []
    for each in staged:
        assert isinstance(each, SymbolicTensor)
        if each.name in inputs:
            results.append(inputs[each.name].owner)
            continue
        dtype = str(each.dtype)
        results.append(
            Tensor(
                (*labels, each.label) if labels else (each.label,),
                known_shape(each, session),
                dtype,
                fragment.output(names.index(each.name), each.label),
                arguments,
                differentiable=is_differentiable(dtype, operands),
            )
        )
    return results


def _argument(buffer: TensorMemory) -> Tensor | TensorMemory:
    return buffer.owner if buffer.kind == "value" else buffer
