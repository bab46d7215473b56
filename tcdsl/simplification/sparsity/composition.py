"""Reads of sparse tensors, composed with the writes that made them.

``A[i, i] = x[i]`` read as ``A[j, j]`` is ``x[j]``: with w the map from points to the cells they write and r the map
from points to the cells they read, the value comes from the point ``w^-1(r(v))``. Where no point writes the cell, it
holds its start. A tensor that is only read in this way is never stored, so a diagonal costs N and not N squared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from tcdsl.ir.build import index
from tcdsl.ir.expressions import Apply, Expr, Read, is_affine_index, is_plain_read, substitute, walk
from tcdsl.ir.program import Statement
from tcdsl.polyhedra.affine import NotAffine, expression_of
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.spaces import dimension_names, named
from tcdsl.polyhedra.writes import cell_map, places_values

__all__ = ["WrittenPoints", "has_trivial_value", "is_sparse", "operations", "source"]

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


def operations(value: Expr) -> int:
    """The number of operations in ``value``, index arithmetic aside."""
    return sum(isinstance(node, Apply) for node in walk(value) if not is_affine_index(node))


def source(writer: Statement, points: isl.Set, read: Read) -> WrittenPoints | None:
    """What ``writer``, whose target is affine and one-to-one, put into the cells that ``read`` finds at ``points``.

    ``None`` if isl cannot say: an index is not affine, or the read has a boundary.
    """
    if not is_plain_read(read):
        return None
    try:
        reads = cell_map(points, read.indices)
        writes = cell_map(writer.domain.set, writer.target.indices)
        between = reads.apply_range(writes.reverse())
        variables = dimension_names(points)
        for k, name in enumerate(variables):
            between = between.set_dim_name(isl.dim_type.in_, k, name)
        if between.is_empty():
            return WrittenPoints(points.subtract(points), writer.value)
        values = _functions(between, len(writer.domain.variables))
    except NotAffine:
        return None
    step: dict[Expr, Expr] = {index(name): value for name, value in zip(writer.domain.variables, values, strict=True)}
    value = substitute(writer.value, step)
    return WrittenPoints(named(between.domain(), variables), normalized(value) if step else value)


def _functions(between: isl.Map, count: int) -> Sequence[Expr]:
    found = isl.PwMultiAff.from_map(between)
    return [normalized(expression_of(found.get_pw_aff(k))) for k in range(count)]
