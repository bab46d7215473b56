"""Values that a maximum, a minimum or a product must recognize again, kept in memory.

The derivative of a maximum asks which values equal it, that of a product which factors are zero. A value that is
computed again may differ in its last bit, because generated code contracts ``a * b + c`` and reorders sums as it
likes, and then no value would be the maximum. A cell read again is the same. So a value that takes more than one
rounding is stored first: ``Y[i] >>= exp(x[i, k]) + 1`` becomes
``Y_values[i, k] = exp(x[i, k]) + 1; Y[i] >>= Y_values[i, k]``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tcdsl.ir.build import apply, index, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import is_floating
from tcdsl.ir.expressions import Apply, Expr, Local, Read
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import Access, Neutral, Program, Statement, Tensor
from tcdsl.polyhedra.boxes import bounds
from tcdsl.polyhedra.spaces import arranged
from tcdsl.polyhedra.writes import writes_each_cell_once
from tcdsl.simplification.expressions.tape import Tape
from tcdsl.simplification.scans import scan_of

__all__ = ["stored", "with_candidates_stored"]

_RECOGNIZING = frozenset(("max", "min", "multiply", "power"))
_MULTIPLYING = frozenset(("multiply", "power", "divide"))
# Results that are the same however they are compiled, and operations that round once.
_EXACT = frozenset(("id", "stop_gradient", "neg", "abs", "relu", "sat01", "sign", "floor", "ceil", "round", "where"))
_EXACT_PAIRS = frozenset(("fst", "snd", "relu_gate", "sat01_gate", "max", "min", "lt", "le", "gt", "ge", "eq", "ne"))
_ROUNDING_ONCE = frozenset(("add", "sub", "mul", "square"))


def with_candidates_stored(program: Program, active: Callable[[str], bool]) -> Program:
    """``program`` with the values of reductions to ``active`` tensors stored where computing them twice may differ."""
    names = names_of(program)
    tensors = list(program.tensors)
    statements: list[Statement] = []
    for statement in program.statements:
        if active(statement.target.tensor) and _must_be_stored(statement) and not writes_each_cell_once(statement):
            made, store, read = stored(_of_a_cell(program, statement), names.fresh(f"{statement.target.tensor}_values"))
            tensors.append(made)
            statements.append(store)
            statement = replace(statement, value=read)
        statements.append(statement)
    if len(tensors) == len(program.tensors):
        return program
    return replace(program, tensors=tuple(tensors), statements=tuple(statements))


def _of_a_cell(program: Program, statement: Statement) -> Statement:
    # With each value once where cells go on from each other: in all of them it is the same.
    scan = scan_of(statement, program.tensor(statement.target.tensor).shape)
    if scan is None or scan.ends:
        return statement
    variables = [each for each in statement.domain.variables if each != scan.variable]
    return replace(statement, domain=Domain.from_set(arranged(statement.domain.set, variables)))


def _must_be_stored(statement: Statement) -> bool:
    # The derivative of a product mentions each factor four times: work that is repeated so often is stored as well.
    if statement.accumulate in _MULTIPLYING and not isinstance(statement.value, Read):
        return True
    return statement.accumulate in _RECOGNIZING and not _is_reproducible(statement.value)


def _is_reproducible(value: Expr) -> bool:
    tape = Tape()
    roundings = 0
    for name in tape.steps([tape.flatten(value)]):
        step = tape.definition(Local(name, ""))
        if not isinstance(step, Apply) or not any(is_floating(argument.dtype) for argument in step.arguments):
            continue
        if step.primitive in _ROUNDING_ONCE:
            roundings += 1
        elif step.primitive not in _EXACT and step.primitive not in _EXACT_PAIRS:
            return False
    return roundings <= 1


def stored(statement: Statement, name: str) -> tuple[Tensor, Statement, Read]:
    """A tensor ``name`` for the values of a statement, the statement that stores them, and the read at a point."""
    variables, value = statement.domain.variables, statement.value
    lows, extents = bounds(statement.domain.set, len(variables))
    cell = tuple(apply("sub", index(variable), low) for variable, low in zip(variables, lows, strict=True))
    store = replace(
        statement,
        target=Access(name, cell, statement.target.span),
        accumulate="assign",
        start=Neutral(),
        oob="check",
        unique=False,
    )
    return Tensor(name, value.dtype, tuple(extents)), store, plain_read(name, cell, value.dtype, value.span)
