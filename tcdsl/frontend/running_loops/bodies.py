"""What has been recorded in a round, as the program that a loop repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tcdsl.errors import ShapeError
from tcdsl.frontend.running_loops.carried import Carried, is_read
from tcdsl.frontend.staging.subprograms import Part
from tcdsl.frontend.symbols.recordings import Recording
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.expressions import SizeValue
from tcdsl.ir.program import AxisExtent, Program, Tensor

__all__ = ["body_of", "labels_of", "stand_for"]


def body_of(
    part: Part, name: str, counter: Tensor, left: Sequence[tuple[Carried, str]], going: Carried | None
) -> Program:
    """The program of a body, whose number of the round is ``counter``: what is carried becomes what is ``left``.

    ``going`` says whether there is a round.
    """
    program, _ = part.program(name, [new for _, new in left])
    updates = tuple((each.placeholder, new) for (each, _), new in zip(left, program.outputs, strict=True))
    # What no round changes and none reads is declared, and has no cells to give.
    carried = {each.placeholder for each, _ in left} | ({going.placeholder} if going is not None else set())
    empty = {each.name for each in part.recorded.placeholders if not is_read(part.recorded, each.name)} - carried
    others = [tensor for tensor in program.inputs if tensor.name not in {counter.name, *empty}]
    program, extents = _with_extents_of_inputs(program, part.recorded)
    others = [tensor for tensor in others if tensor.name not in extents]
    # Its size is the first, as it is the first input.
    own = AxisExtent(counter.name, 0)
    sizes = sorted(program.sizes, key=lambda size: size.source != own)
    condition = () if going is None else (going.placeholder,)
    return replace(program, inputs=(counter, *others), sizes=tuple(sizes), outputs=condition, updates=updates)


def _with_extents_of_inputs(program: Program, recording: Recording) -> tuple[Program, frozenset[str]]:
    # Open sizes are extents of what a body is given: it needs no inputs for them alone, whose names come second.
    stated = {
        size.name: size.source.tensor
        for size in program.sizes
        if size.name in recording.open_sizes and isinstance(size.source, AxisExtent)
    }
    axes = {
        extent.name: AxisExtent(tensor.name, axis)
        for tensor in program.inputs
        if tensor.name not in stated.values()
        for axis, extent in enumerate(tensor.shape)
        if isinstance(extent, SizeValue)
    }
    for name in stated.keys() - axes.keys():
        fact = f"a loop or a branch depends on the open extent `{name}`, which statements to come may make larger"
        raise ShapeError.at(
            fact, hint=f"bind the size, or declare the target with an extent that is known: `{name} = ...`"
        )
    sizes = tuple(replace(each, source=axes[each.name]) if each.name in stated else each for each in program.sizes)
    return replace(program, sizes=sizes), frozenset(stated.values())


def stand_for(memory: SymbolicTensor, name: str, dtype: str) -> None:
    """Have memory be another version of itself, without having been stored into."""
    memory.restored(name, dtype)


def labels_of(recording: Recording) -> dict[str, str]:
    """What users call the tensors of a recording."""
    return {tensor.name: tensor.label or tensor.name for tensor in (*recording.tensors, *recording.placeholders)}
