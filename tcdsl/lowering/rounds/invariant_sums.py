"""Sums, and other reductions, that all rounds of a loop have in common, computed once before it.

::

    repeat N times:                              best[()] <<= key[n]
        best[()] <<= key[n]                      repeat N times:
        y[v] += W[v] * best                          y[v] += W[v] * best

A sum takes as long as it has terms, and a round should not. Those in branches of a round move too, though not out of a
branch alone, which may not run. Whether the loop runs is not asked: what moves reads cells that are there, whatever the
sizes are, and no data say which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import islpy as isl

from tcdsl.ir.expressions import Cast, Expr
from tcdsl.ir.fresh_names import FreshNames, names_of
from tcdsl.ir.program import (
    AxisExtent,
    DerivativeRule,
    Keep,
    Program,
    Repeat,
    Statement,
    Tensor,
    sizes_used,
    statement_reads,
    tensors_read,
    with_statements,
)
from tcdsl.polyhedra.affine import NotAffine
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.polyhedra.writes import affine_target, cell_map, cells_read
from tcdsl.rewrite.inlining import append_program
from tcdsl.rewrite.renaming import statement_with_tensors_renamed
from tcdsl.rewrite.statement_kinds import content
from tcdsl.span import Span

__all__ = ["with_invariant_sums"]


def with_invariant_sums(program: Program) -> Program:
    """``program`` with such statements in front of its loops, as far out as may be."""
    return _with_sums_outside(program, frozenset()) if program.repeats else program


def _with_sums_outside(program: Program, steady: frozenset[str]) -> Program:
    # ``steady`` are the tensors of the program that are the same in all rounds of a loop around it.
    for position, repeat in enumerate(program.repeats):
        if repeat.host:
            continue
        branch = _is_branch(repeat)
        carried = {name for name, _ in repeat.body.updates}
        pairs = zip(repeat.body.inputs[1:], repeat.inputs, strict=True)
        inside = frozenset(
            each.name for each, given in pairs if each.name not in carried and (not branch or given in steady)
        )
        body = _with_sums_outside(repeat.body, inside) if repeat.body.repeats else repeat.body
        moved = _Moved(program, replace(repeat, body=body))
        program = moved.with_loop(position, moved.sums(inside))
    return program


def _is_branch(repeat: Repeat) -> bool:
    return isinstance(repeat.count, Cast)


def _is_sum(statement: Statement) -> bool:
    # With several terms for a cell, which start anew.
    several = len(statement.domain.variables) > len(statement.target.indices)
    return several and not isinstance(statement.start, Keep) and not statement.unique and affine_target(statement)


def _without_repetitions(program: Program, count: int) -> tuple[Program, dict[str, str]]:
    # Without those of the last ``count`` statements that say what an earlier one says, and what they made is called.
    def key(statement: Statement) -> object:
        return content(statement, program.tensor(statement.target.tensor))

    kept, last = list(program.statements[:-count]), program.statements[-count:]
    known = {key(each): each.target.tensor for each in reversed(kept)}
    names: dict[str, str] = {}
    for statement in last:
        name = statement.target.tensor
        renamed = statement_with_tensors_renamed(statement, names)
        names[name] = known.setdefault(key(renamed), name)
        if names[name] == name:
            kept.append(renamed)
    return with_statements(program, kept), names


def _is_in_range(program: Program, statement: Statement, context: isl.Set) -> bool:
    # Whether all that a statement reads and writes is there, whatever the sizes are.
    points = statement.domain.set.intersect_params(context)
    target = program.tensor(statement.target.tensor)
    cells = [(cell_map(points, statement.target.indices).range().reset_tuple_id(), target)]
    for read in statement_reads(statement):
        found = cells_read(points, read)
        if found is None:
            return False
        cells.append((found, program.tensor(read.tensor)))
    try:
        return all(found.is_subset(box(_names(each), each.shape)) for found, each in cells)
    except NotAffine:
        return False


def _names(tensor: Tensor) -> list[str]:
    return [f"cell_{axis}" for axis in range(len(tensor.shape))]


@dataclass(slots=True)
class _Host:
    """``program``, to which another one is appended."""

    program: Program
    names: FreshNames
    made: list[Tensor] = field(default_factory=list)

    def fresh_name(self, hint: str) -> str:
        """A name that is new."""
        return self.names.fresh(hint)

    def opaque_size(self, expr: Expr) -> Expr:
        """Sizes that stand for expressions do not move."""
        raise NotImplementedError(expr)

    def require(self, condition: Expr, message: str, span: Span | None = None) -> None:
        """Nothing is asserted anew."""
        raise NotImplementedError(condition)

    def add_repeat(self, repeat: Repeat, tensors: Sequence[Tensor]) -> None:
        """Loops do not move."""
        raise NotImplementedError(repeat)

    def add_rule(self, rule: DerivativeRule) -> None:
        """Rules are gone when programs are lowered."""
        raise NotImplementedError(rule)

    def add_statement(self, statement: Statement, tensor: Tensor) -> None:
        """Add a statement, with the declaration of what it makes."""
        program = self.program
        self.program = replace(program, tensors=(*program.tensors, tensor), statements=(*program.statements, statement))


@dataclass(slots=True)
class _Moved:
    """``program`` while statements of the body of ``repeat``, one of its loops, become its own."""

    program: Program
    repeat: Repeat
    names: FreshNames = field(init=False)

    def __post_init__(self) -> None:
        self.names = names_of(self.program)

    # -- what may move

    def sums(self, steady: frozenset[str]) -> list[Statement]:
        """The reductions of the body that read what is ``steady``, and one another."""
        body = self.repeat.body
        changed = {new for _, new in body.updates}
        sizes = self._sizes()
        found: list[Statement] = []
        known = set(steady)
        for statement in body.statements:
            name = statement.target.tensor
            if name in changed or not _is_sum(statement) or not tensors_read(statement) <= known:
                continue
            if sizes_used((statement,), (body.tensor(name),)) <= sizes.keys():
                found.append(statement)
                known.add(name)
        return found if found and self._finds_its_cells(found) else []

    def _sizes(self) -> dict[str, Expr]:
        # The sizes of the body that are extents of what it is given, in those of the program.
        given = {
            each.name: self.program.tensor(name)
            for each, name in zip(self.repeat.body.inputs[1:], self.repeat.inputs, strict=True)
        }
        return {
            size.name: given[size.source.tensor].shape[size.source.axis]
            for size in self.repeat.body.sizes
            if isinstance(size.source, AxisExtent) and size.source.tensor in given
        }

    def _finds_its_cells(self, found: Sequence[Statement]) -> bool:
        # What the body asserts, as that `k < N`, nobody has looked at outside of the loop.
        made = self._appended(found).program
        context = size_context(made)
        return all(_is_in_range(made, statement, context) for statement in made.statements[-len(found) :])

    # -- how it moves

    def _appended(self, found: Sequence[Statement]) -> _Host:
        host = _Host(self.program, self.names)
        body = self.repeat.body
        targets = [statement.target.tensor for statement in found]
        tensors = tuple(each for each in body.tensors if each.name in targets)
        inputs = body.inputs[1:]
        given = {each.name for each in inputs}
        sizes = tuple(
            each for each in body.sizes if isinstance(each.source, AxisExtent) and each.source.tensor in given
        )
        piece = replace(
            body,
            inputs=inputs,
            sizes=sizes,
            tensors=tensors,
            outputs=tuple(targets),
            updates=(),
            assertions=(),
            rules=(),
            repeats=(),
        )
        piece = with_statements(piece, found)
        host.made = append_program(host, piece, [self.program.tensor(name) for name in self.repeat.inputs])
        return host

    def with_loop(self, position: int, found: Sequence[Statement]) -> Program:
        """The program with the loop, of which ``found`` has moved out."""
        repeat, program = self.repeat, self.program
        if found:
            host = self._appended(found)
            program, names = _without_repetitions(host.program, len(found))
            body, gone = repeat.body, {statement.target.tensor for statement in found}
            tensors = tuple(each for each in body.tensors if each.name not in gone)
            inputs = tuple(body.tensor(statement.target.tensor) for statement in found)
            rest = [each for each in body.statements if each.target.tensor not in gone]
            body = with_statements(replace(body, inputs=(*body.inputs, *inputs), tensors=tensors), rest)
            given = (names.get(each.name, each.name) for each in host.made)
            repeat = replace(repeat, body=body, inputs=(*repeat.inputs, *given))
        repeats = list(program.repeats)
        repeats[position] = repeat
        return replace(program, repeats=tuple(repeats))
