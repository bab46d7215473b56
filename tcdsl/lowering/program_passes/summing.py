"""Statements that add to the same cells one after the other, as one statement that stores their sum.

The adjoint of a stencil is one statement for each place that the stencil reads. They write the same cells but for a
border, so one pass over memory is enough::

    d[i + 1] = 0.5 * g[i]               d[z] = (0.5 * g[z - 1] if z >= 1 else 0) + (0.5 * g[z] if z < N - 1 else 0)
    d_2[i] += 0.5 * g[i]  from d

In the interior (`tcdsl.lowering.loopir.boundary_reads`) no test is left. Statements are added up if, but for thin sets,
they cover the same cells, or if they write a thin set themselves (`tcdsl.lowering.program_passes.thinness`): never two
that share few cells, because their sum would run over all cells of both, with tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import islpy as isl

from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, index, neutral_constant
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, IndexValue, index_variables, is_affine_index, reads, substitute, walk
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import (
    Access,
    Keep,
    Neutral,
    Program,
    Start,
    Statement,
    Tensor,
    statement_reads,
    tensors_read,
    with_statements,
)
from tcdsl.lowering.program_passes.fusion import fresh_locals
from tcdsl.lowering.program_passes.thinness import is_thin
from tcdsl.lowering.program_passes.touched_tensors import never_moves, readers
from tcdsl.polyhedra.affine import NotAffine, expression_of_condition, with_variable
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.linear import linear_form, normalized, solved_for
from tcdsl.polyhedra.spaces import arranged

__all__ = ["summed"]

# Nodes of the values that are added up in one statement.
_LARGEST = 480
# Arrays that one pass reads: a loop over more has the processor fetch blindly, and takes long to compile.
_MOST_ARRAYS = 8
# Groups of terms that isl is asked about for each term, the latest ones: a stencil goes through its places in order.
_MOST_TRIED = 8
# What may be added up together; the first of each stands for the merged statement.
_KINDS = {"add": "add", "subtract": "add", "multiply": "multiply", "max": "max", "min": "min", "or": "or", "and": "and"}


@dataclass(frozen=True, slots=True)
class _Term:
    """A statement over the cells that it writes, each at one point: its position, the cells, and what it adds."""

    position: int
    statement: Statement
    cells: isl.Set
    value: Expr


def summed(program: Program, context: isl.Set, names: FreshNames) -> Program:
    """``program`` with chains of such statements merged; ``context`` is what is known of the sizes."""
    places: list[tuple[Statement, ...]] = [(statement,) for statement in program.statements]
    gone: set[str] = set()
    for chain in _chains(program):
        tensor = program.tensor(program.statements[chain[0]].target.tensor)
        variables = names.cells(len(tensor.shape), "z")
        terms = [_term(position, program.statements[position], variables, context) for position in chain]
        groups = _groups([term for term in terms if term is not None])
        if groups and not _overtaken(program, chain):
            gone.update(_rewrite(program, chain, groups, tensor, variables, places, context, names))
    return with_statements(program, (statement for place in places for statement in place)) if gone else program


def _chains(program: Program) -> list[list[int]]:
    """Positions of statements each of which starts from the one before, which nobody else reads."""
    made = {statement.target.tensor: position for position, statement in enumerate(program.statements)}
    users = readers(program.statements)
    fixed = {*program.outputs, *(name for _, name in program.updates)}
    chains: dict[int, list[int]] = {}
    for position, statement in enumerate(program.statements):
        start = statement.start
        before = made.get(start.tensor) if isinstance(start, Keep) else None
        if before is None or len(users[program.statements[before].target.tensor]) > 1:
            continue
        first, name = program.statements[before], program.statements[before].target.tensor
        if _kind(statement) is None or _kind(first) != _kind(statement) or _is_first_store(statement):
            continue
        if name in fixed or any(read.tensor == name for read in statement_reads(statement)):
            continue
        chain = chains.pop(before, [before])
        chains[position] = [*chain, position]
    return list(chains.values())


def _term(position: int, statement: Statement, variables: tuple[str, ...], context: isl.Set) -> _Term | None:
    """The statement over the ``variables`` of its cells; None if it writes a cell twice, tests data or may fail."""
    if statement.condition is not None or statement.unique or not all(map(is_affine_index, statement.target.indices)):
        return None
    if not never_moves(statement.value):
        return None
    points = statement.domain.set
    replacements: dict[Expr, Expr] = {}
    for name, axis in zip(variables, statement.target.indices, strict=True):
        used = index_variables(axis)
        terms, offset = linear_form(axis)
        if len(used) > 1 or any(used & index_variables(atom) and not isinstance(atom, IndexValue) for atom in terms):
            return None
        try:
            points = with_variable(points, name, axis)
        except NotAffine:
            return None
        for variable in used:
            if abs(terms[index(variable)]) != 1:
                return None
            # Of a diagonal one axis gives the variable, the others are conditions.
            replacements.setdefault(index(variable), solved_for(index(variable), terms, offset, index(name)))
    if any(index(variable) not in replacements for variable in statement.domain.variables):
        return None
    cells = arranged(points, variables).intersect_params(context)
    return _Term(position, statement, cells, normalized(substitute(statement.value, replacements)))


def _is_first_store(statement: Statement) -> bool:
    return statement.accumulate == "assign" and isinstance(statement.start, Neutral)


def _kind(statement: Statement) -> str | None:
    # A store into fresh cells adds to zeros.
    return "add" if _is_first_store(statement) else _KINDS.get(statement.accumulate)


def _overtaken(program: Program, chain: Sequence[int]) -> bool:
    # Whether a version that a statement reads is updated before the last one: reading it later would force a copy.
    own = {program.statements[position].target.tensor for position in chain}
    between = program.statements[chain[0] + 1 : chain[-1]]
    updated = {each.start.tensor for each in between if isinstance(each.start, Keep)} - own
    return any(updated & tensors_read(program.statements[position]) for position in chain)


@dataclass(slots=True)
class _Group:
    """Terms that may be added up, the cells that all of them write but for thin ones, the arrays and nodes of all."""

    members: list[_Term]
    common: isl.Set | None
    arrays: frozenset[str]
    nodes: int

    def has_room(self, arrays: frozenset[str], nodes: int) -> bool:
        """Whether there may be a term with these arrays and so many nodes more."""
        return len(self.arrays | arrays) <= _MOST_ARRAYS and self.nodes + nodes <= _LARGEST


def _groups(terms: Sequence[_Term]) -> list[list[_Term]]:
    """Terms to be added up, each list at least two."""
    groups: list[_Group] = []
    for term in terms:
        arrays = frozenset(read.tensor for read in reads(term.value) if read.indices)
        nodes = sum(1 for _ in walk(term.value))
        for group in [each for each in groups if each.has_room(arrays, nodes)][-_MOST_TRIED:]:
            merged = _common(group.common, term.cells)
            if merged is not None:
                group.members.append(term)
                group.common, group.arrays, group.nodes = merged[0], group.arrays | arrays, group.nodes + nodes
                break
        else:
            groups.append(_Group([term], None if is_thin(term.cells) else term.cells, arrays, nodes))
    return [group.members for group in groups if len(group.members) > 1 and group.common is not None]


def _common(common: isl.Set | None, cells: isl.Set) -> tuple[isl.Set | None] | None:
    # The cells that all members write but for thin ones, after one more; None if it differs too much.
    if is_thin(cells):
        return (common,)
    if common is None:
        return (cells,)
    both = common.intersect(cells)
    rest = common.union(cells).subtract(both)
    return (both,) if is_thin(rest.coalesce()) else None


def _rewrite(
    program: Program,
    chain: Sequence[int],
    groups: Sequence[Sequence[_Term]],
    tensor: Tensor,
    variables: tuple[str, ...],
    places: list[tuple[Statement, ...]],
    context: isl.Set,
    names: FreshNames,
) -> set[str]:
    """Put the sums and then the rest of the chain in the place of its last statement; the names of tensors that go.

    Sums come first, because the first statement of fresh memory writes all cells.
    """
    try:
        every = box(variables, tensor.shape, groups[0][0].cells)
    except NotAffine:
        return set()
    last_of = {group[-1].position: group for group in groups}
    members = {term.position for group in groups for term in group}
    others = [position for position in chain if position not in members]
    start = program.statements[chain[0]].start
    targets = [program.statements[position].target.tensor for position in chain]
    made: list[Statement] = []
    for position in (*sorted(last_of), *others):
        statement = program.statements[position]
        if position in last_of:
            statement = _sum(last_of[position], start, every, variables, tensor, context, names)
        elif statement.accumulate == "assign":
            statement = replace(statement, accumulate="add")
        # The last one makes the tensor that other statements know.
        last = len(made) + 1 == len(last_of) + len(others)
        target = replace(statement.target, tensor=targets[-1] if last else targets[len(made)])
        made.append(replace(statement, target=target, start=start))
        start = Keep(target.tensor)
    for position in chain:
        places[position] = ()
    places[chain[-1]] = tuple(made)
    return set(targets) - {statement.target.tensor for statement in made}


def _sum(
    group: Sequence[_Term],
    start: Start,
    every: isl.Set,
    variables: tuple[str, ...],
    tensor: Tensor,
    context: isl.Set,
    names: FreshNames,
) -> Statement:
    last = group[-1].statement
    kind = _KINDS.get(last.accumulate, last.accumulate)
    dtype = compute_dtype(tensor.dtype)
    neutral = neutral_constant(kind, dtype)
    union = group[0].cells
    for term in group[1:]:
        union = union.union(term.cells)
    fresh = isinstance(start, Neutral)
    cells = every if fresh else union.coalesce()
    total: Expr | None = None
    for term in group:
        value = _guarded(term, cells, neutral, context, names)
        negative = term.statement.accumulate == "subtract"
        if total is None:
            total = apply("neg", value) if negative else value
        else:
            total = apply("sub" if negative else ACCUMULATORS[kind].primitive, total, value)
    return replace(
        last,
        target=Access(last.target.tensor, tuple(index(name) for name in variables), last.target.span),
        accumulate="assign" if fresh else kind,
        start=start,
        value=neutral if total is None else total,
        domain=Domain.from_set(cells.gist_params(context)),
    )


def _guarded(term: _Term, cells: isl.Set, neutral: Expr, context: isl.Set, names: FreshNames) -> Expr:
    """What the term adds to each of ``cells``, asked so that the answer is yes nearly everywhere."""
    value = fresh_locals(term.value, {}, names)
    inside = term.cells.gist(cells.intersect_params(context)).coalesce()
    if is_thin(term.cells):
        return apply("where", apply("not_", expression_of_condition(inside)), neutral, value)
    return apply("where", expression_of_condition(inside), value, neutral)
