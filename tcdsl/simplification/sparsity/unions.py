"""Stores of one value into neighbouring cells, made one statement: the gradient of ``x[2] + x[3] + x[4]``.

``d_x[2] += g``, ``d_x[3] += g`` and ``d_x[4] += g``, one after the other, are ``d_x[z] += g`` over ``2 <= z <= 4``: the
same function of the cell, over the union of the cells. Stretches that do not touch stay statements of their own, so
that every loop is one loop.

Source: Bernstein, Mara, Li, Maclaurin, Ragan-Kelley, "Differentiating a Tensor Language" (2020), section 2.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import islpy as isl

from tcdsl.ir.build import index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, reads
from tcdsl.ir.program import Access, Keep, Neutral, Program, Statement, Tensor, tensors_read, with_statements
from tcdsl.polyhedra.boxes import box
from tcdsl.polyhedra.writes import places_values, read_cell
from tcdsl.simplification.sparsity.sparse_reads import source

__all__ = ["with_stores_united"]

# How many stretches with the same value are compared with a new store. More would take a long chain quadratic time.
_MOST_STRETCHES = 4


@dataclass(slots=True)
class _Stretch:
    """Stores that became one: ``value`` at each of ``cells``; ``first`` is the statement that it began with."""

    first: Statement
    cells: isl.Set
    value: Expr
    grown: bool = False


def with_stores_united(program: Program) -> Program:
    """``program`` with chains of sums into one tensor shortened where they add the same to different cells."""
    chains = [chain for chain in _chains(program) if len(chain) > 1]
    if not chains:
        return program
    gone: set[str] = set()
    changed: dict[str, list[Statement]] = {}
    for chain in chains:
        united = _united(chain, program.tensor(chain[-1].target.tensor))
        if len(united) < len(chain):
            gone.update(statement.target.tensor for statement in chain)
            changed[chain[-1].target.tensor] = united
    if not changed:
        return program
    statements: list[Statement] = []
    for statement in program.statements:
        name = statement.target.tensor
        statements.extend(changed.get(name, () if name in gone else (statement,)))
    return with_statements(program, statements)


def _chains(program: Program) -> Iterator[list[Statement]]:
    """Statements that add to one tensor after another, each version read by the next statement only."""
    uses: dict[str, int] = dict.fromkeys((*program.outputs, *(new for _, new in program.updates)), 2)
    for statement in program.statements:
        for name in tensors_read(statement):
            uses[name] = uses.get(name, 0) + 1
    open_chains: dict[str, list[Statement]] = {}
    for statement in program.statements:
        start = statement.start
        chain = open_chains.pop(start.tensor, None) if isinstance(start, Keep) else None
        if not places_values(statement):
            if chain is not None:
                yield chain
            continue
        if chain is None or statement.accumulate == "assign" or uses.get(chain[-1].target.tensor, 0) > 1:
            if chain is not None:
                yield chain
            chain = []
        if not chain and statement.accumulate == "assign" and not isinstance(start, Neutral):
            continue
        chain.append(statement)
        open_chains[statement.target.tensor] = chain
    yield from open_chains.values()


def _united(chain: list[Statement], tensor: Tensor) -> list[Statement]:
    """The chain with neighbours joined, making the same last tensor."""
    names = tuple(f"z{k}" for k in range(len(tensor.shape)))
    cells = box(names, tensor.shape)
    dtype = compute_dtype(tensor.dtype)
    stretches: list[_Stretch] = []
    by_value: dict[tuple[bool, Expr], list[_Stretch]] = {}
    for statement in chain:
        found = source(statement, cells, read_cell(tensor, names, dtype))
        if found is None or any(read.tensor == tensor.name for read in reads(statement.value)):
            return chain
        alike = by_value.setdefault((statement.accumulate == "subtract", found.value), [])
        for stretch in alike[-_MOST_STRETCHES:]:
            union = stretch.cells.union(found.points).coalesce()
            if union.n_basic_set() == 1 and stretch.cells.is_disjoint(found.points):
                stretch.cells, stretch.grown = union, True
                break
        else:
            stretches.append(_Stretch(statement, found.points, found.value))
            alike.append(stretches[-1])
    return _as_chain(stretches, chain, names)


def _as_chain(stretches: list[_Stretch], chain: list[Statement], names: tuple[str, ...]) -> list[Statement]:
    result: list[Statement] = []
    for position, stretch in enumerate(stretches):
        last = position == len(stretches) - 1
        name = chain[-1].target.tensor if last else chain[position].target.tensor
        first = stretch.first
        start = chain[0].start if position == 0 else Keep(result[-1].target.tensor)
        accumulate = first.accumulate
        if accumulate == "assign" and position > 0:
            accumulate = "add"
        elif accumulate == "add" and position == 0 and isinstance(start, Neutral):
            accumulate = "assign"
        made = replace(first, target=replace(first.target, tensor=name), start=start, accumulate=accumulate)
        if stretch.grown:
            target = Access(name, tuple(index(each) for each in names), first.target.span)
            made = replace(made, target=target, value=stretch.value, domain=Domain.from_set(stretch.cells))
        result.append(made)
    return result
