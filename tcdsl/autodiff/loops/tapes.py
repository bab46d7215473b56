"""Tapes: what every round of a loop has found, kept for another loop.

A tape is one more tensor that the loop carries, with an axis for the rounds: round ``k`` writes ``tape[k]``, in place,
and of that only the cells that are read later.
"""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Expr, Read, transform
from tcdsl.ir.fresh_names import cell_names
from tcdsl.ir.program import Access, Keep, Program, Statement, Tensor, map_statement
from tcdsl.polyhedra.boxes import box, over_box
from tcdsl.polyhedra.spaces import named
from tcdsl.polyhedra.writes import read_cell

__all__ = ["reading_tape", "written_tape"]


def written_tape(values: Program, name: str, tape: Tensor, new: str, number: Expr, cells: isl.Set | None) -> Statement:
    """The statement of round ``number`` that stores ``cells`` of the tensor ``name``, or all of them, on ``tape``."""
    tensor = values.tensor(name)
    variables = cell_names(len(tensor.shape), (size.name for size in values.sizes))
    every = box(variables, tensor.shape)
    points = every if cells is None else named(cells, variables).intersect(every)
    value = read_cell(tensor, variables, compute_dtype(tensor.dtype))
    target = Access(new, (number, *map(index, variables)))
    return Statement(target, "assign", Keep(tape.name), value, Domain.from_set(points))


def reading_tape(linear: Program, name: str, tape: str, number: Expr) -> Program:
    """``linear`` reading ``tape[number]`` instead of its input ``name``."""

    def rule(node: Expr) -> Expr:
        if not isinstance(node, Read) or node.tensor != name:
            return node
        boundaries = (Boundary.SKIP, *node.boundaries)
        return replace(node, tensor=tape, indices=(number, *node.indices), boundaries=boundaries)

    tensor = linear.tensor(name)
    whole = any(name in repeat.inputs for repeat in linear.repeats) or any(name in rule.named for rule in linear.rules)
    whole = whole or any(isinstance(each.start, Keep) and each.start.tensor == name for each in linear.statements)
    inputs = tuple(each for each in linear.inputs if each.name != name)
    if not whole:
        statements = tuple(map_statement(each, lambda expr: transform(expr, rule)) for each in linear.statements)
        return replace(linear, inputs=inputs, statements=statements)
    # Loops are given whole tensors.
    cells = cell_names(len(tensor.shape), (size.name for size in linear.sizes))
    copy = over_box(name, cells, tensor.shape, rule(read_cell(tensor, cells, compute_dtype(tensor.dtype))))
    return replace(linear, inputs=inputs, tensors=(tensor, *linear.tensors), statements=(copy, *linear.statements))
