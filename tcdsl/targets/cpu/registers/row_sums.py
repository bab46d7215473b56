"""Sums into a row of cells, term by term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tcdsl.ir.expressions import Expr
from tcdsl.lowering.loopir.loops import Loop, Node, Update

__all__ = ["RowSum"]


@dataclass(frozen=True, slots=True)
class RowSum:
    """``for term: definitions, for cell: definitions, row[cell] += value``; maybe with a ``condition``."""

    terms: Loop
    row: Loop
    update: Update
    condition: Expr | None

    @property
    def definitions(self) -> tuple[Sequence[Node], Sequence[Node]]:
        """What is defined for a term, and for a cell."""
        return self.terms.body[:-1], self.row.body[:-1]
