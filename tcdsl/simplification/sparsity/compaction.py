"""Sparse tensors whose values take work, kept in dense ones of lower rank: ``A[i, i] = exp(x[i])`` by way of a vector.

``A_cells[i] = exp(x[i])`` and ``A[i, i] = A_cells[i]`` say the same, and whoever reads A may read ``A_cells`` instead,
once for each point, without repeating the work (`tcdsl.simplification.sparsity.sparse_reads`). So A costs N and not N
squared, whatever its values are and however often it is read. Sums over further variables go into the vector too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import islpy as isl

from tcdsl.ir.build import index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Constant, Expr, IndexValue, index_variables, is_plain_read, reads
from tcdsl.ir.fresh_names import names_of
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Program, Statement, Tensor, reads_beside_value
from tcdsl.polyhedra.boxes import all_cells
from tcdsl.polyhedra.size_facts import size_context
from tcdsl.polyhedra.spaces import arranged
from tcdsl.polyhedra.writes import affine_target, cell_map, places_terms, read_cell, writes_each_cell_once
from tcdsl.simplification.sparsity.sparse_reads import has_trivial_value

__all__ = ["compacted", "with_sparse_tensors_compacted"]


def with_sparse_tensors_compacted(program: Program) -> Program:
    """``program`` with a tensor of its own for the values of every sparse tensor that all readers read by position."""
    candidates = {
        statement.target.tensor
        for statement in program.statements
        if _is_thin(statement, program.tensor(statement.target.tensor))
    }
    if candidates:
        candidates &= _read_by_position(program)
    if not candidates:
        return program
    context = size_context(program)
    candidates -= _written_everywhere(program, candidates, context)
    names = names_of(program)
    made: dict[str, Tensor] = {}
    statements: list[Statement] = []

    def declare(tensor: Tensor, shape: tuple[Expr, ...]) -> Tensor:
        return made.setdefault(tensor.name, Tensor(names.fresh(f"{tensor.name}_cells"), tensor.dtype, shape))

    for statement in program.statements:
        found = None
        if statement.target.tensor in candidates:
            tensor = program.tensor(statement.target.tensor)
            found = compacted(statement, tensor, context, partial(declare, tensor))
        statements.extend((statement,) if found is None else found)
    if not made:
        return program
    tensors: list[Tensor] = []
    for tensor in program.tensors:
        tensors.extend((made[tensor.name], tensor) if tensor.name in made else (tensor,))
    return replace(program, tensors=tuple(tensors), statements=tuple(statements))


def compacted(
    statement: Statement, tensor: Tensor, context: isl.Set, declare: Callable[[tuple[Expr, ...]], Tensor]
) -> tuple[Statement, Statement] | None:
    """The statement that fills a tensor of lower rank, and the one that puts its cells where they belong.

    ``None`` if that would not help: the target is not sparse, or its values are trivial. ``declare`` makes the tensor,
    given its shape.
    """
    placement = _placement(statement) if _is_thin(statement, tensor) else None
    if placement is None:
        return None
    written = cell_map(placement.domain.set, placement.target.indices).range().intersect_params(context)
    extents = _extents(placement, tensor)
    if extents is None or all_cells(tensor, context).is_subset(written.reset_tuple_id()):
        return None
    compact = declare(extents)
    return _values(statement, placement, compact), _placed(placement, compact)


def _written_everywhere(program: Program, candidates: set[str], context: isl.Set) -> set[str]:
    """Those of the candidates whose versions write every cell between them: they are not sparse."""
    family: dict[str, str] = {}
    written: dict[str, isl.Set] = {}
    for statement in program.statements:
        name, start = statement.target.tensor, statement.start
        first = family[name] = family.get(start.tensor, name) if isinstance(start, Keep) else name
        if affine_target(statement):
            cells = cell_map(statement.domain.set, statement.target.indices).range().reset_tuple_id()
            written[first] = written[first].union(cells) if first in written else cells
    return {name for name in candidates if all_cells(program.tensor(name), context).is_subset(written[family[name]])}


def _is_thin(statement: Statement, tensor: Tensor) -> bool:
    # Whether the target's cells have fewer variables than the target has axes, and the values take work.
    mentioned: set[str] = set().union(*map(index_variables, statement.target.indices))
    return (
        len(mentioned) < len(tensor.shape)
        and tensor.dtype == compute_dtype(tensor.dtype)
        and not (len(mentioned) == len(statement.domain.variables) and has_trivial_value(statement))
        and places_terms(statement)
    )


def _placement(statement: Statement) -> Statement | None:
    """The statement over the variables of its target only, if these write each cell once."""
    mentioned: set[str] = set().union(*map(index_variables, statement.target.indices))
    own = tuple(name for name in statement.domain.variables if name in mentioned)
    if own != statement.domain.variables:
        if statement.accumulate == "assign":
            return None
        statement = replace(statement, domain=Domain.from_set(arranged(statement.domain.set, own)))
    return statement if writes_each_cell_once(statement) else None


def _extents(placement: Statement, tensor: Tensor) -> tuple[Expr, ...] | None:
    # Those of the axes that the variables index bare.
    axes = zip(placement.target.indices, tensor.shape, strict=True)
    found = {axis.name: extent for axis, extent in axes if isinstance(axis, IndexValue)}
    if len(found) < len(placement.domain.variables):
        return None
    return tuple(found[name] for name in placement.domain.variables)


def _values(statement: Statement, placement: Statement, compact: Tensor) -> Statement:
    own = placement.domain.variables
    target = Access(compact.name, tuple(index(name) for name in own), statement.target.span)
    accumulate = "assign" if own == statement.domain.variables else "add"
    return replace(statement, target=target, accumulate=accumulate, start=Neutral(), unique=False, label="")


def _placed(placement: Statement, compact: Tensor) -> Statement:
    return replace(placement, value=read_cell(compact, placement.domain.variables, compact.dtype))


def _read_by_position(program: Program) -> set[str]:
    """The tensors that are no results and whose every read, through later versions too, is an affine one in a value."""
    closed = {*program.outputs, *(new for _, new in program.updates)}
    kept: dict[str, list[str]] = {}
    for statement in program.statements:
        match statement.start:
            case Fill(value=value):
                if not isinstance(value, Constant):
                    closed.add(statement.target.tensor)
            case Keep(tensor=tensor):
                kept.setdefault(statement.target.tensor, []).append(tensor)
                # Composition looks through such a later version of a sparse tensor.
                if not places_terms(statement):
                    closed.add(tensor)
        closed.update(read.tensor for read in reads_beside_value(statement))
        closed.update(read.tensor for read in reads(statement.value) if not is_plain_read(read))
    return {statement.target.tensor for statement in program.statements} - _with_earlier_versions(closed, kept)


def _with_earlier_versions(closed: set[str], kept: Mapping[str, list[str]]) -> set[str]:
    waiting = list(closed)
    while waiting:
        for earlier in kept.get(waiting.pop(), ()):
            if earlier not in closed:
                closed.add(earlier)
                waiting.append(earlier)
    return closed
