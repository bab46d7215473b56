"""Programs made shorter without changing what they compute."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.expressions import Expr, reads
from tcdsl.ir.program import Fill, Keep, Program, Statement

__all__ = ["simplify", "without_dead_statements"]


def simplify(program: Program) -> Program:
    """``program`` with fewer statements and shorter values, for the same outputs and updates."""
    program = without_dead_statements(program)
    return program


def _tensors_read(statement: Statement) -> set[str]:
    found: set[str] = set()
    parts: list[Expr] = [statement.value, *statement.target.indices]
    if statement.condition is not None:
        parts.append(statement.condition)
    match statement.start:
        case Keep(tensor=tensor):
            found.add(tensor)
        case Fill(value=value):
            parts.append(value)
    for part in parts:
        found.update(read.tensor for read in reads(part))
    return found


def without_dead_statements(program: Program) -> Program:
    """The program without the statements that no output and no update needs."""
    needed = {*program.outputs, *(new for _, new in program.updates)}
    kept: list[Statement] = []
    for statement in reversed(program.statements):
        if statement.target.tensor in needed:
            kept.append(statement)
            needed |= _tensors_read(statement)
    return replace(
        program,
        statements=tuple(reversed(kept)),
        tensors=tuple(tensor for tensor in program.tensors if tensor.name in needed),
    )
