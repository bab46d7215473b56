"""Graphs and code as one program: each tensor is computed once, before its first use, and memory is followed through.

A `Linker` records what it is given in the order of execution. What code writes is what later code reads; what nothing
has written yet is read from memory if it is a leaf, and computed if it is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from tcdsl.config import settings
from tcdsl.errors import DifferentiationError
from tcdsl.frontend.staging.given_arrays import require_aligned
from tcdsl.frontend.staging.session import Session
from tcdsl.frontend.staging.subprograms import symbolic
from tcdsl.frontend.symbolic_operators import WholeArrays
from tcdsl.ir.build import integer
from tcdsl.ir.program import Program
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.statement_kinds import of_renamed_kind
from tcdsl.runtime.calling.results import copied, filled
from tcdsl.runtime.transforms.checkpointed_loops import with_checkpoints
from tcdsl.targets.cache.store import store, value_name
from tcdsl.tensors.graph_linking.late_reads import LateRead, split
from tcdsl.tensors.graph_linking.static_indices import StaticIndex, without_checks
from tcdsl.tensors.graph_staging.fragments import recorded, without_unread_inputs
from tcdsl.tensors.graph_staging.graph_recordings import ancestors
from tcdsl.tensors.graphs.initialization import Given
from tcdsl.tensors.graphs.node_operations import Recorded
from tcdsl.tensors.graphs.settings import Setting
from tcdsl.tensors.graphs.tensor import Tensor, TensorMemory
from tcdsl.tracebacks import user_location

__all__ = ["LinkedProgram", "Linker", "forward_program", "linking"]


@dataclass(frozen=True, slots=True)
class LinkedProgram:
    """A program with the memory behind its inputs and outputs. Inputs that it updates are memory that it writes."""

    program: Program
    inputs: tuple[TensorMemory | Setting, ...]
    outputs: tuple[TensorMemory, ...]
    written: tuple[TensorMemory, ...]


class Linker:
    """Records graphs and code in one session.

    ``shifted`` are tensors to whose value a tensor of zeros is added, so that one can differentiate by it. Gradients
    keep so many ``states`` of their loops at a time; with 0 they have tapes.
    """

    def __init__(self, session: Session, shifted: Sequence[Tensor] = (), states: int = 0) -> None:
        self.session = session
        self._states = states
        #: Whether there are gradients through loops.
        self.tapes = False
        self._current: dict[TensorMemory, str] = {}
        self._inputs: dict[TensorMemory | Setting, str] = {}
        #: The leaves whose cells have labels, which another library would align.
        self._labelled: list[tuple[str, str, object]] = []
        self._written: dict[TensorMemory, None] = {}
        self._shifted = {id(tensor): tensor for tensor in shifted}
        #: Where the programs of nodes have been put: the tensors that are their inputs and outputs.
        self._put: dict[tuple[int, tuple[TensorMemory, ...]], dict[str, str]] = {}
        self.shifts: dict[int, str] = {}

    # -- reading ---------------------------------------------------------------------------------------------

    def held(self, buffer: TensorMemory) -> str:
        """The tensor of the program that the memory holds at this point."""
        if buffer not in self._current:
            self._bring(buffer)
        return self._current[buffer]

    def setting(self, setting: Setting) -> str:
        """The input for a number that is given at each run."""
        if setting not in self._inputs:
            self._inputs[setting] = self.session.builder.fixed_input(setting.name, setting.dtype, ()).name
        return self._inputs[setting]

    def _bring(self, buffer: TensorMemory) -> None:
        owner = buffer.owner
        if buffer.kind != "value" or owner.is_leaf:
            self._read_memory(buffer)
            return
        # What has a value already hides what it was computed from.
        for tensor in ancestors([owner], lambda tensor: tensor.buffer("value") in self._current):
            value = tensor.buffer("value")
            if tensor.is_leaf:
                self._read_memory(value)
            else:
                self._current[value] = self._computed(tensor)

    def _computed(self, tensor: Tensor) -> str:
        node = recorded(tensor)
        builder = self.session.builder
        name = self._put_in(tensor, node)[node.output]
        if id(tensor) not in self._shifted:
            return name
        zeros = builder.fixed_input(f"{tensor.name}_shift", node.element_type, tensor.sizes)
        self.shifts[id(tensor)] = zeros.name
        value, shift = symbolic(builder, [builder.tensor(name), zeros])
        shifted: str = (value + shift).materialize(tensor.name).name
        return shifted

    def _put_in(self, tensor: Tensor, node: Recorded) -> dict[str, str]:
        # Once, however many of its outputs are used.
        program, key = node.program, (id(node.program), node.inputs)
        if key not in self._put:
            labels: dict[str, str] = {}
            if tensor.operation is not None and tensor.operation.stage is not None:
                # What an operation makes has the names that staging it here would give.
                labels = {each.name: each.label or each.name for each in program.tensors}
                if node.takes_name:
                    labels[node.output] = tensor.name
            names = {
                each.name: self._operand(tensor, buffer)
                for each, buffer in zip(program.inputs, node.inputs, strict=True)
            }
            given = [self.session.builder.tensor(name) for name in names.values()]
            made = append_program(self.session.builder, program, given, labels)
            names.update(zip(program.outputs, (each.name for each in made), strict=True))
            self._put[key] = names
        return self._put[key]

    def _operand(self, tensor: Tensor, buffer: TensorMemory) -> str:
        if any(each is buffer or (each is buffer.owner and buffer.kind == "value") for each in tensor.arguments):
            return self.held(buffer)
        # The bracket of an operand that is a product: as it was when the product was computed.
        for operand in tensor.operands:
            node = operand.recorded
            if node is None or not node.brackets or buffer not in node.inputs:
                continue
            names = self._put.get((id(node.program), node.inputs), {})
            if names.get(node.output) == self._current[operand.buffer("value")]:
                return names[node.program.inputs[node.inputs.index(buffer)].name]
        # The product has got its value in another way, and guards nothing.
        return self._filled(True, buffer.owner)

    def _read_memory(self, buffer: TensorMemory) -> None:
        owner = buffer.owner
        made = self.session.builder.fixed_input(buffer.label, owner.element_type, owner.sizes)
        self._inputs[buffer] = self._current[buffer] = made.name
        if isinstance(owner.initial, Given) and owner.initial.labels is not None:
            self._labelled.append((made.name, owner.name, owner.initial.labels))

    # -- writing ---------------------------------------------------------------------------------------------

    def write(self, buffer: TensorMemory, name: str) -> None:
        """From here on the memory holds the tensor ``name`` of the program."""
        self._current[buffer] = name
        self._written[buffer] = None

    def want(self, buffer: TensorMemory) -> None:
        """The value that the memory has at this point of the program is stored there."""
        self.held(buffer)
        self._written.setdefault(buffer)

    def append(
        self,
        program: Program,
        inputs: Sequence[TensorMemory | Setting],
        outputs: Sequence[TensorMemory],
        late: Sequence[LateRead] = (),
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Append a program that reads ``inputs`` and whose outputs are written to ``outputs``.

        What computes the inputs in ``late`` stands between its statements, just before their first readers. Tensors in
        ``labels`` are called so.
        """
        late = [(buffer, stored) for buffer, stored in late if self._reads(buffer, [memory for memory, _ in stored])]
        waiting = {buffer for buffer, _ in late}
        given: list[Any] = [
            self.setting(each) if isinstance(each, Setting) else each if each in waiting else self.held(each)
            for each in inputs
        ]
        names: dict[str, str] = {}
        versions = {name for _, stored in late for _, name in stored}
        for buffer, stored in late:
            read = self._reads(buffer, [memory for memory, _ in stored])
            first, program, kept = split(program, [name for memory, name in stored if memory in read], versions)
            first, needed = without_unread_inputs(first, given)
            made = self._put_before(first, needed)
            names.update(zip(first.outputs, made, strict=True))
            given.extend(names[name] for name in kept)
            for memory, name in stored:
                if memory in read:
                    self.write(memory, names[name])
            self.held(buffer)
        self._append(program, [self.held(each) if each in waiting else each for each in given], outputs, labels)

    def _put_before(self, program: Program, given: Sequence[Any]) -> list[str]:
        builder = self.session.builder
        names = [each if isinstance(each, str) else self.held(each) for each in given]
        return [each.name for each in append_program(builder, program, list(map(builder.tensor, names)))]

    def _reads(self, buffer: TensorMemory, memory: Sequence[TensorMemory]) -> set[TensorMemory]:
        """Those of ``memory`` that what computes a tensor reads here: none, if the tensor has been computed."""
        computed = ancestors([buffer.owner], lambda each: not each.is_leaf and each.buffer("value") in self._current)
        leaves = {each.buffer("value") for each in computed if each.is_leaf}
        given = {argument for each in computed for argument in each.arguments if isinstance(argument, TensorMemory)}
        return (leaves | given).intersection(memory)

    def _append(
        self,
        program: Program,
        given: Sequence[str],
        outputs: Sequence[TensorMemory],
        labels: Mapping[str, str] | None = None,
    ) -> None:
        builder = self.session.builder
        made = append_program(builder, program, list(map(builder.tensor, given)), labels)
        for buffer, tensor in zip(outputs, made, strict=True):
            self.write(buffer, tensor.name)

    def append_gradient(self, loss: Tensor, wrt: Sequence[Tensor]) -> None:
        """Compute ``loss`` and its gradients by ``wrt``, and write all of them to their memory."""
        if loss.size != 1:
            raise DifferentiationError.at(
                f"the loss `{loss.label}` has {loss.size} cells, not one",
                hint='sum it: `einsum("...|... => 0", loss)`, or take its mean: `loss.mean()`',
                notes=(f"`{loss.label}` is {loss.rows}",),
            )
        inner = [tensor for tensor in wrt if not tensor.is_leaf]
        program, buffers, shifts = forward_program(loss, inner)
        names = {id(buffer.owner): tensor.name for buffer, tensor in zip(buffers, program.inputs, strict=False)}
        by = [names[id(tensor)] if tensor.is_leaf else shifts[id(tensor)] for tensor in wrt]
        self.tapes |= bool(program.repeats)
        derived = _gradient_of(with_checkpoints(program, self._states), by)
        zeros = [self._filled(0.0, tensor) for tensor in inner]
        given = [*map(self.held, buffers), *zeros]
        self._append(derived, given, [loss.buffer("value"), *(tensor.buffer("grad") for tensor in wrt)])

    def _filled(self, number: float, like: Tensor) -> str:
        label = "ones" if number else "zeros"
        return filled(self.session, number, like.element_type, list(map(integer, like.sizes)), label).name

    def aligned(self, program: Program) -> Program:
        """The program, where no labels say that other cells belong together than it puts together."""
        require_aligned(program, self._labelled, span=user_location())
        return program

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
                name = copied(self.session, symbolic(builder, [builder.tensor(name)])[0], buffer.label).name
            used.add(name)
            if buffer in self._inputs:
                updates.append((self._inputs[buffer], name))
            else:
                outputs[name] = buffer
        program = self.aligned(builder.program(tuple(outputs), updates))
        positions = {
            name: each.owner.extent
            for each, name in self._inputs.items()
            if isinstance(each, TensorMemory) and isinstance(each.owner, StaticIndex)
        }
        program = without_checks(program, positions)
        program, inputs = without_unread_inputs(program, list(self._inputs))
        return LinkedProgram(program, tuple(inputs), tuple(outputs.values()), tuple(self._written))


