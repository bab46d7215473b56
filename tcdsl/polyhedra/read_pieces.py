"""Where contributions go: the cells behind a read, as pieces on which every index is one affine expression.

A read through ``clamp`` finds the first cell, the last one or its own: three pieces, and the sum over all positions
that read a cell is the sum over the pieces. Periodic boundaries are pieces for one period on either side; what lies
further out (shifts of more than a whole extent) keeps an index that is computed at run time. So does all that is out of
range on some axis where boundaries on several axes would multiply the pieces: they are borders, of few points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import islpy as isl

from tcdsl.ir.boundaries import moved_index
from tcdsl.ir.build import apply, cast, integer
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import (
    Boundary,
    Expr,
    index_variables,
    is_affine_index,
)
from tcdsl.polyhedra.affine import NotAffine, condition_set, function_of, universe
from tcdsl.polyhedra.boxes import inside_extent
from tcdsl.polyhedra.disjunctions import narrowed
from tcdsl.polyhedra.linear import normalized

__all__ = [
    "Piece",
    "is_affine_condition",
    "places",
    "remapped",
    "restrict",
]

# Pieces of one read beyond which all but the interior are one.
_MOST_PLACES = 6


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a domain and the cell that each of its points reads. ``total``: every index is affine and in range."""

    points: isl.Set
    indices: tuple[Expr, ...]
    total: bool


def restrict(
    points: isl.Set, conditions: Sequence[Expr], conjuncts: Callable[[Expr], Sequence[Expr]]
) -> tuple[isl.Set, tuple[Expr, ...]]:
    """``points`` where the affine ones of ``conditions`` hold, as far as these are few pieces, and the others.

    ``conjuncts`` gives the parts of a condition.
    """
    parts = [conjuncts(condition) for condition in conditions]
    affine = [part for each in parts for part in each if is_affine_condition(part)]
    points, tests = narrowed(points, affine, lambda part: condition_set(part, points))
    said = set(affine) - set(tests)
    left: list[Expr] = []
    for condition, each in zip(conditions, parts, strict=True):
        left.extend([part for part in each if part not in said] if not said.isdisjoint(each) else [condition])
    # Tests that read nothing come first.
    return points, tuple(sorted(left, key=lambda test: test not in tests))


def is_affine_condition(condition: Expr) -> bool:
    """Whether isl can speak of a condition."""
    # Asked on a space without dimensions, where only the form matters.
    probe = universe(sorted(index_variables(condition)), ())
    try:
        condition_set(condition, probe)
    except NotAffine:
        return False
    return True


def places(
    indices: Sequence[Expr],
    boundaries: Sequence[Boundary],
    extents: Sequence[Expr],
    points: isl.Set,
    context: isl.Set,
) -> list[Piece]:
    """The cells of a tensor of shape ``extents`` that a read at ``points`` finds, piece by piece.

    An axis whose boundary is ``FILL`` counts as in range: the caller has restricted the points.
    """
    parts: list[tuple[isl.Set, tuple[Expr, ...]]] = [(points, ())]
    total = True
    inside = points
    for axis, boundary, extent in zip(indices, boundaries, extents, strict=True):
        try:
            if not is_affine_index(axis):
                raise NotAffine(axis)
            function = function_of(axis, points)
            allowed = inside_extent(function, extent, points)
        except NotAffine:
            parts = [(part, (*found, remapped(axis, boundary, extent))) for part, found in parts]
            total = False
            continue
        pieces = _pieces(axis, function, allowed, boundary, extent)
        inside = inside.intersect(allowed)
        if boundary in (Boundary.SKIP, Boundary.FILL, Boundary.CHECK):
            total = total and points.intersect_params(context).is_subset(allowed)
        parts = [
            (cut, (*found, index))
            for part, found in parts
            for piece, index in pieces
            if not (cut := part.intersect(piece)).intersect_params(context).is_empty()
        ]
    if total and len(parts) > _MOST_PLACES:
        moved = tuple(map(remapped, indices, boundaries, extents))
        return [Piece(inside, tuple(indices), True), Piece(points.subtract(inside).coalesce(), moved, True)]
    return [Piece(part, found, total) for part, found in parts]


def _pieces(
    axis: Expr, function: isl.PwAff, inside: isl.Set, boundary: Boundary, extent: Expr
) -> list[tuple[isl.Set, Expr]]:
    pieces = [(inside, axis)]
    below = function.add_constant_val(isl.Val(1)).neg().nonneg_set()
    last = apply("sub", extent, integer(1))
    match boundary:
        case Boundary.CLAMP:
            above = function.ge_set(function_of(extent, inside))
            some = function_of(extent, inside).pos_set()
            return [*pieces, (below.intersect(some), integer(0)), (above.intersect(some), last)]
        case Boundary.WRAP:
            copies = [normalized(apply("add", axis, extent)), normalized(apply("sub", axis, extent))]
        case Boundary.REFLECT:
            copies = [normalized(apply("neg", axis)), normalized(apply("sub", apply("mul", integer(2), last), axis))]
            # The period of one cell is 0, and every index finds it.
            single = function_of(extent, inside).eq_set(function_of(integer(1), inside))
            pieces.append((single.subtract(inside), integer(0)))
            inside = inside.union(single)
        case Boundary.SYMMETRIC:
            mirrored = apply("sub", integer(-1), axis)
            copies = [normalized(mirrored), normalized(apply("add", mirrored, apply("mul", integer(2), extent)))]
        case _:
            return pieces
    rest = inside.complement()
    for copy in copies:
        found = inside_extent(function_of(copy, inside), extent, inside).intersect(rest)
        pieces.append((found, copy))
        rest = rest.subtract(found)
    some = function_of(extent, inside).pos_set()
    return [*pieces, (rest.intersect(some), remapped(axis, boundary, extent))]


def remapped(axis: Expr, boundary: Boundary, extent: Expr) -> Expr:
    """The cell that an index finds, computed at run time: ``max(min(ids[i], N - 1), 0)`` for ``clamp``."""
    if boundary in (Boundary.SKIP, Boundary.FILL, Boundary.CHECK):
        return axis
    return moved_index(cast(axis, "int64" if is_affine_index(axis) else INTEGER), extent, boundary)
