"""Graphs and code as one program: each tensor is computed once, before its first use, and memory is followed through.

A `Linker` records what it is given in the order of execution. What code writes is what later code reads; what nothing
has written yet is read from memory if it is a leaf, and computed if it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tcdsl.errors import Diagnostic, DifferentiationError
from tcdsl.frontend.arrays.arithmetic import element_of, record_elementwise
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.symbolic_operators import WholeArrays
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.ir.build import constant, integer
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Program
from tcdsl.rewrite.inlining import append_program
from tcdsl.runtime.rules.subprograms import symbolic
from tcdsl.tensors.graphs.location import located
from tcdsl.tensors.graphs.settings import Setting
from tcdsl.tensors.graphs.tensor import Tensor
from tcdsl.tensors.graphs.tensor_memory import TensorMemory
from tcdsl.tensors.linking.kept_gradients import gradient_of
from tcdsl.tensors.linking.static_indices import StaticIndex
from tcdsl.tensors.linking.static_positions import without_checks
from tcdsl.tensors.staging.fragments import without_unread_inputs
from tcdsl.tensors.staging.staging import InputRecording, ancestors, staged_result

__all__ = ["LinkedProgram", "Linker", "forward_program", "linking"]


@dataclass(frozen=True, slots=True)
class LinkedProgram:
    """A program with the memory behind its inputs and outputs. Inputs that it updates are memory that it writes."""

    program: Program
    inputs: tuple[TensorMemory | Setting, ...]
    outputs: tuple[TensorMemory, ...]
    written: tuple[TensorMemory, ...]


class Linker(InputRecording):
    """Records graphs and code in one session.

    ``shifted`` are tensors to whose value a tensor of zeros is added, so that one can differentiate by it.
    """

    def __init__(self, session: Session, shifted: Sequence[Tensor] = ()) -> None:
        super().__init__(session)
        self._current: dict[TensorMemory, str] = {}
        self._inputs: dict[TensorMemory | Setting, str] = {}
        self._written: dict[TensorMemory, None] = {}
        self._shifted = {id(tensor): tensor for tensor in shifted}
        self._brackets: dict[str, tuple[Expr, ...]] = {}
        self.shifts: dict[int, str] = {}

    # -- reading ---------------------------------------------------------------------------------------------

    def lift_buffer(self, buffer: TensorMemory) -> SymbolicTensor:  # type: ignore[override]
        """What the memory holds at this point of the program."""
        if buffer not in self._current:
            self._bring(buffer)
        tensor = self.session.builder.tensor(self._current[buffer])
        lifted = symbolic(self.session.builder, [tensor])[0]
        # What code has written in the place of the first value has the rows of the memory.
        lifted.rows = buffer.owner.row_ranks
        lifted.brackets = self._brackets.get(lifted.name, ())
        return lifted

    def setting(self, setting: Setting) -> SymbolicTensor:
        """The input for a number that is given at each run."""
        if setting not in self._inputs:
            made = self.session.builder.fixed_input(setting.name, setting.dtype, ())
            self._inputs[setting] = made.name
        return symbolic(self.session.builder, [self.session.builder.tensor(self._inputs[setting])])[0]

    def _bring(self, buffer: TensorMemory) -> None:
        owner = buffer.owner
        if buffer.kind != "value" or owner.is_leaf:
            self._read_memory(buffer)
            return
        for tensor in self._needed(owner):
            value = tensor.buffer("value")
            if value in self._current:
                continue
            if tensor.is_leaf:
                self._read_memory(value)
            else:
                self._current[value] = self._computed(tensor)

    def _needed(self, owner: Tensor) -> list[Tensor]:
        # What has a value already hides what it was computed from.
        found: list[Tensor] = []
        seen: set[int] = set()
        pending: list[tuple[Tensor, bool]] = [(owner, False)]
        while pending:
            tensor, expanded = pending.pop()
            if expanded:
                found.append(tensor)
                continue
            if id(tensor) in seen or tensor.buffer("value") in self._current:
                continue
            seen.add(id(tensor))
            pending.append((tensor, True))
            pending.extend((each, False) for each in reversed(tensor.operands))
        return found

    def _computed(self, tensor: Tensor) -> str:
        staged: list[Any] = []
        for argument in tensor.arguments:
            if isinstance(argument, Tensor):
                staged.append(self.lift_buffer(argument.buffer("value")))
            else:
                staged.append(self.lift_buffer(argument) if isinstance(argument, TensorMemory) else argument)
        with located(tensor.location):
            made = staged_result(self.session, tensor, staged)
        self._brackets[made.name] = made.brackets
        if id(tensor) in self._shifted:
            zeros = self.session.builder.fixed_input(f"{tensor.name}_shift", str(made.dtype), tensor.sizes)
            self.shifts[id(tensor)] = zeros.name
            shift = symbolic(self.session.builder, [zeros])[0]
            shift.rows = made.rows
            made = (made + shift).materialize(tensor.name)
        return made.name

    def _read_memory(self, buffer: TensorMemory) -> None:
        owner = buffer.owner
        made = self.session.builder.fixed_input(buffer.label, owner.element_type, owner.sizes)
        symbolic(self.session.builder, [made])[0].rows = owner.row_ranks
        self._inputs[buffer] = self._current[buffer] = made.name

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, buffer: TensorMemory, name: str) -> None:
        """From here on the memory holds the tensor ``name`` of the program."""
        self._current[buffer] = name
        self._written[buffer] = None

    def want(self, buffer: TensorMemory) -> None:
        """The value that the memory has at this point of the program is stored there."""
        self.lift_buffer(buffer)
        self._written.setdefault(buffer)

    def append(
        self, program: Program, inputs: Sequence[TensorMemory | Setting], outputs: Sequence[TensorMemory | None]
    ) -> list[SymbolicTensor]:
        """Append a program that reads ``inputs`` and whose outputs are written to ``outputs``."""
        builder = self.session.builder
        given = [self.setting(each) if isinstance(each, Setting) else self.lift_buffer(each) for each in inputs]
        made = append_program(builder, program, [builder.tensor(each.name) for each in given])
        for buffer, tensor in zip(outputs, made, strict=True):
            if buffer is not None:
                self.write(buffer, tensor.name)
        return symbolic(builder, made)

    def append_gradient(self, loss: Tensor, wrt: Sequence[Tensor]) -> None:
        """Compute ``loss`` and its gradients by ``wrt``, and write all of them to their memory."""
        if loss.size != 1:
            raise Diagnostic(
                DifferentiationError,
                f"the loss `{loss.label}` has {loss.size} cells, not one",
                notes=(f"`{loss.label}` is {loss.rows}",),
                hint='sum it: `einsum("...|... => 0", loss)`, or take its mean: `loss.mean()`',
            ).error()
        inner = [tensor for tensor in wrt if not tensor.is_leaf]
        program, buffers, shifts = forward_program(loss, inner)
        names = {id(buffer.owner): tensor.name for buffer, tensor in zip(buffers, program.inputs, strict=False)}
        by = [names[id(tensor)] if tensor.is_leaf else shifts[id(tensor)] for tensor in wrt]
        derived = gradient_of(program, by)
        zeros = [self._zeros(tensor) for tensor in inner]
        builder = self.session.builder
        given = [builder.tensor(self.lift_buffer(buffer).name) for buffer in buffers]
        made = append_program(builder, derived, [*given, *(builder.tensor(each.name) for each in zeros)])
        self.write(loss.buffer("value"), made[0].name)
        for tensor, adjoint in zip(wrt, made[1:], strict=True):
            self.write(tensor.buffer("grad"), adjoint.name)

    def _zeros(self, tensor: Tensor) -> SymbolicTensor:
        value = Value(constant(0.0, tensor.element_type), None, tensor.element_type)
        return record_elementwise(self.session.builder, value, tuple(map(integer, tensor.sizes)), "zeros")

    # -- the whole -------------------------------------------------------------------------------------------

    def finished(self, wanted: Sequence[TensorMemory] = ()) -> LinkedProgram:
        """The program that writes all that was written, and the values of ``wanted``."""
        for buffer in wanted:
            self.want(buffer)
        builder = self.session.builder
        updates: list[tuple[str, str]] = []
        outputs: dict[str, TensorMemory] = {}
        given = {tensor.name for tensor in builder.inputs}
        used: set[str] = set()
        for buffer in self._written:
            name = self._current[buffer]
            if name in given or name in used:
                if self._inputs.get(buffer) == name:
                    continue
                copied, extents = element_of(symbolic(builder, [builder.tensor(name)])[0], self.session)
                name = record_elementwise(builder, copied, extents, buffer.label).name
            used.add(name)
            if buffer in self._inputs:
                updates.append((self._inputs[buffer], name))
            else:
                outputs[name] = buffer
        program = builder.program(tuple(outputs), updates)
        positions = {
            name: each.owner.extent
            for each, name in self._inputs.items()
            if isinstance(each, TensorMemory) and isinstance(each.owner, StaticIndex)
        }
        program = without_checks(program, positions)
        program, inputs = without_unread_inputs(program, list(self._inputs))
        return LinkedProgram(program, tuple(inputs), tuple(outputs.values()), tuple(self._written))


@contextmanager
def linking(name: str, shifted: Sequence[Tensor] = ()) -> Iterator[Linker]:
    """A session in which graphs and code are linked into one program."""
    session = Session(name, WholeArrays())
    linker = Linker(session, shifted)
    with session.active(), session.within(graph=linker):
        yield linker


def forward_program(loss: Tensor, shifted: Sequence[Tensor]) -> tuple[Program, list[TensorMemory], dict[int, str]]:
    """The program that computes ``loss`` from memory, the memory of its first inputs, and the inputs that shift."""
    with linking(loss.name, shifted) as linker:
        result = linker.lift_buffer(loss.buffer("value"))
        if loss.is_leaf:
            result = (result + 0).materialize(loss.name)
        shifts = dict(linker.shifts)
        program = linker.session.builder.program((result.name,))
    shift_names = list(shifts.values())
    memory = {name: buffer for buffer, name in linker._inputs.items()}
    first = [tensor for tensor in program.inputs if tensor.name not in shift_names]
    last = [program.tensor(name) for name in shift_names]
    program = replace(program, inputs=(*first, *last))
    buffers = [memory[tensor.name] for tensor in first]
    return program, [buffer for buffer in buffers if isinstance(buffer, TensorMemory)], shifts


def leaves(loss: Tensor) -> list[Tensor]:
    """The differentiable leaves that a tensor depends on, in the order in which they are met."""
    return [tensor for tensor in ancestors([loss]) if tensor.is_leaf and tensor.differentiable]
