"""Which memory holds a tensor: versions share it where nothing can tell.

A tensor that starts from an earlier version takes over its memory if nobody reads that version afterwards; what the
statement itself reads of it is read before it is written, or saved (`in_place`). Otherwise the cells are copied first.
An input's memory is written only where the program says that the input changes, and only if nothing that comes later,
in the same statement included, can fail: a failed call changes no argument.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import islpy as isl

from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Keep, Program, statement_reads
from tcdsl.lowering.loopir.boundary_reads import Declarations
from tcdsl.lowering.loopir.loops import Buffer
from tcdsl.lowering.program_passes.in_place import InPlace
from tcdsl.lowering.program_passes.schedule import LoopOrder
from tcdsl.lowering.program_passes.touched_tensors import can_fail, readers
from tcdsl.polyhedra.linear import normalized

__all__ = ["Memory", "assign_memory"]


@dataclass(frozen=True, slots=True)
class Memory:
    """The buffers, the buffer of every tensor, the targets that hold their start already, the buffers of marks.

    ``updates`` pairs inputs with the buffers that are copied into them at the end.
    """

    buffers: tuple[Buffer, ...]
    of: Mapping[str, str]
    in_place: frozenset[str]
    marks: Mapping[str, str]
    updates: tuple[tuple[str, str], ...]


def assign_memory(
    program: Program,
    plans: Sequence[LoopOrder],
    tensors: Declarations,
    context: isl.Set,
    names: FreshNames,
    *,
    private: bool = False,
) -> tuple[Memory, Program, list[LoopOrder]]:
    """Give every tensor of ``program`` a buffer; ``plans`` are those of its statements, in order.

    Inputs that are ``private`` may change even if something fails later.
    Comes back with the program and the plans that use this memory: statements that save cells of it may be among them.
    """
    sharing = _Sharing(program, plans, tensors, private)
    inside = InPlace(tensors, context, names, movable=private)
    of: dict[str, str] = {tensor.name: tensor.name for tensor in program.inputs}
    in_place: set[str] = set()
    made: list[LoopOrder] = []
    saved: list[str] = []
    for position, plan in enumerate(plans):
        name = plan.statement.target.tensor
        earlier = sharing.taken_over(position, of)
        suited = [plan] if earlier is None else inside.plans(plan, earlier)
        if suited is None:
            earlier, suited = None, [plan]
        for saving in suited[:-1]:
            copy = saving.statement.target.tensor
            of[copy] = copy
            saved.append(copy)
        made.extend(suited)
        of[name] = name if earlier is None else of[earlier]
        if earlier is not None:
            sharing.taken.add(of[earlier])
        if earlier is not None and isinstance(plan.statement.start, Keep):
            in_place.add(name)
    program = replace(
        program,
        tensors=(*program.tensors, *(tensors[name] for name in saved)),
        statements=tuple(plan.statement for plan in made),
    )
    marks = {
        plan.statement.target.tensor: names.fresh(f"written_{plan.statement.target.tensor}")
        for plan in plans
        if plan.statement.unique
    }
    buffers = _buffers(program, of)
    for name, buffer in marks.items():
        buffers.append(Buffer(buffer, "bool", program.tensor(name).shape, "temporary", ()))
    updates = tuple((into, of[name]) for into, name in program.updates if of[name] != into)
    return Memory(tuple(buffers), of, frozenset(in_place), marks, updates), program, made


def _buffers(program: Program, of: Mapping[str, str]) -> list[Buffer]:
    # Of all tensors, which are in the buffers that `of` says.
    inputs = {tensor.name for tensor in program.inputs}
    outputs = {of[name] for name in program.outputs}
    members: dict[str, list[str]] = {}
    for name, buffer in of.items():
        members.setdefault(buffer, []).append(name)
    buffers = []
    for buffer, holders in members.items():
        tensor = program.tensor(holders[0])
        kind = "output" if buffer in outputs else "temporary"
        if buffer in inputs:
            kind = "input" if len(holders) == 1 else "update"
        buffers.append(Buffer(buffer, tensor.dtype, tensor.shape, kind, tuple(holders)))
    return buffers


class _Sharing:
    """Answers whose memory a statement's target may take over."""

    def __init__(self, program: Program, plans: Sequence[LoopOrder], tensors: Declarations, private: bool) -> None:
        self.program = program
        self.plans = plans
        self.inputs = {tensor.name for tensor in program.inputs}
        self.kept = set(program.outputs) | {name for _, name in program.updates}
        # The last statement that needs a tensor.
        self.last = {name: found[-1] for name, found in readers(plan.statement for plan in plans).items()}
        # From where on nothing can fail.
        failing = (k for k, plan in enumerate(plans) if can_fail(plan.statement, tensors))
        self.safe = 0 if private else 1 + max(failing, default=-1)
        self.written = self._written_inputs()
        #: The memory that later tensors have taken over.
        self.taken: set[str] = set()

    def _written_inputs(self) -> dict[str, str]:
        # Tensors on the way from an input to what it becomes, each version kept by the next.
        by_name = {plan.statement.target.tensor: plan.statement for plan in self.plans}
        found: dict[str, str] = {}
        often = Counter((*(name for _, name in self.program.updates), *self.program.outputs))
        for into, name in self.program.updates:
            if often[name] > 1:
                continue
            current = name
            while current in by_name and current not in found:
                found[current] = into
                start = by_name[current].start
                if not isinstance(start, Keep):
                    break
                current = start.tensor
        return found

    def taken_over(self, position: int, of: Mapping[str, str]) -> str | None:
        """The tensor whose memory the target of the statement at ``position`` may take over, or None."""
        plan = self.plans[position]
        statement = plan.statement
        name = statement.target.tensor
        if isinstance(statement.start, Keep):
            earlier = statement.start.tensor
        elif name in self.written:
            earlier = self.written[name]
        else:
            return self._spent(position, of)
        if self.last.get(earlier, -1) > position or earlier in self.kept:
            return None
        if of[earlier] in self.inputs and not (self.written.get(name) == of[earlier] and position >= self.safe):
            return None
        if not isinstance(statement.start, Keep) and of[earlier] in self.taken:
            return None
        return earlier

    def _spent(self, position: int, of: Mapping[str, str]) -> str | None:
        # A temporary that an elementwise statement is the last one to read, cell by cell: its memory takes the result.
        plan = self.plans[position]
        if not plan.full:
            return None
        for read in statement_reads(plan.statement):
            earlier = read.tensor
            if of[earlier] in self.inputs or earlier in self.kept or self.last[earlier] > position:
                continue
            tensor = self.program.tensor(earlier)
            same = (tensor.dtype, tensor.shape) == (plan.tensor.dtype, plan.tensor.shape)
            if same and self._reads_own_cell(plan, earlier):
                return earlier
        return None

    def _reads_own_cell(self, plan: LoopOrder, earlier: str) -> bool:
        statement = plan.statement
        found = [read for read in statement_reads(statement) if read.tensor == earlier]
        cell = tuple(normalized(axis) for axis in statement.target.indices)
        return all(tuple(normalized(axis) for axis in read.indices) == cell for read in found)
