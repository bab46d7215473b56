"""Boxes: all cells of a tensor, all index points below given extents, what is around other points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import lru_cache, reduce

import islpy as isl

from tcdsl.ir.build import apply, integer
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, IndexValue, SizeValue, is_affine_index
from tcdsl.ir.program import Access, Neutral, Statement, Tensor
from tcdsl.polyhedra.affine import NotAffine, expression_of, function_of, holds, universe
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.spaces import arranged, has_end

__all__ = ["all_cells", "bounds", "box", "box_of", "ends_of", "inside_extent", "is_over_box", "over_box", "sides_of"]


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


def bounds(points: isl.Set, count: int) -> tuple[Sequence[Expr], Sequence[Expr]]:
    """A box around ``points``: its lowest corner and its extents, 0 where there are no points.

    Not always the smallest one: the exact ends of ``(i + j) % 2 == 0 and 2*i + j < N`` have a piece for every remainder
    of every size.
    """
    if points.is_empty():
        return [integer(0)] * count, [integer(0)] * count
    points = points.remove_divs()
    if points.n_basic_set() > 1:
        # The exact ends of a union have cases for all sizes at which one part is empty, or shorter than another.
        hull = points.simple_hull().to_set()
        points = hull if hull.is_bounded() else points
    lows: list[Expr] = []
    extents: list[Expr] = []
    for k in range(count):
        low, high = points.dim_min(k), points.dim_max(k)
        extent = expression_of(high.sub(low))
        lows.append(expression_of(low))
        if not is_affine_index(lows[-1]):
            lows[-1] = _below(points, k)
            extent = apply("sub", expression_of(high), lows[-1])
        extent = normalized(apply("add", extent, integer(1)))
        # Sizes themselves are never negative.
        extents.append(extent if isinstance(extent, SizeValue) else apply("max", extent, integer(0)))
    return lows, extents


def _below(points: isl.Set, k: int) -> Expr:
    # A low end in pieces cannot stand in an index. Below it are the least of all calls, and the least of the pieces.
    least = points.dim_min_val(k)
    if least.is_int():
        return integer(least.to_python())
    pieces = [expression_of(isl.PwAff.from_aff(piece)) for _, piece in points.dim_min(k).get_pieces()]
    return reduce(lambda one, other: apply("min", one, other), pieces)


def ends_of(line: isl.Set) -> tuple[Expr, Expr] | None:
    """Where the variable of ``line`` begins, and how many values it has, if isl can say it."""
    if not has_end(line, 0, largest=False) or not has_end(line, 0, largest=True):
        return None
    try:
        known = line.params()
        first, last = (expression_of(end.coalesce(), known) for end in (line.dim_min(0), line.dim_max(0)))
    except NotAffine:
        return None
    length = normalized(apply("add", apply("sub", last, first), integer(1)))
    if not isinstance(length, SizeValue) and not holds(apply("ge", length, integer(0)), line.params()):
        # Of two spans without values the lengths' product could be positive.
        length = apply("max", length, integer(0))
    return normalized(first), length


def sides_of(variables: Sequence[str], points: isl.Set, phases: Set[str]) -> dict[str, isl.Set]:
    """The values of each variable in a box around ``points``: what holds of it alone, if that bounds it."""
    sides: dict[str, isl.Set] = {}
    for name in variables:
        kept = tuple(each for each in variables if each == name or each in phases)
        sides[name] = arranged(points, kept)
        side = isl.Set.empty(sides[name].get_space())
        for piece in points.get_basic_sets():
            for k, each in enumerate(variables):
                if each not in kept:
                    piece = piece.drop_constraints_involving_dims(isl.dim_type.set, k, 1)
            side = side.union(arranged(isl.Set.from_basic_set(piece), kept)).coalesce()
        line = arranged(side, (name,))
        if has_end(line, 0, largest=False) and has_end(line, 0, largest=True):
            sides[name] = side
    return sides


def box_of(variables: Sequence[str], sides: Mapping[str, isl.Set]) -> isl.Set:
    """The points whose variables have the values of ``sides``."""
    whole = arranged(sides[variables[0]], tuple(variables))
    for name in variables[1:]:
        whole = whole.intersect(arranged(sides[name], tuple(variables)))
    return whole
