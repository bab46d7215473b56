"""Conditions that hold on several convex pieces: as sets while the pieces are few, else as tests at each point.

``i != j`` is two pieces, and each further disjunction multiplies them: five would make 32 loops. So points are narrowed
as long as they stay few pieces. What is left is tested, and narrows to one piece around all of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import islpy as isl

from tcdsl.ir.expressions import Apply, Expr

__all__ = ["convex_pieces", "narrowed", "within"]

# Pieces of a domain: tests are vectorized, so many pieces are no quicker than one with tests. Only where they are thin,
# as the six faces of a cube are, tests at all other points would cost more.
_MOST_PIECES, _MOST_THIN = 4, 8
# Pieces that are made at most, to see whether they come together.
_MOST_TRIED = 64


def convex_pieces(expr: Expr, holds: bool = True) -> int:
    """On how many convex sets, at most, an integer is one affine function, or a condition ``holds``.

    As the expression stands, without asking isl: 1 for ``i + j`` and ``i < j``, 2 for ``min(i, j)`` and ``i != j``.
    """
    return _pieces(expr, holds, {})


def _pieces(expr: Expr, holds: bool, known: dict[tuple[int, bool], int]) -> int:
    # Of a choice both the condition and its contrary count: each is looked at once.
    key = id(expr), holds
    if key not in known:
        known[key] = _counted(expr, holds, known) if isinstance(expr, Apply) else 1
    return known[key]


def _counted(expr: Apply, holds: bool, known: dict[tuple[int, bool], int]) -> int:
    primitive, arguments = expr.primitive, expr.arguments
    if primitive == "not_":
        return _pieces(arguments[0], not holds, known)
    if primitive in ("and_", "or_"):
        parts = [_pieces(argument, holds, known) for argument in arguments]
        return prod(parts) if (primitive == "and_") == holds else sum(parts)
    if primitive == "where":
        condition, chosen, other = arguments
        sides = zip((True, False), (chosen, other), strict=True)
        return sum(_pieces(condition, side, known) * _pieces(value, True, known) for side, value in sides)
    several = primitive in ("min", "max") or primitive == ("ne" if holds else "eq")
    return (2 if several else 1) * prod(_pieces(argument, True, known) for argument in arguments)


def narrowed(
    points: isl.Set, conditions: Sequence[Expr], holding: Callable[[Expr], isl.Set]
) -> tuple[isl.Set, list[Expr]]:
    """``points`` where ``conditions`` hold, as far as they stay few pieces, and the conditions to test besides.

    ``holding`` gives the points where a condition holds.
    """
    counts: Mapping[Expr, int] = {condition: convex_pieces(condition) for condition in conditions}
    left: set[Expr] = set()
    for condition in sorted(counts, key=lambda each: counts[each]):
        allowed = holding(condition).coalesce()
        cut = within(points, allowed)
        if cut is None:
            left.add(condition)
            cut = points.intersect(isl.Set.from_basic_set(allowed.simple_hull()))
        points = cut
    return points, [condition for condition in counts if condition in left]


def within(points: isl.Set, allowed: isl.Set) -> isl.Set | None:
    """The points of both sets, if they are few pieces, or no more than ``points`` is already."""
    count = points.n_basic_set()
    if count * allowed.n_basic_set() > max(_MOST_TRIED, count):
        return None
    both = points.intersect(allowed)
    if both.n_basic_set() > count:
        both = both.coalesce()
    most = _MOST_THIN if all(map(_is_thin, allowed.get_basic_sets())) else _MOST_PIECES
    return both if both.n_basic_set() <= max(most, count) else None


def _is_thin(piece: isl.BasicSet) -> bool:
    return any(constraint.is_equality() for constraint in piece.get_constraints())
