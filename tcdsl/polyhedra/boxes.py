"""Boxes: all cells of a tensor, or all index points below given extents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import islpy as isl

from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, IndexValue
from tcdsl.ir.program import Access, Neutral, Statement, Tensor
from tcdsl.polyhedra.affine import function_of, universe

__all__ = ["all_cells", "box", "inside_extent", "is_over_box", "over_box"]


def box(variables: Sequence[str], extents: Sequence[Expr], among: isl.Set | None = None) -> isl.Set:
    """The points with ``0 <= variable < extent`` for each of ``variables``; `NotAffine` where isl cannot say it.

    Other dimensions than ``variables`` are those of the space of ``among``, and unbounded.
    """
    if among is None:
        return _box(tuple(variables), tuple(extents))
    return _bounded(isl.Set.universe(among.get_space()), variables, extents)


@lru_cache(maxsize=4096)
def _box(variables: tuple[str, ...], extents: tuple[Expr, ...]) -> isl.Set:
    # Programs have few shapes, and every pass asks for their boxes.
    return _bounded(universe(variables, ()), variables, extents)


def _bounded(points: isl.Set, variables: Sequence[str], extents: Sequence[Expr]) -> isl.Set:
    for name, extent in zip(variables, extents, strict=True):
        points = points.intersect(inside_extent(function_of(IndexValue(name), points), extent, points))
    return points


def all_cells(tensor: Tensor, context: isl.Set) -> isl.Set:
    """Every cell of a tensor, for the sizes of ``context``; the dimensions have no names that mean anything."""
    names = [f"z{k}" for k in range(len(tensor.shape))]
    return box(names, tensor.shape).intersect_params(context).reset_tuple_id()


def inside_extent(position: isl.PwAff, extent: Expr, points: isl.Set) -> isl.Set:
    """Where an index, a function on the space of ``points``, lies in ``[0, extent)``."""
    return position.nonneg_set().intersect(position.lt_set(function_of(extent, points, any_pieces=True)))


def over_box(
    target: str, cells: Sequence[str], extents: Sequence[Expr], value: Expr, accumulate: str = "assign"
) -> Statement:
    """``target[cells] = value`` for all cells of a tensor with these extents."""
    access = Access(target, tuple(map(IndexValue, cells)))
    return Statement(access, accumulate, Neutral(), value, Domain.from_set(box(cells, extents)))


def is_over_box(statement: Statement, extents: Sequence[Expr]) -> bool:
    """Whether a statement has a point for every cell of a target with these extents, as `over_box` makes them."""
    variables = statement.domain.variables
    if statement.condition is not None or statement.target.indices != tuple(map(IndexValue, variables)):
        return False
    return _is_box(statement.domain, tuple(extents))


@lru_cache(maxsize=4096)
def _is_box(domain: Domain, extents: tuple[Expr, ...]) -> bool:
    return bool(domain.set.is_equal(box(domain.variables, extents)))
