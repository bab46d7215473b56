"""Statements in the form that loops need: scatters solved for their cells, half-precision cells summed in float32."""

from __future__ import annotations

from dataclasses import replace

from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import index_variables, is_affine_index
from tcdsl.ir.program import Access, Keep, Program, Statement, Tensor
from tcdsl.lowering.names import Names
from tcdsl.lowering.statements import copy_statement
from tcdsl.shapes.solve import solve, target_variables

__all__ = ["solved", "widened"]


def solved(program: Program, names: Names) -> Program:
    """Scatters with affine targets as gathers (`tcdsl.shapes.solve`)."""
    statements: list[Statement] = []
    between: list[Tensor] = []
    for statement in program.statements:
        tensor = program.tensor(statement.target.tensor)
        parts = solve(statement, names.fresh)
        between.extend(
            replace(tensor, name=part.target.tensor, label=tensor.label or tensor.name) for part in parts[:-1]
        )
        statements.extend(parts)
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *between))


def widened(program: Program, names: Names) -> Program:
    """Scatters into float16 cells accumulate in a float32 tensor, which is rounded once at the end.

    Other statements sum in a float32 scalar.
    """
    statements: list[Statement] = []
    between: list[Tensor] = []
    for statement in program.statements:
        tensor = program.tensor(statement.target.tensor)
        if tensor.dtype != "float16" or statement.accumulate == "assign" or _determined(statement):
            statements.append(statement)
            continue
        wide = replace(_between(tensor, names), dtype=compute_dtype(tensor.dtype))
        between.append(wide)
        start = statement.start
        if isinstance(start, Keep):
            first = replace(wide, name=names.fresh(tensor.name))
            between.append(first)
            statements.append(copy_statement(program.tensor(start.tensor), first.name, names))
            start = Keep(first.name)
        target = Access(wide.name, statement.target.indices, statement.target.span)
        statements.append(replace(statement, target=target, start=start))
        statements.append(copy_statement(wide, tensor.name, names))
    return replace(program, statements=tuple(statements), tensors=(*program.tensors, *between))


def _determined(statement: Statement) -> bool:
    # Whether one scalar can sum all that goes into a cell.
    indices = statement.target.indices
    variables = frozenset().union(*map(index_variables, indices))
    return all(map(is_affine_index, indices)) and variables <= set(target_variables(statement))


def _between(tensor: Tensor, names: Names) -> Tensor:
    return replace(tensor, name=names.fresh(tensor.name), label=tensor.label or tensor.name)
