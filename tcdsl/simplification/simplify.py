"""Programs made shorter without changing what they compute.

Statements: those that nothing needs go, and copies, and repetitions of earlier ones; constant tensors become constants,
sparse ones are read where they were written (`tcdsl.simplification.sparsity.sparse_reads`), and brackets become bounds.
Scalars: constants fold, neutral operands go, repeated parts are computed once
(`tcdsl.simplification.expressions.folding`). Zero times an unknown stays, because the unknown may be NaN.
"""

from __future__ import annotations

from functools import lru_cache

import islpy as isl

from tcdsl.ir.build import truth
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Fill, Program, Statement, tensors_read, with_statements
from tcdsl.ir.stages import around_loops, in_order, tensors_needed
from tcdsl.polyhedra.limits import TooMuchWork, limited
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.rewrite.kept_spans import kept_with_spans, once_per_kind
from tcdsl.simplification.expressions.tape import shared
from tcdsl.simplification.redundant_tensors import (
    with_constants_propagated,
    with_values_reused,
    without_copies,
    without_unread_changes,
)
from tcdsl.simplification.sealing import simplified_around_rules
from tcdsl.simplification.smaller_loops import with_smaller_loops
from tcdsl.simplification.sparsity.compaction import with_sparse_tensors_compacted
from tcdsl.simplification.sparsity.sparse_reads import with_thin_reads_composed
from tcdsl.simplification.sparsity.unions import with_stores_united
from tcdsl.simplification.statement_points import (
    with_brackets_in_domain,
    with_condition_in_domain,
    without_determined_variables,
    without_uniform_sums,
)

__all__ = ["simplify", "without_dead_statements", "without_sparse_tensors"]

# Each round enables the next one; programs are done after two or three.
_MOST_ROUNDS = 12


def simplify(program: Program) -> Program:
    """``program`` with fewer statements and shorter values, for the same outputs and updates.

    Idempotent: ``simplify(simplify(p)) == simplify(p)``. What a derivative rule stands for stays (`sealing`).
    """
    try:
        with limited():
            return in_order(simplified_around_rules(in_order(program), _simplified))
    except TooMuchWork:
        return program


def without_sparse_tensors(program: Program) -> Program:
    """``program`` as it should run: no tensor is stored whose reads can be composed with its writes.

    ``A[i, j] = x[i] * (i == j)`` that is read on its diagonal, in rows or in columns costs N and not N squared, in time
    and in memory. Programs without such a tensor come back as they are.
    """
    try:
        with limited():
            prepared = in_order(program)
            prepared = replace(prepared, statements=tuple(map(_tightened, prepared.statements)))
            composed = around_loops(prepared, _without_stored_zeros)
    except TooMuchWork:
        return program
    return program if composed == prepared else simplify(program)


def _without_stored_zeros(program: Program) -> Program:
    return with_thin_reads_composed(with_sparse_tensors_compacted(program))


@kept_with_spans(1024)
def _simplified_body(body: Program) -> Program:
    return simplify(body)


def _simplified(program: Program) -> Program:
    for _ in range(_MOST_ROUNDS):
        before = program
        if program.repeats:
            program = with_smaller_loops(program, _simplified_body)
        program = around_loops(program, _straight_simplified)
        if not program.repeats or program == before:
            break
    return program


def _straight_simplified(program: Program) -> Program:
    for _ in range(_MOST_ROUNDS):
        before = program
        program = _without_known_conditions(program)
        program = replace(program, statements=tuple(map(simplified_statement, program.statements)))
        program = with_constants_propagated(program)
        program = without_copies(program)
        program = without_unread_changes(program)
        program = _without_stored_zeros(program)
        program = with_stores_united(program)
        program = with_values_reused(without_dead_statements(program))
        if program == before:
            break
    return program


def _without_known_conditions(program: Program) -> Program:
    # Conditions on sizes that the assertions imply: they are checked before anything runs.
    if not program.assertions:
        return program
    context = size_context(program)
    if context.is_empty():
        return program  # it never runs, and anything is implied
    statements = tuple(_given(statement, context) for statement in program.statements)
    return replace(program, statements=statements)


def _given(statement: Statement, context: isl.Set) -> Statement:
    if not statement.domain.parameters:
        return statement
    domain = _gist(statement.domain, context)
    return statement if domain == statement.domain else replace(statement, domain=domain)


@lru_cache(maxsize=4096)
def _gist(domain: Domain, context: isl.Set) -> Domain:
    return Domain.from_set(domain.set.gist_params(context))


@once_per_kind
def simplified_statement(statement: Statement) -> Statement:
    """One statement with shorter expressions, fewer variables and tighter bounds."""
    condition = None if statement.condition is None else shared(statement.condition)
    domain = statement.domain
    if condition == truth(True):
        condition = None
    elif condition == truth(False):
        points = domain.set
        domain, condition = Domain.from_set(points.subtract(points)), None
    start = statement.start
    if isinstance(start, Fill):
        start = Fill(shared(start.value))
    value = shared(statement.value)
    statement = replace(statement, condition=condition, domain=domain, value=value, start=start)
    return _with_sign_in_accumulator(without_uniform_sums(_tightened(with_condition_in_domain(statement))))


_OPPOSITE = {"add": "subtract", "subtract": "add"}


def _with_sign_in_accumulator(statement: Statement) -> Statement:
    # y += -e is y -= e.
    value = statement.value
    if statement.accumulate in _OPPOSITE and isinstance(value, Apply) and value.primitive == "neg":
        return replace(statement, accumulate=_OPPOSITE[statement.accumulate], value=value.arguments[0])
    return statement


@once_per_kind
def _tightened(statement: Statement) -> Statement:
    return without_determined_variables(with_brackets_in_domain(statement))


def without_dead_statements(program: Program) -> Program:
    """The program without the statements and loops that no output and no update needs."""
    needed = {*program.outputs, *(new for _, new in program.updates)}
    if program.repeats:
        needed = tensors_needed(program, needed)
        repeats = tuple(repeat for repeat in program.repeats if needed.intersection(repeat.results))
        alive = (statement for statement in program.statements if statement.target.tensor in needed)
        return with_statements(replace(program, repeats=repeats), alive)
    kept: list[Statement] = []
    for statement in reversed(program.statements):
        if statement.target.tensor in needed:
            kept.append(statement)
            needed |= tensors_read(statement)
    return with_statements(program, reversed(kept))
