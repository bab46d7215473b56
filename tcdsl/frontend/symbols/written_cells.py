"""Which cells of the tensors of a program statements have surely written, and by what.

Inputs and whole-array arithmetic write all cells. A tensor of which a statement in index notation may have left cells
unwritten has a *writer*: that statement, which may continue a tensor with a writer of its own.

Cells may also hold conditions, so that branches see what those say of sizes, as in ``b = t > 0 and x[t] > 0; if b:``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

from tcdsl.ir.conjunctions import said_of_sizes
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, Read, transform, walk
from tcdsl.ir.program import Keep, Statement
from tcdsl.ranges.checks.recurrences import surely_written

__all__ = ["WrittenCells"]

# Longer ones are left where they are held: those of unrolled loops may double with each round.
_MOST_NODES = 200


class WrittenCells:
    """The writers by tensor, and the statements of tensors to which only whole numbers of Python were written."""

    def __init__(self) -> None:
        self._writers: dict[str, Statement] = {}
        self._numbers: dict[str, tuple[Statement, ...]] = {}
        #: What cells hold that are conditions.
        self.conditions = HeldConditions()

    def writer(self, name: str) -> Statement | None:
        """The statement that has made a tensor, where it may have left cells unwritten; ``None`` for all others."""
        return self._writers.get(name)

    def all_written(self, name: str) -> None:
        """Say that all cells of a tensor have been found to be written."""
        self._writers.pop(name, None)

    def appended(self, statement: Statement) -> None:
        """Take note of a statement of the program."""
        # What continues a tensor all of whose cells are written leaves none unwritten.
        if isinstance(statement.start, Keep) and statement.start.tensor in self._writers:
            condition = statement.condition
            self._writers[statement.target.tensor] = surely_written(
                statement, () if condition is None else (condition,)
            )

    def recorded(self, statement: Statement, conditions: Sequence[Expr], resets: bool, weak: bool) -> None:
        """Take note of a statement in index notation, which writes where ``conditions`` hold, or ``resets`` all cells.

        ``weak`` says that it writes whole numbers of Python.
        """
        name = statement.target.tensor
        if name in self._writers or not (resets or isinstance(statement.start, Keep)):
            self._writers[name] = surely_written(statement, conditions)
        if weak:
            self.by_numbers(statement)

    def declared(self, statement: Statement) -> None:
        """Say that the statement stands for the declaration of the tensor that it makes: no cell counts as written."""
        nothing = statement.domain.set.subtract(statement.domain.set)
        self._writers[statement.target.tensor] = replace(statement, domain=Domain.from_set(nothing))

    def same(self, name: str, other: str) -> None:
        """Say that of a tensor the same cells count as written as of another one."""
        writer = self._writers.get(other)
        if writer is None:
            self._writers.pop(name, None)
        else:
            self._writers[name] = writer

    def by_numbers(self, statement: Statement) -> None:
        """Say that whole numbers of Python alone give the tensor that ``statement`` makes its element type."""
        start, name = statement.start, statement.target.tensor
        if not isinstance(start, Keep):
            self._numbers[name] = (statement,)
        elif start.tensor in self._numbers:
            self._numbers[name] = (*self._numbers[start.tensor], statement)

    def stands_for(self, name: str, other: str) -> None:
        """Say that a placeholder has its element type as another tensor has."""
        if other in self._numbers:
            self.typed_by_numbers(name)

    def typed_by_numbers(self, name: str) -> None:
        """Say that whole numbers of Python alone give a tensor its element type, in statements that are not at hand."""
        self._numbers[name] = ()

    def is_weak(self, name: str) -> bool:
        """Whether a tensor has its element type from whole numbers of Python alone."""
        return name in self._numbers

    def numbers(self, name: str) -> tuple[Statement, ...]:
        """The statements that have made such a tensor, first to last."""
        return self._numbers[name]

    def forget(self, name: str) -> None:
        """Forget a tensor of a nested recording."""
        self._writers.pop(name, None)
        self._numbers.pop(name, None)
        self.conditions.forget(name)


class HeldConditions:
    """The conditions on sizes, among others, by the tensors that hold them."""

    def __init__(self) -> None:
        self._held: dict[str, Expr] = {}

    def hold(self, name: str, condition: Expr) -> None:
        """Say that the only cell of the tensor ``name`` holds a condition."""
        condition = self.asked(condition)
        short = len(list(islice(walk(condition), _MOST_NODES))) < _MOST_NODES
        if short and any(said_of_sizes(condition, holds) is not None for holds in (True, False)):
            self._held[name] = condition

    def forget(self, name: str) -> None:
        """The tensor ``name`` is known no longer."""
        self._held.pop(name, None)

    def asked(self, condition: Expr) -> Expr:
        """A condition with those that it reads."""

        def rule(node: Expr) -> Expr:
            return self._held.get(node.tensor, node) if isinstance(node, Read) and not node.indices else node

        return transform(condition, rule) if self._held else condition
