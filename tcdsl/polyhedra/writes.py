"""What a statement writes: its cells as isl maps, and reads of other tensors at the cell that a point writes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import islpy as isl

from tcdsl.ir.build import apply, in_range, index, plain_read
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Boundary, Expr, Read, is_affine_index, is_plain_read
from tcdsl.ir.program import Statement, Tensor
from tcdsl.polyhedra.affine import NotAffine, function_of
from tcdsl.polyhedra.scatter_to_gather import target_variables
from tcdsl.polyhedra.spaces import dimension_names

__all__ = [
    "affine_target",
    "both",
    "cell_map",
    "cells_read",
    "places_terms",
    "places_values",
    "reached",
    "read_at",
    "read_cell",
    "writes_each_cell_once",
]


def affine_target(statement: Statement) -> bool:
    """Whether isl can speak of every index of the target."""
    return _are_affine(statement.target.indices, statement.domain)


@lru_cache(maxsize=4096)
def _are_affine(indices: tuple[Expr, ...], domain: Domain) -> bool:
    try:
        for axis in indices:
            if not is_affine_index(axis):
                return False
            function_of(axis, domain.set)
    except NotAffine:
        return False
    return True


def writes_each_cell_once(statement: Statement) -> bool:
    """Whether no two points write one cell, for any sizes; a run-time check (``unique``) counts as proof.

    Of a plain store whose target isl cannot speak of, such as ``C[i * P + p]``, range inference has shown it before, or
    asserts it at the call: the language has no other plain stores.
    """
    if statement.unique or target_variables(statement) == statement.domain.variables:
        return True
    of_variables = all(map(is_affine_index, statement.target.indices))
    return statement.accumulate == "assign" and of_variables and not affine_target(statement)


def cell_map(points: isl.Set, indices: Sequence[Expr]) -> isl.Map:
    """The cell that each of ``points`` accesses: ``{ [i, k] -> [i + k] }``. The indices are affine."""
    # Sets are equal whatever their dimensions are called.
    return _cell_map(points, tuple(dimension_names(points)), tuple(indices))


@lru_cache(maxsize=1024)
def _cell_map(points: isl.Set, _: tuple[str, ...], indices: tuple[Expr, ...]) -> isl.Map:
    plain = points.reset_tuple_id()
    cells = isl.Map.from_domain(plain)
    for axis in indices:
        column = isl.Map.from_pw_aff(function_of(axis, points)).reset_tuple_id(isl.dim_type.in_)
        cells = cells.flat_range_product(column.intersect_domain(plain))
    return cells


def cells_read(points: isl.Set, read: Read) -> isl.Set | None:
    """The cells that ``read`` finds at ``points``, if isl can say it: it has no boundaries."""
    try:
        return cell_map(points, read.indices).range().reset_tuple_id() if is_plain_read(read) else None
    except NotAffine:
        return None


def both(first: Expr | None, second: Expr | None) -> Expr | None:
    """The conjunction of two optional conditions, the first one evaluated first."""
    if first is None or second is None:
        return second if first is None else first
    return apply("and_", first, second)


def reached(statement: Statement, tensor: Tensor) -> Expr | None:
    """The condition of a statement, with what ``oob="skip"`` adds: the data indices of the target are in range."""
    condition = statement.condition
    if statement.oob != "skip":
        return condition
    for axis, extent in zip(statement.target.indices, tensor.shape, strict=True):
        if not is_affine_index(axis):
            condition = both(condition, in_range(axis, extent))
    return condition


def read_at(statement: Statement, tensor: Tensor, dtype: str) -> Read:
    """``tensor``, of the target's shape, read at the cell that a point of the statement writes."""
    data = {"check": Boundary.CHECK, "clamp": Boundary.CLAMP, "skip": Boundary.SKIP}[statement.oob]
    boundaries = tuple(Boundary.SKIP if is_affine_index(axis) else data for axis in statement.target.indices)
    return Read(tensor.name, statement.target.indices, boundaries, dtype)


def places_terms(statement: Statement) -> bool:
    """Whether a statement stores, adds or subtracts values, whatever the data are, at cells that isl can speak of."""
    return (
        statement.accumulate in ("assign", "add", "subtract")
        and statement.condition is None
        and affine_target(statement)
    )


def places_values(statement: Statement) -> bool:
    """Whether a statement stores, adds or subtracts one value at each of some cells."""
    return places_terms(statement) and writes_each_cell_once(statement)


def read_cell(tensor: Tensor, variables: Sequence[str], dtype: str) -> Read:
    """``tensor[z0, z1, ...]``."""
    return plain_read(tensor.name, map(index, variables), dtype)
