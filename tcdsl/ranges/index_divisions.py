"""The sizes by which indices are divided: the sets of points cannot say that such an index does not exist at 0.

::

    O(i) = A(i % N)                   N
    O(i) = i > 0 ? A(i / N) : 0.0     N, where i > 0
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tcdsl.ir.build import apply, integer
from tcdsl.ir.dtypes import INTEGER
from tcdsl.ir.expressions import Apply, Cast, Constant, Expr, Read, children, index_variables, is_affine_index, walk
from tcdsl.span import Span

__all__ = ["IndexDivision", "index_divisions"]


@dataclass(frozen=True, slots=True)
class IndexDivision:
    """An index of ``tensor`` that is divided by ``divisor``, an expression of sizes, where ``guard`` holds."""

    tensor: str
    axis: int
    divisor: Expr
    guard: tuple[Expr, ...]
    span: Span | None


def index_divisions(value: Expr) -> Iterator[IndexDivision]:
    """The divisions by sizes in the indices of ``value``, those by numbers left out."""
    if any(isinstance(node, Apply) and node.primitive in ("floor_div", "mod") for node in walk(value)):
        yield from dict.fromkeys(_visited(value, ()))


def _visited(expr: Expr, guard: tuple[Expr, ...]) -> Iterator[IndexDivision]:
    match expr:
        case Apply(primitive="where", arguments=(chosen, left, right)):
            yield from _visited(chosen, guard)
            yield from _visited(left, (*guard, chosen))
            yield from _visited(right, (*guard, apply("not_", chosen)))
        case Apply(primitive="and_" | "or_" as primitive, arguments=(left, right)):
            yield from _visited(left, guard)
            yield from _visited(right, (*guard, left if primitive == "and_" else apply("not_", left)))
        case Apply(primitive="fst", arguments=(first, _)):
            yield from _visited(first, guard)  # the other takes part in ranges alone
        case _:
            if isinstance(expr, Read):
                for axis, index in enumerate(expr.indices):
                    for divisor, span in _divisors(index):
                        yield IndexDivision(expr.tensor, axis, divisor, guard, span or expr.span)
            for part in children(expr):
                yield from _visited(part, guard)


def _divisors(index: Expr) -> Iterator[tuple[Expr, Span | None]]:
    waiting = [index]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Read):
            continue  # it has indices of its own
        if isinstance(node, Apply) and node.primitive in ("floor_div", "mod"):
            divisor = _exact(node.arguments[1])
            if divisor is not None and not isinstance(divisor, Constant) and not index_variables(divisor):
                yield divisor, node.span
        waiting.extend(children(node))


def _exact(expr: Expr) -> Expr | None:
    # As sizes are written, where it has been converted to meet data.
    match expr:
        case Constant(value=value):
            return integer(int(value))
        case Cast(operand=operand, dtype="int32" | "integer"):
            return _exact(operand)
        case Apply(dtype=dtype) if dtype == INTEGER:
            parts = [_exact(part) for part in expr.arguments]
            return None if None in parts else apply(expr.primitive, *(part for part in parts if part is not None))
    return expr if expr.dtype == "int64" and is_affine_index(expr) else None