@contextmanager
def linking(name: str, shifted: Sequence[Tensor] = (), states: int = 0) -> Iterator[Linker]:
    """A session in which graphs and code are linked into one program."""
    session = Session(name, WholeArrays())
    with session.active():
        yield Linker(session, shifted, states)


def forward_program(loss: Tensor, shifted: Sequence[Tensor]) -> tuple[Program, list[TensorMemory], dict[int, str]]:
    """The program that computes ``loss`` from memory, the memory of its first inputs, and the inputs that shift."""
    with linking(loss.name, shifted) as linker:
        result, builder = linker.held(loss.buffer("value")), linker.session.builder
        if loss.is_leaf:
            result = (symbolic(builder, [builder.tensor(result)])[0] + 0).materialize(loss.name).name
        shifts = dict(linker.shifts)
        program = linker.aligned(builder.program((result,)))
    shift_names = list(shifts.values())
    memory = {name: buffer for buffer, name in linker._inputs.items()}
    first = [tensor for tensor in program.inputs if tensor.name not in shift_names]
    last = [program.tensor(name) for name in shift_names]
    program = replace(program, inputs=(*first, *last))
    buffers = [memory[tensor.name] for tensor in first]
    return program, [buffer for buffer in buffers if isinstance(buffer, TensorMemory)], shifts


def _gradient_of(program: Program, wrt: Sequence[str]) -> Program:
    # Kept on disk: a program that a process has differentiated need not be differentiated again.
    chosen = settings().cache_dir
    place = store(Path(chosen) if chosen else None)
    name = value_name(program.name, (program, tuple(wrt)), "gradient")
    found = place.value(name)
    if found is not None:
        return cast(Program, found)
    from tcdsl.autodiff import gradient
    from tcdsl.simplification.contractions import contracted

    made = gradient(contracted(program), wrt)
    place.keep(name, made)
    # As later processes see it: the names of files for what it becomes part of depend on which objects it shares.
    found = place.value(name)
    if found is None:
        return made
    read = cast(Program, found)
    for one, other in zip(read.statements, made.statements, strict=True):
        of_renamed_kind(one, other, {})
    return read


def leaves(loss: Tensor) -> list[Tensor]:
    """The differentiable leaves that a tensor depends on, in the order in which they are met."""
    return [tensor for tensor in ancestors([loss]) if tensor.is_leaf and tensor.differentiable]
