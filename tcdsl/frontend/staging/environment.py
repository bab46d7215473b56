"""What evaluating a tensor statement asks of its surroundings, and the states of its target.

`tcdsl.frontend.names.function_scope` and `tcdsl.frontend.staging.builder` implement these protocols for decorated
functions; tests have small ones.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import FunctionType
from typing import Protocol

from tcdsl.frontend.symbols.operators import OperatorHost
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Statement, Tensor
from tcdsl.polyhedra.program_scope import ProgramScope
from tcdsl.ranges.sketches.sketch import Sketch
from tcdsl.span import Span

__all__ = ["UNBOUND", "Builder", "Declared", "Environment", "Existing", "Fresh", "TargetState", "Unbound"]


class Unbound(Enum):
    """The type of `UNBOUND`, which stands for a name without a value."""

    UNBOUND = "unbound"


UNBOUND = Unbound.UNBOUND


class Environment(Protocol):
    """What names mean where a statement stands."""

    @property
    def oob(self) -> str:
        """What data indices out of range do: ``check``, ``skip`` or ``clamp``."""

    @property
    def letters(self) -> frozenset[str]:
        """The letters that are index variables outside of subscripts too."""

    def own(self, name: str) -> object:
        """The value that the function itself has bound to ``name`` so far, or ``UNBOUND``."""

    def is_unwritten(self, name: str) -> bool:
        """Whether ``name`` is one that the function binds, but has not bound yet."""

    def enclosing(self, name: str) -> object:
        """The value of ``name`` in enclosing functions, or ``UNBOUND``."""

    def module(self, name: str) -> object:
        """The module's global ``name``, or ``UNBOUND``; builtins are not globals."""

    def builtin(self, name: str) -> object:
        """Python's builtin ``name``, or ``UNBOUND``."""

    def tensor_of(self, value: object, name: str, span: Span | None) -> SymbolicTensor | None:
        """The tensor that ``value`` is: symbolic ones, and arrays, which become inputs; ``None`` for anything else."""

    def within(self, function: FunctionType, held: Mapping[str, object], filename: str) -> Environment:
        """What names mean in a function that a statement calls; ``held`` has what its own names hold."""

    def span(self, node: ast.AST) -> Span | None:
        """The place of ``node`` in the user's source."""


class Builder(ProgramScope, OperatorHost, Protocol):
    """The program under construction."""

    def record(self, sketch: Sketch, label: str) -> SymbolicTensor:
        """Infer the ranges of ``sketch``, append its statements, and return the tensor that it makes."""

    def add_statement(self, statement: Statement, tensor: Tensor) -> None:
        """Add one statement whose domain is known, with the declaration of what it makes."""

    def require(self, condition: Expr, message: str, span: Span | None = None) -> None:
        """State that ``condition`` holds at every call."""
        ...

    def new_version(self, label: str) -> str:
        """A name for the next version of what the user calls ``label``."""

    def never_negative(self, name: str) -> bool:
        """Whether a size is non-negative by its form."""

    def size_names(self) -> Sequence[str]:
        """The names of all sizes so far; index variables must differ from them."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """A target that the statement creates; its extents are inferred."""

    label: str
    mode = "fresh"


@dataclass(frozen=True, slots=True)
class Declared:
    """A target that was declared and not written yet: ``O: real[N, X]``, ``O = output(N, X)``.

    ``dtype`` is ``"real"`` for the floating type of what is written, ``None`` for the type that a fresh target gets.
    """

    extents: tuple[Expr, ...]
    dtype: str | None
    label: str
    mode = "declared"


@dataclass(frozen=True, slots=True)
class Existing:
    """A target that holds cells already. ``declared`` stays true for one that was declared.

    ``sized`` is the statement of the function that has inferred its extents, if one has.
    """

    tensor: SymbolicTensor
    declared: bool = False
    sized: Span | None = None

    @property
    def mode(self) -> str:
        """How range inference treats its extents."""
        return "declared" if self.declared else "existing"

    @property
    def label(self) -> str:
        """What the user calls it."""
        return self.tensor.label


TargetState = Fresh | Declared | Existing
