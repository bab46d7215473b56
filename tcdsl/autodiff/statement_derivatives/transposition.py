"""One statement while it is transposed: how to read tensors at its cells, and where derivatives go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import islpy as isl

from tcdsl.autodiff.statement_derivatives.derivative import Derivative
from tcdsl.autodiff.statement_derivatives.running_cells import RunningCells
from tcdsl.errors import DifferentiationError
from tcdsl.ir.build import constant, neutral_constant
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Local, Read
from tcdsl.ir.program import Access, Fill, Keep, Start, Statement
from tcdsl.polyhedra.boxes import box, over_box
from tcdsl.polyhedra.spaces import named
from tcdsl.polyhedra.writes import affine_target, both, cell_map, reached, read_at, read_cell

__all__ = ["VALUE", "Flow", "StatementTransposition", "Transposition"]

VALUE = "value of the flow"


@dataclass(frozen=True, slots=True)
class Flow:
    """``value`` receives ``seed`` at every one of ``points`` where the condition and all guards hold.

    ``seed`` is linear in the derivative of the statement's target, which it reads in one place. It and ``guards`` may
    mention the value itself as ``Local(VALUE)``. ``result`` is a read that holds the value already.
    """

    points: isl.Set
    condition: Expr | None
    value: Expr
    seed: Expr
    guards: tuple[Expr, ...] = ()
    result: Expr | None = None


class Transposition(Derivative, ABC):
    """A program under construction to which statements are transposed: it takes their flows."""

    @abstractmethod
    def contribute(self, flow: Flow) -> None:
        """Pass a flow on to the reads of its value."""

    @abstractmethod
    def give(self, tensor: str, adjoint: str) -> None:
        """Add a whole tensor to the derivative by ``tensor``."""

    @abstractmethod
    def settle(self, adjoint: str) -> None:
        """Pass on what has been contributed from ``adjoint``, of which a new version is about to be made."""

    @abstractmethod
    def scaled(self, adjoint: str, cells: isl.Set, share: Callable[[Expr], Expr], condition: Expr | None = None) -> str:
        """The derivative ``adjoint`` with ``share`` of each of ``cells`` in its place, where a condition holds.

        Both are expressions of that cell, ``share`` is linear in it; elsewhere there is nothing.
        """

    @abstractmethod
    def accumulated(
        self, adjoint: str, line: RunningCells, condition: Expr | None = None, joining: Expr | None = None
    ) -> str:
        """For each cell the sum of ``adjoint`` over all cells that go on from it, where they meet ``condition``.

        Nothing asks for the sums at cells where ``joining`` does not hold.
        """


class StatementTransposition:
    """A statement, the derivative of its target, and the program that its contributions go to."""

    def __init__(self, program: Transposition, statement: Statement, adjoint: str) -> None:
        self.program = program
        self.statement = statement
        self.target = program.tensor(statement.target.tensor)
        self.dtype = compute_dtype(self.target.dtype)
        self.adjoint = program.tensor(adjoint)
        self.condition = reached(statement, self.target)
        self.points: isl.Set = statement.domain.set
        self.seed: Expr = read_at(statement, self.adjoint, self.dtype)
        self.value = Local(VALUE, self.dtype)
        self.cells = program.cell_variables(len(self.target.shape))
        self.box = box(self.cells, self.target.shape)
        self.zero = constant(0, self.dtype)

    @property
    def start(self) -> Start:
        """What the target's cells start from."""
        return self.statement.start

    def start_is_wanted(self) -> bool:
        """Whether the start depends on anything whose derivative is wanted."""
        match self.start:
            case Keep(tensor=tensor):
                return self.program.wants(tensor)
            case Fill(value=value):
                return self.program.carries(value)
            case _:
                return False

    def start_at(self, read: Callable[[str], Expr]) -> Expr:
        """What a cell holds at first: cell z of the box for `at_cell`, the one that a point writes for `at_target`."""
        match self.start:
            case Keep(tensor=tensor):
                return read(tensor)
            case Fill(value=value):
                return value
            case _:
                return neutral_constant(self.statement.accumulate, self.dtype)

    def at_cell(self, tensor: str) -> Read:
        """A tensor of the target's shape at cell z of the box."""
        declared = self.program.tensor(tensor)
        return read_cell(declared, self.cells, compute_dtype(declared.dtype))

    def at_target(self, tensor: str) -> Read:
        """A tensor of the target's shape at the cell that a point writes."""
        declared = self.program.tensor(tensor)
        return read_at(self.statement, declared, compute_dtype(declared.dtype))

    def scaled(self, share: Callable[[Expr], Expr], condition: Expr | None = None) -> str:
        """A share of the derivative of the target's cell z: once for all points that write the cell."""
        return self.program.scaled(self.adjoint.name, self.box, share, condition)

    def to_value(self, seed: Expr, guards: tuple[Expr, ...] = (), result: Expr | None = None) -> None:
        """``seed``, at every point, for the value."""
        self.program.contribute(Flow(self.points, self.condition, self.statement.value, seed, guards, result))

    def joining(self, line: RunningCells) -> Iterator[None]:
        """The points at which terms are among those of a run the first time, one kind after the other."""
        points, condition = self.points, self.condition
        for self.points, test in line.joined():
            self.condition = both(test, condition)
            yield
        self.points, self.condition = points, condition

    def to_start(self, seed: Expr, guards: tuple[Expr, ...] = (), cells: isl.Set | None = None) -> None:
        """``seed`` at cell z, for the start of the cell."""
        where = self.box if cells is None else cells
        self.program.contribute(Flow(where, None, self.start_at(self.at_cell), seed, guards))

    def all_to_start(self, adjoint: str) -> None:
        """A whole tensor for the start."""
        if isinstance(self.start, Keep):
            self.program.give(self.start.tensor, adjoint)
        else:
            self.to_start(self.at_cell(adjoint))

    def image(self, points: isl.Set) -> isl.Set:
        """The cells that points write, as a subset of the box."""
        return named(cell_map(points, self.statement.target.indices).range(), self.cells)

    def last_points(self) -> isl.Set:
        """The points that write a cell last, in row-major order. `DifferentiationError` if that depends on data."""
        if not affine_target(self.statement) or self.condition is not None:
            fact = f"`{self.statement.accumulate}` has no derivative where points that depend on data share a cell"
            hint = "make the target's indices one-to-one (unique=True), or accumulate with += instead"
            raise DifferentiationError.at(fact, self.statement.span, hint)
        last = cell_map(self.points, self.statement.target.indices).reverse().lexmax().range()
        return named(last, self.statement.domain.variables).coalesce()

    def writing(
        self,
        tensor: str,
        accumulate: str,
        start: Start,
        value: Expr,
        points: isl.Set | None = None,
        condition: Expr | None = None,
    ) -> None:
        """Append a statement that writes ``tensor`` where this statement writes its target."""
        self.program.append(
            Statement(
                Access(tensor, self.statement.target.indices),
                accumulate,
                start,
                value,
                Domain.from_set(self.points if points is None else points),
                condition,
                self.statement.oob,
                accumulate == "assign" and self.statement.unique,
                span=self.statement.span,
            )
        )

    def filling(self, tensor: str, accumulate: str, start: Start, value: Expr, condition: Expr | None = None) -> None:
        """Append a statement that writes cell z of ``tensor``, for the whole box."""
        statement = over_box(tensor, self.cells, self.target.shape, value, accumulate)
        self.program.append(replace(statement, start=start, condition=condition, span=self.statement.span))
