"""What is known of a definition before any array: its names and types, and what each statement does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tcdsl.frontend.comprehensions.text.syntax import (
    Definition,
    DefinitionCall,
    Expression,
    LocalDefinition,
    Name,
    Range,
    Statement,
)
from tcdsl.span import Span

__all__ = ["Checked", "CheckedCall", "CheckedStatement", "TensorType"]


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of elements and the rank of a tensor."""

    dtype: str
    rank: int

    def __str__(self) -> str:
        return f"{self.dtype} of rank {self.rank}"


@dataclass(frozen=True, slots=True)
class CheckedStatement:
    """A statement with what its names mean.

    ``accumulate`` is a row of the accumulators, ``resets`` says that cells start from the neutral element, ``begins``
    that nothing has written the target before. ``variables`` are its index variables, those of the target first.
    """

    statement: Statement
    accumulate: str
    resets: bool
    begins: bool
    variables: tuple[str, ...]
    ranges: Mapping[str, Range]
    definitions: Mapping[str, LocalDefinition]
    exists: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """A call of another definition."""

    targets: tuple[Name, ...]
    callee: Checked
    arguments: tuple[Name, ...]
    span: Span | None


@dataclass(frozen=True, slots=True)
class Checked:
    """A definition without faults.

    ``tensors`` are the types of parameters and results. ``continued`` are the results that a statement accumulates onto
    before any other writes them: they continue what an output buffer holds. ``warnings`` are the statements that do so.
    ``count`` is how many statements there are, those of the definitions that are called included.
    """

    definition: Definition
    tensors: Mapping[str, TensorType]
    statements: tuple[CheckedStatement | CheckedCall, ...]
    continued: tuple[str, ...] = ()
    warnings: tuple[Statement | DefinitionCall, ...] = ()
    count: int = 0

    @property
    def name(self) -> str:
        """What it is called."""
        return self.definition.name.name
