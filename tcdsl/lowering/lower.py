"""Programs to kernels: simplify, fuse, plan, assign memory, merge, write loops."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.expressions import Let, walk
from tcdsl.ir.program import Program, Statement, Tensor
from tcdsl.lowering.bodies import Setting
from tcdsl.lowering.buffers import assign_memory
from tcdsl.lowering.knowledge import size_context
from tcdsl.lowering.loops import Kernel, Nest
from tcdsl.lowering.merging import Group, merge, renamed_statement
from tcdsl.lowering.names import Names
from tcdsl.lowering.nests import nests_of
from tcdsl.lowering.schedule import plan
from tcdsl.shapes.solve import solve

__all__ = ["lower"]


def lower(program: Program, *, optimize: bool = True) -> Kernel:
    """``lower(matmul)``: the memory and the loop nests that compute ``program``.

    Without ``optimize`` every statement has a nest of its own, for comparison.
    """
    names = Names(_names(program))
    program = _solved(_without_clashes(program, names), names)
    tensors = {tensor.name: tensor for tensor in (*program.inputs, *program.tensors)}
    context = size_context(program)
    plans = [plan(statement, tensors, context) for statement in program.statements]
    memory = assign_memory(program, plans, names)
    if optimize:
        groups = merge(plans, memory, context, names)
    else:
        groups = [Group((each,), len(each.outer) if each.plain else 0) for each in plans]
    setting = Setting(tensors, memory.of, memory.in_place, memory.marks, context, names)
    nests: list[Nest] = []
    for group in groups:
        nests.extend(nests_of(group, program, setting))
    outputs = tuple(memory.of[name] for name in program.outputs)
    return Kernel(program, memory.buffers, tuple(nests), outputs, memory.updates)


def _names(program: Program) -> set[str]:
    taken = {each.name for each in (*program.sizes, *program.inputs, *program.tensors)}
    for statement in program.statements:
        taken.update(statement.domain.variables)
        for expr in (statement.value, statement.condition):
            if expr is not None:
                taken.update(node.name for node in walk(expr) if isinstance(node, Let))
    return taken


def _without_clashes(program: Program, names: Names) -> Program:
    """Index variables get names that no size and no tensor has: in loops they share one name space."""
    taken = {each.name for each in (*program.sizes, *program.inputs, *program.tensors)}

    def renamed(statement: Statement) -> Statement:
        wanted = {name: names.fresh(f"{name}_") if name in taken else name for name in statement.domain.variables}
        return renamed_statement(statement, wanted)

    return replace(program, statements=tuple(renamed(statement) for statement in program.statements))


def _solved(program: Program, names: Names) -> Program:
    """Scatters with affine targets as gathers."""
    statements: list[Statement] = []
    between: list[Tensor] = []
    for statement in program.statements:
        tensor = program.tensor(statement.target.tensor)
        parts = solve(statement, names.fresh)
        between.extend(replace(tensor, name=part.target.tensor) for part in parts[:-1])
        statements.extend(parts)
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *between))
