"""What range inference and the arithmetic on sizes ask of the program under construction."""

from __future__ import annotations

from typing import Protocol

from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Size, Statement, Tensor
from tcdsl.polyhedra.size_facts import SizeFacts

__all__ = ["ProgramScope"]


class ProgramScope(Protocol):
    """What range inference asks of the program under construction."""

    def tensor(self, name: str) -> Tensor:
        """The declaration of an input or a tensor made so far."""

    def fresh_name(self, hint: str) -> str:
        """A tensor name not used so far, ``hint`` itself if it is free."""

    def opaque_size(self, expr: Expr) -> Expr:
        """A named size for ``expr`` (``N * M``, ``N // K``); the same one for the same expression."""

    def size(self, name: str) -> Size:
        """The definition of a size."""

    def number(self, name: str) -> Expr | None:
        """The size that the only cell of an input is, if that is an integer which indices are made of."""

    def writer(self, name: str) -> Statement | None:
        """The statement that has made a tensor, where it may have left cells unwritten; ``None`` for all others."""

    def all_written(self, name: str) -> None:
        """Say that all cells of a tensor have been found to be written."""

    @property
    def may_not_run(self) -> bool:
        """Whether what is staged is a round of a loop, or an arm of a branch: that it is wrong is told if it runs."""

    @property
    def undecided_rounds(self) -> tuple[frozenset[str], tuple[Expr, ...]]:
        """The numbers of rounds in which data decides whether what is staged runs, and what then holds of sizes."""

    def known(self) -> SizeFacts:
        """What is known about sizes. Extents are non-negative, assertions hold."""
