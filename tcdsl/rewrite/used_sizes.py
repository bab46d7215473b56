"""The sizes that statements and declarations speak of."""

from __future__ import annotations

from collections.abc import Iterable

from tcdsl.ir.expressions import size_names
from tcdsl.ir.program import Statement, Tensor, statement_sizes

__all__ = ["sizes_used"]


def sizes_used(statements: Iterable[Statement], tensors: Iterable[Tensor]) -> set[str]:
    """The names of the sizes in the expressions and domains of ``statements`` and in the shapes of ``tensors``."""
    found = {name for tensor in tensors for extent in tensor.shape for name in size_names(extent)}
    return found.union(*map(statement_sizes, statements))
