"""The points where some choice of the branches taken keeps every read in range, whatever conditions on data say.

A read in a branch has to be in range only where the branch is taken. Where a condition on data decides, no set says
at which points that is, but one of the two sides is taken at every point::

    T[()] = sum(A[j - 1] if D[i] > 0 else B[j])        1 <= j <= A_0  or  0 <= j < B_0

At all other points a read is out of range whichever branch is taken, so the statement skips them. These sets bound
variables that nothing else bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import islpy as isl

from tcdsl.ir.expressions import Apply, Expr
from tcdsl.polyhedra.affine import NotAffine, condition_set
from tcdsl.polyhedra.spaces import dimension_names
from tcdsl.ranges.sketches.sketch import free_variables

__all__ = ["GuardedPoints", "possible_points"]


@dataclass(frozen=True, slots=True)
class GuardedPoints:
    """``points`` are those that a read allows, where all conditions of ``guard`` hold."""

    guard: tuple[Expr, ...]
    points: isl.Set


@dataclass(slots=True)
class _Choices:
    """What is required at one place of the tree of branches: here, and on both sides of each condition."""

    required: isl.Set
    sides: dict[Expr, tuple[_Choices, _Choices]] = field(default_factory=dict)


def possible_points(reads: Sequence[GuardedPoints], space: isl.Set) -> isl.Set:
    """The points of the space of ``space`` where all ``reads`` can be in range together.

    Conditions that a set can say decide by themselves; for others one of their sides has to do. That one condition may
    stand at several places of the tree is not used: these are never too few points.
    """
    every = isl.Set.universe(space.get_space())
    root = _Choices(every)
    for read in reads:
        place = root
        for condition in read.guard:
            plain, side = condition, 0
            while isinstance(plain, Apply) and plain.primitive == "not_":
                plain, side = plain.arguments[0], 1 - side
            place = place.sides.setdefault(plain, (_Choices(every), _Choices(every)))[side]
        place.required = place.required.intersect(read.points)
    return _points(root)


def _points(place: _Choices) -> isl.Set:
    found = place.required
    for condition, (left, right) in place.sides.items():
        found = found.intersect(_either(condition, _points(left), _points(right)))
    return found


def _either(condition: Expr, held: isl.Set, failed: isl.Set) -> isl.Set:
    # The points where `held` allows what is evaluated if the condition holds, and `failed` what is if it does not.
    match condition:
        case Apply(primitive="not_", arguments=(operand,)):
            return _either(operand, failed, held)
        case Apply(primitive="and_", arguments=(first, second)):
            return _either(first, _either(second, held, failed), failed)
        case Apply(primitive="or_", arguments=(first, second)):
            return _either(first, held, _either(second, held, failed))
    try:
        if not free_variables(condition) <= set(dimension_names(held)):
            raise NotAffine(condition)
        true = condition_set(condition, held)
    except NotAffine:
        return held.union(failed)
    return held.intersect(true).union(failed.subtract(true))
