"""Programs to kernels: simplify, fuse, plan, assign memory, merge, write loops."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.errors import ShapeError
from tcdsl.ir.expressions import Let, walk
from tcdsl.ir.program import Program, Statement
from tcdsl.lowering.bodies import Setting
from tcdsl.lowering.buffers import assign_memory
from tcdsl.lowering.forwarding import without_unread
from tcdsl.lowering.fusion import fuse
from tcdsl.lowering.index_widths import with_index_widths
from tcdsl.lowering.knowledge import size_context
from tcdsl.lowering.loops import Kernel, Nest
from tcdsl.lowering.merging import Group, merge, thin_targets
from tcdsl.lowering.names import Names
from tcdsl.lowering.nests import joined, nests_of
from tcdsl.lowering.phases import in_phases, row_of_phases
from tcdsl.lowering.schedule import plan
from tcdsl.lowering.simplify import own_outputs, simplify
from tcdsl.lowering.solving import over_cells, solved, widened
from tcdsl.lowering.statements import renamed_statement
from tcdsl.lowering.summing import summed
from tcdsl.lowering.transposing import transposed
from tcdsl.lowering.unit_axes import plain_unit_axes
from tcdsl.shapes.equal_sizes import with_equal_sizes
from tcdsl.shapes.limits import TooMuchWork, limited, refused_beyond_limits

__all__ = ["lower"]


def lower(program: Program, *, optimize: bool = True, largest: int | None = None) -> Kernel:
    """``lower(matmul)``: the memory and the loop nests that compute ``program``.

    Without ``optimize`` every statement has a nest of its own, for comparison, and where isl would take too long. Sizes
    may be up to ``largest``, or else as large as the kernel says.
    """
    if optimize:
        try:
            with limited():
                return _lowered(program, optimize, largest)
        except TooMuchWork:
            pass
    with refused_beyond_limits(ShapeError, f"what {program.name} computes"):
        return _lowered(program, False, largest)


def _lowered(program: Program, optimize: bool, largest: int | None) -> Kernel:
    program = replace(program, rules=())  # they say how to differentiate
    names = Names(_names(program))
    context = size_context(program)
    program = own_outputs(with_equal_sizes(_without_clashes(program, names)), names)
    if optimize:
        program = plain_unit_axes(program, names)
        program = fuse(summed(simplify(program), context, names), context, names)
    program = widened(solved(program, names), names)
    if optimize:
        program = replace(program, statements=tuple(over_cells(each, names) for each in program.statements))
        program = transposed(program, names)
    tensors = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    plans = [plan(statement, tensors, context) for statement in program.statements]
    if optimize:
        plans = [row_of_phases(each, tensors, context, names) for each in plans]
    memory, program, plans = assign_memory(program, plans, tensors, context, names)
    if optimize:
        merged = merge(plans, memory, context, names)
        groups = [part for group in merged for part in in_phases(group, tensors, context, names)]
    else:
        groups = [Group((each,), len(each.outer) if each.plain else 0) for each in plans]
    types = {buffer.name: buffer.dtype for buffer in memory.buffers}
    thin = thin_targets(plans, memory) if optimize else frozenset()
    setting = Setting(tensors, memory.of, types, memory.in_place, memory.marks, context, names, thin)
    nests: list[Nest] = []
    for group in groups:
        nests.extend(nests_of(group, program, setting))
    outputs = tuple(memory.of[name] for name in program.outputs)
    kept = {*outputs, *(source for _, source in memory.updates)}
    buffers = (*memory.buffers, *setting.extra)
    pruned, buffers = without_unread(joined(nests) if optimize else nests, buffers, kept)
    written, limit = with_index_widths(pruned, program, largest)
    return Kernel(program, buffers, tuple(written), outputs, memory.updates, limit)


def _declared(program: Program) -> set[str]:
    tensors = {tensor.name for tensor in (*program.inputs, *program.tensors)}
    return tensors | {size.name for size in program.sizes}


def _names(program: Program) -> set[str]:
    taken = _declared(program)
    for statement in program.statements:
        taken.update(statement.domain.variables)
        for expr in (statement.value, statement.condition):
            if expr is not None:
                taken.update(node.name for node in walk(expr) if isinstance(node, Let))
    return taken


def _without_clashes(program: Program, names: Names) -> Program:
    """Index variables get names that no size and no tensor has: in loops they share one name space."""
    taken = _declared(program)

    def renamed(statement: Statement) -> Statement:
        wanted = {name: names.fresh(f"{name}_") if name in taken else name for name in statement.domain.variables}
        return renamed_statement(statement, wanted)

    return replace(program, statements=tuple(renamed(statement) for statement in program.statements))
