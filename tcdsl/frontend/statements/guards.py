"""What holds where an expression is evaluated: data indices in range, divisors that are not 0.

With ``oob="skip"`` points whose data indices are out of range are left out: the in-range conditions of the data indices
that a point evaluates become conditions of the statement or of the reduction around them. Reads behind a condition
count only where it holds.

Data divided by 0 is 0, as in NumPy's arithmetic of integers. An index variable or a size divided by 0 is no number: a
size that divides them is checked at the call, as the literal 0 is while staging.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.frontend.statements.accesses import is_data
from tcdsl.ir.build import all_of, apply, integer, range_tests, truth
from tcdsl.ir.expressions import (
    Apply,
    Boundary,
    Constant,
    Expr,
    Let,
    Read,
    Reduction,
    SizeValue,
    certain_children,
    children,
    locals_read,
)
from tcdsl.ir.sizes.known_sizes import never_negative
from tcdsl.ir.text.printer import format_expr
from tcdsl.span import Span

__all__ = ["in_range", "require_divisors"]


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


def require_divisors(expressions: Sequence[Expr], builder: ProgramBuilder, span: Span | None) -> None:
    """State that the sizes by which ``expressions`` divide whole numbers at every point are not 0.

    A statement at ``span`` holds the expressions.
    """
    for node in (node for expr in expressions for node in _certain(expr)):
        if not (isinstance(node, Apply) and node.primitive in ("floor_div", "mod") and node.dtype == "int64"):
            continue
        divisor = node.arguments[1]
        if isinstance(divisor, Constant) or not _is_size(divisor):
            continue
        positive = never_negative(divisor, builder.never_negative)
        known = apply("ge", divisor, integer(1)) if positive else apply("ne", divisor, integer(0))
        builder.require(known, f"`{format_expr(node)}` divides by 0", node.span or span)


def _certain(expr: Expr) -> Iterator[Expr]:
    yield expr
    for part in certain_children(expr):
        yield from _certain(part)


def _is_size(expr: Expr) -> bool:
    return isinstance(expr, SizeValue | Constant) or (
        isinstance(expr, Apply) and expr.dtype == "int64" and all(map(_is_size, expr.arguments))
    )
