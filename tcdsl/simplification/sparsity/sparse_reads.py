"""Reads of tensors, replaced by the values that were written there, where that makes work disappear.

Two cases: the tensor is sparse (a diagonal, single cells), so that storing it costs more than its values; or all who
read it read a thin part of it (a diagonal, a row), so that most of its cells are never needed.

``A[i, i] = x[i]`` read as ``A[j, j]`` is ``x[j]``: with w the map from points to the cells they write and r the map
from points to the cells they read, the value comes from the point ``w^-1(r(v))``. Where no point writes the cell, it
holds its start. A tensor that is only read in this way is never stored, so a diagonal costs N and not N squared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce

import islpy as isl

from tcdsl.ir.build import apply, index, neutral_constant
from tcdsl.ir.domain import text_of
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import (
    Apply,
    Constant,
    Expr,
    Read,
    is_affine_index,
    is_plain_read,
    reads,
    substitute,
    transform,
    walk,
)
from tcdsl.ir.program import Fill, Keep, Program, Statement, reads_beside_value
from tcdsl.polyhedra.affine import NotAffine, expression_of, expression_of_condition
from tcdsl.polyhedra.boxes import all_cells
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.polyhedra.spaces import dimension_names, named
from tcdsl.polyhedra.writes import cell_map, cells_read, places_values
from tcdsl.recent import Recent
from tcdsl.simplification.expressions.tape import shared

__all__ = ["WrittenPoints", "has_trivial_value", "is_sparse", "operations", "source", "with_thin_reads_composed"]

# Operations that may be repeated at every read.
_MOST_OPERATIONS = 2


@dataclass(frozen=True, slots=True)
class WrittenPoints:
    """The points of a reader whose cell a statement writes, and the value written there."""

    points: isl.Set
    value: Expr


def is_sparse(statement: Statement, rank: int) -> bool:
    """Whether a statement writes a thin part of its target, of ``rank`` axes, by values that cost next to nothing."""
    return len(statement.domain.variables) < rank and has_trivial_value(statement) and places_values(statement)


def has_trivial_value(statement: Statement) -> bool:
    """Whether the value of a statement may be computed again wherever it is read."""
    return operations(statement.value) <= _MOST_OPERATIONS


@lru_cache(maxsize=4096)
def operations(value: Expr) -> int:
    """The number of operations in ``value``, index arithmetic aside."""
    return sum(isinstance(node, Apply) for node in walk(value) if not is_affine_index(node))


def source(writer: Statement, points: isl.Set, read: Read) -> WrittenPoints | None:
    """What ``writer``, whose target is affine and one-to-one, put into the cells that ``read`` finds at ``points``.

    ``None`` if isl cannot say: an index is not affine, or the read has a boundary.
    """
    if not is_plain_read(read):
        return None
    key = writer.domain, writer.target.indices, text_of(points), read.indices
    found = _SOURCES.get(key)
    if found is None:
        found = _SOURCES[key] = _source(writer, points, read)
    if not found:
        return None
    written, values = found
    # No values, where no point writes such a cell.
    step: dict[Expr, Expr] = {index(name): value for name, value in zip(writer.domain.variables, values, strict=False)}
    value = substitute(writer.value, step)
    return WrittenPoints(written, normalized(value) if step else value)


# The points whose cells are written, and by which; nothing where isl cannot say. Equal layers ask the same.
_Source = tuple[isl.Set, Sequence[Expr]] | tuple[()]
_SOURCES: Recent[object, _Source] = Recent(1024)


def _source(writer: Statement, points: isl.Set, read: Read) -> _Source:
    try:
        reads = cell_map(points, read.indices)
        writes = cell_map(writer.domain.set, writer.target.indices)
        between = reads.apply_range(writes.reverse())
        variables = dimension_names(points)
        for k, name in enumerate(variables):
            between = between.set_dim_name(isl.dim_type.in_, k, name)
        if between.is_empty():
            return points.subtract(points), ()
        values = _functions(between, len(writer.domain.variables))
    except NotAffine:
        return ()
    return named(between.domain(), variables), values


def _functions(between: isl.Map, count: int) -> Sequence[Expr]:
    found = isl.PwMultiAff.from_map(between)
    return [normalized(expression_of(found.get_pw_aff(k))) for k in range(count)]


# A longer chain of writes stays in memory: each read would test for every one of them.
_MOST_WRITES = 32
# A tensor that is read in more places stays, unless it is sparse: its value would be written out in all of them.
_MOST_READS = 4
# A longer value stays in memory too: each addition to a part of the cells writes out twice what was there before.
_MOST_WRITTEN_OUT = 256


def with_thin_reads_composed(program: Program) -> Program:
    """``program`` with ``x[j]`` for ``A[j, j]`` where ``A[i, i] = x[i]`` is all that A holds, or all that is read."""
    makers = {statement.target.tensor: statement for statement in program.statements}
    results = {*program.outputs, *(new for _, new in program.updates)}
    thin = _read_thinly(program)
    thin = {name: cells for name, cells in thin.items() if name in makers and _pays(program, makers[name], cells)}
    read = {each.tensor for statement in program.statements for each in reads(statement.value)}
    chains = {
        name: chain
        for name in makers
        if name in read
        and name not in results
        and (chain := _chain(program, makers, name, name in thin)) is not None
        and (name in thin or not _covers(program, chain))
    }
    if not chains:
        return program
    context = size_context(program)

    def composed(statement: Statement) -> Statement:
        if not any(read.tensor in chains for read in reads(statement.value)):
            return statement
        points = statement.domain.set.intersect_params(context)

        def rule(node: Expr) -> Expr:
            if not isinstance(node, Read) or node.tensor not in chains:
                return node
            found = _value(program, chains[node.tensor], points, node)
            return node if found is None else found

        value = transform(statement.value, rule)
        return statement if value == statement.value else replace(statement, value=shared(value))

    return replace(program, statements=tuple(map(composed, program.statements)))


def _pays(program: Program, maker: Statement, cells: isl.Set) -> bool:
    """Whether to compute the cells of a tensor where they are read: not if these are all, and take work."""
    if not operations(maker.value):
        return True
    tensor = program.tensor(maker.target.tensor)
    context = size_context(program)
    return not all_cells(tensor, context).is_subset(cells)


def _read_thinly(program: Program) -> dict[str, isl.Set]:
    """The tensors whose readers all run over fewer variables than the tensor has axes, and the cells that they read."""
    found: dict[str, list[tuple[isl.Set, Read]]] = {}
    excluded: set[str] = set()
    ranks = {tensor.name: len(tensor.shape) for tensor in program.tensors}
    for statement in program.statements:
        if isinstance(statement.start, Keep):
            excluded.add(statement.start.tensor)
        excluded.update(read.tensor for read in reads_beside_value(statement))
        for read in reads(statement.value):
            if len(statement.domain.variables) >= ranks.get(read.tensor, 0) or not is_plain_read(read):
                excluded.add(read.tensor)
            else:
                found.setdefault(read.tensor, []).append((statement.domain.set, read))
    few = {name: places for name, places in found.items() if len(places) <= _MOST_READS and name not in excluded}
    return {name: cells for name, places in few.items() if (cells := _cells(places)) is not None}


def _cells(places: Sequence[tuple[isl.Set, Read]]) -> isl.Set | None:
    images = [image for points, read in places if (image := cells_read(points, read)) is not None]
    return reduce(isl.Set.union, images) if len(images) == len(places) else None


def _chain(
    program: Program, makers: Mapping[str, Statement], name: str, read_thinly: bool
) -> tuple[Statement, ...] | None:
    """The statements that made a tensor, first to last, if its reads may be replaced; ``None`` if not."""
    chain: list[Statement] = []
    while True:
        statement = makers.get(name)
        if statement is None or len(chain) == _MOST_WRITES:
            return None
        tensor = program.tensor(name)
        fits = places_values(statement) if read_thinly else is_sparse(statement, len(tensor.shape))
        if not fits or tensor.dtype != compute_dtype(tensor.dtype):
            return None
        chain.append(statement)
        match statement.start:
            case Keep(tensor=earlier):
                name = earlier
            case Fill(value=value) if not isinstance(value, Constant):
                return None
            case _:
                return tuple(reversed(chain))


def _covers(program: Program, chain: Sequence[Statement]) -> bool:
    """Whether statements write all cells between them: then storing them costs no more than their values."""
    left = all_cells(program.tensor(chain[0].target.tensor), size_context(program))
    for statement in chain:
        left = left.subtract(cell_map(statement.domain.set, statement.target.indices).range().reset_tuple_id())
    return bool(left.is_empty())


def _value(program: Program, chain: tuple[Statement, ...], points: isl.Set, read: Read) -> Expr | None:
    """What a read finds: the last store to its cell and all that was added later."""
    first = chain[0]
    dtype = compute_dtype(program.tensor(read.tensor).dtype)
    current: Expr = neutral_constant(first.accumulate, dtype)
    if isinstance(first.start, Fill):
        current = first.start.value
    for writer in chain:
        found = source(writer, points, read)
        if found is None:
            return None
        written = found.points.intersect(points)
        if written.is_empty():
            continue
        value = found.value
        nothing = isinstance(current, Constant) and current.value == 0
        if writer.accumulate == "subtract":
            value = apply("neg", value) if nothing else apply("sub", current, value)
        elif writer.accumulate == "add" and not nothing:
            value = apply("add", current, value)
        if points.is_subset(written):
            current = value
        else:
            current = apply("where", expression_of_condition(written.gist(points)), value, current)
        if operations(current) > _MOST_WRITTEN_OUT:
            return None
    return current
