"""What the parts of a statement's evaluation ask of each other.

Accesses, operators, calls and reductions contain expressions again. Their files evaluate those through this protocol;
`tcdsl.frontend.statements.statement_evaluation` implements it and knows the files.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from tcdsl.errors import Diagnostic, TcdslError
from tcdsl.frontend.names.name_resolution import Position
from tcdsl.frontend.points.definitions import Definition
from tcdsl.frontend.staging.environment import Environment
from tcdsl.frontend.staging.faults import Faulty
from tcdsl.frontend.symbols.symbols import SymbolicTensor
from tcdsl.frontend.symbols.values import Value
from tcdsl.span import Span

__all__ = ["Evaluator"]


class Evaluator(Protocol):
    """Evaluates the expressions of one statement; faults are recorded, not raised."""

    environment: Environment
    variables: tuple[str, ...]
    definitions: dict[str, Definition]
    faults: list[Diagnostic]
    terms: dict[int, bool]

    def span(self, node: ast.AST) -> Span | None:
        """The place of ``node``."""

    def fault(
        self, kind: type[TcdslError], fact: str, node: ast.AST, hint: str = "", notes: tuple[str, ...] = ()
    ) -> Faulty:
        """Record a fault at ``node``."""

    def finish(self) -> None:
        """Raise what was recorded, all together."""

    def within(self, environment: Environment, node: ast.expr) -> Evaluator:
        """The same for an expression of a function that the statement calls, which has names of its own."""

    def attempt(self, action: Callable[[], Any], node: ast.AST) -> Any:
        """The result of ``action``, or `Faulty` after its errors are recorded."""

    def native(self, action: Callable[[], Any], node: ast.AST) -> object:
        """Python's own result; what it raises becomes a fault at ``node``."""

    def quietly(self, node: ast.expr) -> object:
        """What ``node`` is, or `Faulty`, without a record of its faults."""

    def scope(self, names: dict[str, object]) -> AbstractContextManager[None]:
        """Within this, ``names`` mean these objects: what a generator's ``for`` binds."""

    @property
    def depth(self) -> int:
        """How many generators are around."""

    def is_symbolic(self, given: object) -> bool:
        """Whether ``given`` is more than ordinary Python."""

    def is_array(self, given: object) -> bool:
        """Whether ``given`` is a tensor or an array, of any rank."""

    def tensor_of(self, given: object, node: ast.AST) -> SymbolicTensor | None:
        """The tensor that ``given`` is, or ``None``."""

    def scalar(self, given: object, node: ast.AST) -> Value | None:
        """``given`` as a value at a point; ``None`` after a fault."""

    def value(self, node: ast.expr, position: Position = Position.VALUE) -> Value | None:
        """The scalar that ``node`` is; ``None`` after a fault."""

    def evaluate(self, node: ast.expr, position: Position = Position.VALUE) -> object:
        """What ``node`` is: a `Value`, a Python object, or `Faulty`."""

    def apply(self, primitive: str, values: list[Value | None], node: ast.AST) -> object:
        """A primitive on values; `Faulty` if one of them is."""

    def condition(self, node: ast.expr) -> Value | None:
        """A condition: a truth value, or ``None`` after a fault."""
