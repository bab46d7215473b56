"""Computed tensors that code reads after it has stored into what they are computed from.

::

    @cd
    def both(w, t, c):          # with `t = w * w` in the graph
        w += 1.0
        c = t                   # t is computed here, from the w of the line before

Code is recorded as one program, of which ``t`` is an input. Where linking finds that nothing has computed ``t`` yet,
the program is split in two, and what computes ``t`` stands between.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tcdsl.ir.program import Program, tensors_read, with_statements, without_rules
from tcdsl.ir.stages import needed_by, tensors_needed
from tcdsl.tensors.graphs.settings import Setting
from tcdsl.tensors.graphs.tensor import TensorMemory

__all__ = ["LateRead", "late_reads", "split"]

#: A computed tensor, and the memory that code stores into before it reads it first: with what that holds by then.
LateRead = tuple[TensorMemory, tuple[tuple[TensorMemory, str], ...]]


def late_reads(
    program: Program, inputs: Sequence[TensorMemory | Setting], versions: Mapping[TensorMemory, Sequence[str]]
) -> tuple[LateRead, ...]:
    """The computed tensors among the ``inputs`` of ``program`` that it reads first after stores into other memory.

    ``versions`` are all stores, in order. A loop is one statement: what it reads is computed before it.
    """
    # Tensors of the program stand in the order in which they were made, those that loops make too.
    places = {tensor.name: place for place, tensor in enumerate(program.tensors)}
    first: dict[str, int] = {}
    for made, read in (
        *((each.target.tensor, tensors_read(each)) for each in program.statements),
        *((name, needed_by(each)) for each in program.repeats for name in each.results),
    ):
        for name in read:
            first[name] = min(first.get(name, places[made]), places[made])
    found: list[tuple[int, LateRead]] = []
    for buffer, tensor in zip(inputs, program.inputs, strict=True):
        if isinstance(buffer, Setting) or buffer.kind != "value" or buffer.owner.is_leaf or tensor.name not in first:
            continue
        place = first[tensor.name]
        held = [
            (memory, [name for name in names if places.get(name, place) < place]) for memory, names in versions.items()
        ]
        stored = tuple((memory, names[-1]) for memory, names in held if names)
        if stored:
            found.append((place, (buffer, stored)))
    return tuple(late for _, late in sorted(found, key=lambda each: each[0]))


def split(program: Program, names: Sequence[str], versions: Collection[str]) -> tuple[Program, Program, list[str]]:
    """What makes the tensors ``names``, the rest, and which tensors of the first it has as further inputs.

    These are what it reads, and ``versions``, which are asked for later.
    """
    needed = tensors_needed(program, names)
    before = {tensor.name for tensor in program.tensors if tensor.name in needed}
    # Code is not differentiated.
    program = without_rules(program)
    loops = [each for each in program.repeats if before.intersection(each.results)]
    before.update(name for each in loops for name in each.results)
    first = with_statements(
        replace(program, repeats=tuple(loops), assertions=(), updates=()),
        [each for each in program.statements if each.target.tensor in before],
    )
    last = with_statements(
        replace(program, repeats=tuple(each for each in program.repeats if each not in loops)),
        [each for each in program.statements if each.target.tensor not in before],
    )
    read = {*program.outputs, *versions}.union(*map(tensors_read, last.statements), *map(needed_by, last.repeats))
    kept = [tensor for tensor in first.tensors if tensor.name in read]
    outputs = tuple(tensor.name for tensor in kept)
    return replace(first, outputs=outputs), replace(last, inputs=(*last.inputs, *kept)), list(outputs)
