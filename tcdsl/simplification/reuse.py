"""Values that a tensor holds already: ``d_b[j] += d_a[n, j] * (1 - a[n, j] * a[n, j])`` reads ``d_h[n, j]`` instead."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import index
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, substitute, walk
from tcdsl.ir.program import Program, Statement, Tensor
from tcdsl.polyhedra.boxes import box, is_over_box
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.polyhedra.spaces import arranged
from tcdsl.polyhedra.writes import read_cell
from tcdsl.simplification.sparsity.composition import operations

__all__ = ["with_values_reused"]


def with_values_reused(program: Program) -> Program:
    """``program`` with whole values read from an elementwise tensor that an earlier statement has filled with them."""
    held: dict[Expr, tuple[Tensor, tuple[int, ...]]] = {}
    context: isl.Set | None = None
    ruled = program.ruled
    statements: list[Statement] = []
    for statement in program.statements:
        tensor = program.tensor(statement.target.tensor)
        pattern, variables = _pattern(statement.value)
        if operations(statement.value):
            found = held.get(pattern)
            if found is not None:
                context = size_context(program) if context is None else context
                statement = _reading(statement, *found, variables, context)
            elif (
                tensor.name not in ruled
                and _fills(statement, tensor)
                and set(variables) == set(statement.domain.variables)
            ):
                held[pattern] = tensor, tuple(variables.index(name) for name in statement.domain.variables)
        statements.append(statement)
    return replace(program, statements=tuple(statements))


def _pattern(value: Expr) -> tuple[Expr, tuple[str, ...]]:
    # The value with its variables named in the order in which they occur, and these variables.
    names = tuple(dict.fromkeys(node.name for node in walk(value) if isinstance(node, IndexValue)))
    step: dict[Expr, Expr] = {index(name): index(f"_{k}") for k, name in enumerate(names)}
    return substitute(value, step), names


def _fills(statement: Statement, tensor: Tensor) -> bool:
    # Each cell holds the value at the point of the same name.
    plain = statement.accumulate == "assign" and tensor.dtype == compute_dtype(tensor.dtype)
    return plain and is_over_box(statement, tensor.shape)


def _reading(
    statement: Statement, tensor: Tensor, places: tuple[int, ...], variables: tuple[str, ...], context: isl.Set
) -> Statement:
    # The statement with the tensor's cells as its value, if they are in range at all its points.
    cells = tuple(variables[place] for place in places)
    points = arranged(statement.domain.set, cells).intersect_params(context)
    if not points.is_subset(box(cells, tensor.shape)):
        return statement
    return replace(statement, value=read_cell(tensor, cells, tensor.dtype))
