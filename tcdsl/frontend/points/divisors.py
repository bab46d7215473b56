"""Sizes that divide index variables and sizes: 0 at the call is an error, as the literal 0 is while staging.

Data divided by 0 is 0, as in NumPy's arithmetic of integers. An index variable or a size divided by 0 is no number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tcdsl.frontend.staging.builder import ProgramBuilder
from tcdsl.ir.build import apply, integer
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, certain_children
from tcdsl.ir.sizes.size_signs import never_negative
from tcdsl.ir.text.printer import format_expr
from tcdsl.span import Span

__all__ = ["require_divisors"]


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
