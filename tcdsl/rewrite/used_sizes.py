"""The sizes that statements and declarations speak of."""

from __future__ import annotations

from collections.abc import Iterable

from tcdsl.ir.expressions import Expr, size_names
from tcdsl.ir.program import Fill, Statement, Tensor

__all__ = ["sizes_used"]


def sizes_used(statements: Iterable[Statement], tensors: Iterable[Tensor]) -> set[str]:
    """The names of the sizes in the expressions and domains of ``statements`` and in the shapes of ``tensors``."""
    found = {name for tensor in tensors for extent in tensor.shape for name in size_names(extent)}
    for statement in statements:
        found.update(statement.domain.parameters)
        expressions: list[Expr] = [statement.value, *statement.target.indices]
        if statement.condition is not None:
            expressions.append(statement.condition)
        if isinstance(statement.start, Fill):
            expressions.append(statement.start.value)
        found.update(name for expr in expressions for name in size_names(expr))
    return found
