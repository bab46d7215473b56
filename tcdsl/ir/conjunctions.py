"""What holds where a condition holds: ``a and not (b or c)`` is ``a``, ``not b`` and ``not c``."""

from __future__ import annotations

from collections.abc import Iterator

from tcdsl.ir.build import apply
from tcdsl.ir.expressions import Apply, Expr

__all__ = ["conjuncts"]


def conjuncts(condition: Expr, holds: bool = True) -> Iterator[Expr]:
    """The conditions of which all hold where ``condition`` ``holds``, or does not."""
    match condition:
        case Apply(primitive="not_", arguments=(operand,)):
            yield from conjuncts(operand, not holds)
        case Apply(primitive="and_" | "or_" as primitive, arguments=arguments) if (primitive == "and_") == holds:
            for each in arguments:
                yield from conjuncts(each, holds)
        case _:
            yield condition if holds else apply("not_", condition)
