"""What holds where a condition holds: ``a and not (b or c)`` is ``a``, ``not b`` and ``not c``.

Of sizes ``n > 0 and x[0] > 0 or n > 1`` says that ``n > 0 or n > 1``, whatever ``x`` holds.
"""

from __future__ import annotations

from collections.abc import Iterator

from tcdsl.ir.build import apply
from tcdsl.ir.expressions import Apply, Expr, reads, size_names

__all__ = ["conjuncts", "said_of_sizes"]


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


def said_of_sizes(condition: Expr, holds: bool = True) -> Expr | None:
    """What sizes have to be where ``condition`` ``holds``, or does not; ``None`` if it leaves them open."""
    match condition:
        case Apply(primitive="not_", arguments=(operand,)):
            return said_of_sizes(operand, not holds)
        case Apply(primitive="and_" | "or_" as primitive, arguments=(one, other)):
            parts = [said_of_sizes(each, holds) for each in (one, other)]
            known = [each for each in parts if each is not None]
            if (primitive == "and_") == holds:
                return None if not known else known[0] if len(known) == 1 else apply("and_", *known)
            return apply("or_", *known) if len(known) == 2 else None
    if any(reads(condition)) or not size_names(condition):
        return None
    return condition if holds else apply("not_", condition)
