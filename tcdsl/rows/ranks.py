"""How many axes each row of an array of known rank has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["RowRanks", "counted"]

_STORED = ("batch", "output", "input")


@dataclass(frozen=True, slots=True)
class RowRanks:
    """``RowRanks(batch=1, output=2)``: one leading batch axis, then two output axes, and no input axis.

    Arrays are stored in the order batch, output, input. A plain array has output axes only.
    """

    batch: int = 0
    output: int = 0
    input: int = 0

    @property
    def total(self) -> int:
        """The rank of the array."""
        return self.batch + self.output + self.input

    @property
    def plain(self) -> bool:
        """Whether all axes are output axes, as NumPy's are."""
        return not self.batch and not self.input

    @property
    def transposed(self) -> RowRanks:
        """With input and output axes swapped."""
        return RowRanks(self.batch, self.input, self.output)

    def of(self, row: str) -> int:
        """The number of axes of ``row``: ``batch``, ``input`` or ``output``."""
        return int(getattr(self, row))

    @property
    def tags(self) -> tuple[str, ...]:
        """The row of each axis, in the order of storage: ``("batch", "output", "output")``."""
        return tuple(row for row in _STORED for _ in range(self.of(row)))

    @staticmethod
    def of_tags(tags: Sequence[str]) -> RowRanks:
        """The rows of an array whose axes have these; plain where they are not in the order of storage."""
        if sorted(tags, key=_STORED.index) != list(tags):
            return RowRanks(output=len(tags))
        return RowRanks(*(tags.count(row) for row in _STORED))

    def joined(self, other: RowRanks) -> RowRanks:
        """The rows that both broadcast to."""
        return RowRanks(*(max(self.of(row), other.of(row)) for row in _STORED))

    def __str__(self) -> str:
        """``1 batch, 2 input and 1 output axes``, for messages."""
        if self.plain:
            return counted(self.output, "output axis")
        return f"{self.batch} batch, {self.input} input and {self.output} output axes"


def counted(number: int, noun: str) -> str:
    """``1 axis``, ``2 axes``, ``no operands``."""
    plural = noun[:-2] + "es" if noun.endswith("is") else noun + "s"
    return f"{number or 'no'} {noun if number == 1 else plural}"
