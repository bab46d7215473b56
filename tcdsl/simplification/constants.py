"""Tensors all of whose cells hold one constant, and what follows for the statements that read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tcdsl.ir.accumulators import neutral_element
from tcdsl.ir.build import neutral_constant
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Constant, Expr, Read, transform
from tcdsl.ir.program import Fill, Keep, Neutral, Program, Statement, Tensor, map_statement
from tcdsl.polyhedra.boxes import is_over_box
from tcdsl.simplification.expressions.tape import shared

__all__ = ["with_constants_propagated"]

_Constants = Mapping[str, Constant]


def with_constants_propagated(program: Program) -> Program:
    """``program`` with reads of constant tensors replaced by their constant."""
    known: dict[str, Constant] = {}
    statements = []
    for statement in program.statements:
        if known:
            statement = _substituted(statement, known)
        found = _uniform(statement, program.tensor(statement.target.tensor))
        if found is not None:
            known[statement.target.tensor] = found
        statements.append(statement)
    return replace(program, statements=tuple(statements)) if known else program


def _uniform(statement: Statement, tensor: Tensor) -> Constant | None:
    """The constant that all cells hold after a statement, if there is one."""
    dtype = compute_dtype(tensor.dtype)
    started: Constant | None = None
    if isinstance(statement.start, Neutral):
        started = neutral_constant(statement.accumulate, tensor.dtype)
    elif isinstance(statement.start, Fill) and isinstance(statement.start.value, Constant):
        started = statement.start.value
    if statement.domain.text.endswith(": false }"):
        return started
    value = statement.value
    if not isinstance(value, Constant) or tensor.dtype != dtype or not is_over_box(statement, tensor.shape):
        return None
    if statement.accumulate == "assign" or (statement.accumulate == "add" and _is_zero(started)):
        return value
    return None


def _is_zero(value: Constant | None) -> bool:
    return value is not None and value.value == 0


def _substituted(statement: Statement, known: _Constants) -> Statement:
    # The target stays: an index of it that is data is checked, one that is not counts as in range.
    made = map_statement(statement, lambda expr: _with_constants(expr, known))
    made = replace(made, target=statement.target)
    if not isinstance(made.start, Keep) or made.start.tensor not in known:
        return made
    value = known[made.start.tensor]
    neutral = value.value == neutral_element(statement.accumulate, value.dtype)
    return replace(made, start=Neutral() if neutral else Fill(value))


def _with_constants(expr: Expr, known: _Constants) -> Expr:
    def rule(node: Expr) -> Expr:
        if isinstance(node, Read) and node.tensor in known and _always_finds_a_cell(node):
            return known[node.tensor]
        return node

    changed = transform(expr, rule)
    return expr if changed == expr else shared(changed)


def _always_finds_a_cell(read: Read) -> bool:
    # A checked index must go on raising errors, and a fill is another value.
    return not any(boundary in (Boundary.CHECK, Boundary.FILL) for boundary in read.boundaries)
