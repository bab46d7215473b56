"""Reads out of range: where they move to, which cells never need to ask, and reads that are known to be in range.

The interior of a statement is the set of cells all of whose points read in range; there, boundaries vanish and
branches on affine conditions are decided. Only the rest pays for tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import apply, in_range
from tcdsl.ir.expressions import Apply, Boundary, Constant, Expr, Read, children, is_affine_index, map_children, rebuild
from tcdsl.ir.program import Tensor
from tcdsl.polyhedra.affine import NotAffine, condition_set, holds
from tcdsl.polyhedra.disjunctions import within
from tcdsl.polyhedra.linear import normalized
from tcdsl.polyhedra.spaces import arranged, constant_range, dimension_names

__all__ = ["Declarations", "interior", "specialized"]

Declarations = dict[str, Tensor]
"""Tensors by name."""

# Pieces beyond which a border is not worth its code.
_MOST_PIECES = 24


def _questions(expr: Expr, tensors: Declarations) -> Iterator[Expr]:
    # The affine conditions on which the reading of expr depends.
    match expr:
        case Read(tensor=tensor, indices=indices, boundaries=boundaries):
            for axis, (position, boundary) in enumerate(zip(indices, boundaries, strict=True)):
                if boundary not in (Boundary.SKIP, Boundary.CHECK) and is_affine_index(position):
                    yield in_range(position, tensors[tensor].shape[axis])
        case Apply(primitive="where", arguments=(condition, _, _)) if not isinstance(condition, Constant):
            yield condition
        case _:
            pass
    for part in children(expr):
        yield from _questions(part, tensors)


def interior(
    expressions: Sequence[Expr],
    points: isl.Set,
    cells: Sequence[str],
    tensors: Declarations,
    window: Sequence[str] = (),
) -> tuple[isl.Set, isl.Set] | None:
    """``points`` in two parts: those of cells where every question of ``expressions`` has the answer yes, and the rest.

    A cell is a value of the variables ``cells``. Of a ``window``, variables with constant bounds, the cells of the
    first part have all points. None if there is nothing to ask or to gain.
    """
    if points.is_empty():
        return None
    missing = _missing(points, cells, window) if window else None
    holds: list[isl.Set] = []
    for expr in expressions:
        for question in _questions(expr, tensors):
            try:
                answer = condition_set(question, points)
            except NotAffine:
                continue
            yes = within(points, answer)
            if yes is not None and not yes.is_empty() and not points.is_subset(answer):
                holds.append(yes)
    whole = [yes for yes in holds if yes.n_basic_set() <= points.n_basic_set()]
    for chosen in (holds, whole, holds[:1]):
        if not chosen and missing is None:
            continue
        outside = points
        for yes in chosen:
            both = within(outside, yes)
            outside = outside if both is None else both
        outside = points.subtract(outside)
        touched = _cylinder(outside if missing is None else outside.union(missing), cells, points)
        inside = points.subtract(touched).coalesce()
        border = points.intersect(touched).coalesce()
        if not inside.is_empty() and inside.n_basic_set() == 1 and border.n_basic_set() <= _MOST_PIECES:
            return inside, border
    return None


def _missing(points: isl.Set, cells: Sequence[str], window: Sequence[str]) -> isl.Set | None:
    # What the cells' points lack of the smallest box of constants around all windows; None if nothing.
    around = _cylinder(points, cells, points)
    names = dimension_names(points)
    for name in window:
        values = constant_range(points, name) or range(0)
        around = around.lower_bound_val(isl.dim_type.set, names.index(name), isl.Val(values.start))
        around = around.upper_bound_val(isl.dim_type.set, names.index(name), isl.Val(values.stop - 1))
    missing = around.subtract(points)
    return None if missing.is_empty() else missing


def _cylinder(outside: isl.Set, cells: Sequence[str], points: isl.Set) -> isl.Set:
    # All points of the cells that have a point outside.
    names = dimension_names(points)
    shadow = arranged(outside, tuple(cells))
    return arranged(shadow, names)


def specialized(expr: Expr, points: isl.Set, tensors: Declarations) -> Expr:
    """``expr`` with boundaries dropped and branches decided where that is so at all of ``points``.

    A branch is specialized to the points that reach it.
    """
    match expr:
        case Apply(primitive="where", arguments=(condition, chosen, other)):
            condition = specialized(condition, points, tensors)
            try:
                holds = condition_set(condition, points)
            except NotAffine:
                return apply("where", condition, *(specialized(part, points, tensors) for part in (chosen, other)))
            yes, no = points.intersect(holds).coalesce(), points.subtract(holds).coalesce()
            if no.is_empty():
                return specialized(chosen, points, tensors)
            if yes.is_empty():
                return specialized(other, points, tensors)
            yes, no = (points if part.n_basic_set() > _MOST_PIECES else part for part in (yes, no))
            return apply("where", condition, specialized(chosen, yes, tensors), specialized(other, no, tensors))
        case Read():
            return _specialized_read(expr, points, tensors)
        case Apply(primitive="add" | "sub"):
            first, second = new = tuple(specialized(part, points, tensors) for part in expr.arguments)
            # What a branch leaves out adds nothing; generated code does not tell 0.0 from -0.0 in sums anyway.
            if _left_out(second, expr.arguments[1]):
                return first
            if expr.primitive == "add" and _left_out(first, expr.arguments[0]):
                return second
            return expr if new == expr.arguments else rebuild(expr, new)
        case _:
            return map_children(expr, lambda part: specialized(part, points, tensors))


def _left_out(expr: Expr, before: Expr) -> bool:
    # Whether a branch was decided, for zero.
    return isinstance(expr, Constant) and expr.value == 0 and not isinstance(before, Constant)


def _specialized_read(read: Read, points: isl.Set, tensors: Declarations) -> Expr:
    shape = tensors[read.tensor].shape
    boundaries = list(read.boundaries)
    for axis, (position, boundary) in enumerate(zip(read.indices, read.boundaries, strict=True)):
        if boundary is Boundary.SKIP:
            continue
        if is_affine_index(position) and holds(in_range(position, shape[axis]), points):
            boundaries[axis] = Boundary.SKIP
    fill = read.fill if Boundary.FILL in boundaries else None
    return replace(
        read,
        indices=tuple(normalized(specialized(position, points, tensors)) for position in read.indices),
        boundaries=tuple(boundaries),
        fill=None if fill is None else specialized(fill, points, tensors),
    )
