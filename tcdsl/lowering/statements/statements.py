"""Statements, rewritten and asked what they touch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

import islpy as isl

from tcdsl.ir.build import index
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Boundary, Constant, Expr, Read, is_affine_index, reads, substitute
from tcdsl.ir.fresh_names import FreshNames
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Statement, Tensor, map_statement
from tcdsl.polyhedra.boxes import box

__all__ = [
    "can_fail",
    "copy_statement",
    "renamed_statement",
    "statement_expressions",
    "statement_reads",
]


def statement_expressions(statement: Statement) -> Iterator[Expr]:
    """Every expression of ``statement``."""
    yield from statement.target.indices
    yield statement.value
    if statement.condition is not None:
        yield statement.condition
    if isinstance(statement.start, Fill):
        yield statement.start.value


def statement_reads(statement: Statement) -> Iterator[Read]:
    """Every read of ``statement``, except of the version that it starts from."""
    for expr in statement_expressions(statement):
        yield from reads(expr)


def can_fail(statement: Statement, tensors: Mapping[str, Tensor] = MappingProxyType({})) -> bool:
    """Whether the statement may stop the program: data indices that are checked, cells that must be unique.

    Boundaries that move an index fail on an axis without cells, which one of ``tensors`` with a constant extent is not.
    """
    if statement.unique:
        return True

    def empty(name: str, axis: int) -> bool:
        extent = tensors[name].shape[axis] if name in tensors else None
        return not (isinstance(extent, Constant) and extent.value)

    target = statement.target
    data = [axis for axis, place in enumerate(target.indices) if not is_affine_index(place)]
    if data and statement.oob == "check":
        return True
    if statement.oob != "skip" and any(empty(target.tensor, axis) for axis in data):
        return True
    # Where there is a point the target has cells.
    filled = statement.start.tensor if not data and isinstance(statement.start, Keep) else None
    harmless = (Boundary.SKIP, Boundary.FILL)
    return any(
        boundary is Boundary.CHECK or (boundary not in harmless and read.tensor != filled and empty(read.tensor, axis))
        for read in statement_reads(statement)
        for axis, boundary in enumerate(read.boundaries)
    )


def renamed_statement(statement: Statement, wanted: Mapping[str, str]) -> Statement:
    """``statement`` with its index variables renamed."""
    replacements: dict[Expr, Expr] = {index(old): index(new) for old, new in wanted.items() if old != new}
    if not replacements:
        return statement
    points = statement.domain.set
    for k, name in enumerate(statement.domain.variables):
        points = points.set_dim_name(isl.dim_type.set, k, wanted[name])
    statement = map_statement(statement, lambda expr: substitute(expr, replacements))
    return replace(statement, domain=Domain.from_set(points))


def copy_statement(tensor: Tensor, name: str, names: FreshNames) -> Statement:
    """``name[c] = tensor[c]`` for all cells."""
    variables = tuple(names.fresh("c") for _ in tensor.shape)
    cell = tuple(index(variable) for variable in variables)
    value = Read(tensor.name, cell, (Boundary.SKIP,) * len(cell), compute_dtype(tensor.dtype))
    domain = Domain.from_set(box(variables, tensor.shape))
    return Statement(Access(name, cell), "assign", Neutral(), value, domain, span=tensor.span)
