"""``oob="skip"``: points whose data indices are out of range are left out.

The in-range conditions of the data indices that a point evaluates become conditions of the statement or of the
reduction around them. Reads behind a condition count only where it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tcdsl.frontend.statements.accesses import is_data
from tcdsl.ir.build import all_of, apply, range_tests, truth
from tcdsl.ir.expressions import Apply, Boundary, Constant, Expr, Let, Read, Reduction, children, locals_read

__all__ = ["in_range"]


def in_range(expr: Expr, extents: Callable[[str], Sequence[Expr]]) -> Expr:
    """The condition under which the skipping data indices of ``expr`` are in range; constant true if there are none.

    ``extents(tensor)`` gives the shape of a tensor.
    """
    match expr:
        case Read():
            return _read(expr, extents)
        case Apply(primitive="where", arguments=(condition, taken, other)):
            branches = apply("where", condition, in_range(taken, extents), in_range(other, extents))
            return apply("and_", in_range(condition, extents), branches)
        case Apply(primitive="and_" | "or_" as primitive, arguments=(left, right)):
            behind = in_range(right, extents)
            if isinstance(behind, Constant):
                return in_range(left, extents)
            skipped = apply("not_", left) if primitive == "and_" else left
            return apply("and_", in_range(left, extents), apply("or_", skipped, behind))
        case Let(name=name, value=value, body=body):
            inner = in_range(body, extents)
            if name in locals_read(inner):
                inner = Let(name, value, inner, expr.span)
            return apply("and_", in_range(value, extents), inner)
        case Reduction():
            return truth(True)  # its reads decide which points it takes in
        case _:
            return all_of(in_range(part, extents) for part in children(expr))


def _read(read: Read, extents: Callable[[str], Sequence[Expr]]) -> Expr:
    conditions: list[Expr] = []
    for index, boundary, extent in zip(read.indices, read.boundaries, extents(read.tensor), strict=True):
        conditions.append(in_range(index, extents))
        if boundary is Boundary.SKIP and is_data(index):
            conditions.extend(range_tests(index, extent))
    return all_of(conditions)
