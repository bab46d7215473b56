"""The transposition of accumulators: how the derivative of a statement's target reaches its values and its start.

Each accumulator says, for a point that writes cell f(v) with value e, what e receives when the cell has derivative
g = d_Y[f(v)]:

==========  ==================================================================================================
add         g
subtract    -g
assign      g, at the point that writes the cell last
multiply    g times the product of the other factors, exact with zeros among them
max, min    g divided by the number of ties, at the points that tie
divide      -g * Y / e
power       g * Y * log(start) times the product of the other exponents
relu_gate   g, at the last point of the cell, if all others (and the start) are positive; sat01_gate likewise
==========  ==================================================================================================

A start that is kept takes part like any other value. Where each cell is written once, the statement is elementwise and the
primitive's own row of derivatives says it all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import islpy as isl

from tcdsl.autodiff.regions import box
from tcdsl.autodiff.writes import (
    affine_target,
    both,
    cell_map,
    named,
    reached,
    read_at,
    read_cell,
    writes_each_cell_once,
)
from tcdsl.errors import Diagnostic, DifferentiationError
from tcdsl.ir.accumulators import ACCUMULATORS, neutral_element
from tcdsl.ir.build import apply, cast, constant, index, integer, truth
from tcdsl.ir.domain import Domain
from tcdsl.ir.dtypes import compute_dtype
from tcdsl.ir.expressions import Expr, Local, Read
from tcdsl.ir.parser import parse_rule
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Access, Fill, Keep, Neutral, Start, Statement, Tensor

__all__ = ["VALUE", "Flow", "Transposition", "transpose"]

VALUE = "value of the flow"


@dataclass(frozen=True, slots=True)
class Flow:
    """``value`` receives ``seed`` at every point where the condition and all guards hold.

    ``seed`` and ``guards`` may mention the value itself as ``Local(VALUE)``. ``result`` is a read that holds the value already.
    """

    points: isl.Set
    condition: Expr | None
    value: Expr
    seed: Expr
    guards: tuple[Expr, ...] = ()
    result: Expr | None = None


class Transposition(Protocol):
    """What `transpose` asks of the program under construction."""

    def tensor(self, name: str) -> Tensor:
        """A declaration."""

    def carries(self, expr: Expr) -> bool:
        """Whether an expression depends differentiably on a tensor whose derivative is wanted."""

    def wants(self, tensor: str) -> bool:
        """Whether the derivative by a tensor is wanted."""

    def declare(self, hint: str, dtype: str, shape: tuple[Expr, ...]) -> str:
        """A new tensor."""

    def append(self, statement: Statement) -> None:
        """A statement that makes a declared tensor."""

    def contribute(self, flow: Flow) -> None:
        """Pass a flow on to the reads of its value."""

    def give(self, tensor: str, adjoint: str) -> None:
        """Add a whole tensor to the derivative by ``tensor``."""

    def cell_variables(self, rank: int) -> tuple[str, ...]:
        """Names of index variables for the cells of a tensor."""


def transpose(program: Transposition, statement: Statement, adjoint: str) -> None:
    """Pass the derivative ``adjoint`` of a statement's target on to everything that the statement reads."""
    _Statement(program, statement, adjoint).transpose()


class _Statement:
    """One statement while it is transposed."""

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

    # What the statement is.

    @property
    def start(self) -> Start:
        return self.statement.start

    def start_is_wanted(self) -> bool:
        match self.start:
            case Keep(tensor=tensor):
                return self.program.wants(tensor)
            case Fill(value=value):
                return self.program.carries(value)
            case _:
                return False

    def start_value(self, statement_points: bool) -> Expr:
        """What a cell holds at first: at the cell that a point writes, or at cell z of the box."""
        match self.start:
            case Keep(tensor=tensor):
                kept = self.program.tensor(tensor)
                if statement_points:
                    return read_at(self.statement, kept, self.dtype)
                return read_cell(kept, self.cells, self.dtype)
            case Fill(value=value):
                return value
            case _:
                return constant(neutral_element(self.statement.accumulate, self.dtype), self.dtype)

    def at_cell(self, tensor: str) -> Read:
        """A tensor of the target's shape at cell z of the box."""
        declared = self.program.tensor(tensor)
        return read_cell(declared, self.cells, compute_dtype(declared.dtype))

    def at_target(self, tensor: str) -> Read:
        """A tensor of the target's shape at the cell that a point writes."""
        declared = self.program.tensor(tensor)
        return read_at(self.statement, declared, compute_dtype(declared.dtype))

    # Where derivatives go.

    def to_value(self, seed: Expr, guards: tuple[Expr, ...] = (), result: Expr | None = None) -> None:
        self.program.contribute(Flow(self.points, self.condition, self.statement.value, seed, guards, result))

    def to_start(self, seed: Expr, guards: tuple[Expr, ...] = (), cells: isl.Set | None = None) -> None:
        """``seed`` at cell z, for the start of the cell."""
        where = self.box if cells is None else cells
        self.program.contribute(Flow(where, None, self.start_value(False), seed, guards))

    def all_to_start(self, adjoint: str) -> None:
        """A whole tensor for the start."""
        if isinstance(self.start, Keep):
            self.program.give(self.start.tensor, adjoint)
        else:
            self.to_start(self.at_cell(adjoint))

    def transpose(self) -> None:
        accumulate = self.statement.accumulate
        if accumulate == "assign":
            self.assign()
        elif accumulate in ("add", "subtract"):
            self.to_value(self.seed if accumulate == "add" else apply("neg", self.seed), result=self.own_result())
            if self.start_is_wanted():
                self.all_to_start(self.adjoint.name)
        elif writes_each_cell_once(self.statement):
            self.elementwise()
        else:
            _REDUCING[accumulate](self)

    def own_result(self) -> Expr | None:
        """The target itself at a point, if it holds exactly the point's value."""
        plain = self.statement.accumulate == "assign" or (
            self.statement.accumulate == "add" and isinstance(self.start, Neutral)
        )
        if plain and self.target.dtype == self.dtype and writes_each_cell_once(self.statement):
            return self.at_target(self.target.name)
        return None

    # Accumulators that are not sums.

    def assign(self) -> None:
        statement = self.statement
        if not writes_each_cell_once(statement):
            self.points = self.last_points()
        self.to_value(self.seed, result=self.own_result())
        if not self.start_is_wanted():
            return
        if affine_target(statement) and self.condition is None:
            rest = self.box.subtract(self.named_image(self.points))
            if rest.is_empty():
                return
            if isinstance(self.start, Fill):
                self.to_start(self.at_cell(self.adjoint.name), cells=rest)
                return
        self.all_to_start(self.overwritten(constant(0, self.dtype)))

    def named_image(self, points: isl.Set) -> isl.Set:
        """The cells that points write, as a subset of the box."""
        return named(cell_map(points, self.statement.target.indices).range(), self.cells)

    def last_points(self) -> isl.Set:
        """The points that write a cell last, in row-major order."""
        if not affine_target(self.statement) or self.condition is not None:
            fact = f"`{self.statement.accumulate}` has no derivative where points that depend on data share a cell"
            hint = "make the target's indices one-to-one (unique=True), or accumulate with += instead"
            raise Diagnostic(DifferentiationError, fact, self.statement.span, hint=hint).error()
        last = cell_map(self.points, self.statement.target.indices).reverse().lexmax().range()
        return named(last, self.statement.domain.variables).coalesce()

    def overwritten(self, value: Expr) -> str:
        """The adjoint with ``value`` in the cells that the statement writes."""
        name = self.program.declare(self.adjoint.name, self.adjoint.dtype, self.adjoint.shape)
        self.program.append(
            Statement(
                Access(name, self.statement.target.indices),
                "assign",
                Keep(self.adjoint.name),
                value,
                Domain.from_set(self.points),
                self.statement.condition,
                self.statement.oob,
                span=self.statement.span,
            )
        )
        return name

    def elementwise(self) -> None:
        """Each cell takes at most one value: ``new = primitive(old, value)``."""
        accumulate = self.statement.accumulate
        neutral_passes = accumulate in ("multiply", "max", "min", "relu_gate", "sat01_gate")
        if isinstance(self.start, Neutral) and neutral_passes:
            self.to_value(self.seed)
            return
        primitive = ACCUMULATORS[accumulate].primitive
        rows = PRIMITIVES[primitive].derivatives
        assert rows is not None
        old = self.start_value(True)
        result = self.at_target(self.target.name)
        names = {"a": old, "b": self.value, "y": result, "g": self.seed}
        if rows[1] != "0":
            self.to_value(parse_rule(rows[1], names))
        if self.start_is_wanted():
            names["b"] = self.statement.value
            self.all_to_start(self.overwritten(parse_rule(rows[0], names)))

    # Reductions that are not sums.

    def tally(
        self, hint: str, dtype: str, accumulate: str, term: Callable[[Expr], Expr], test: Callable[[Expr], Expr]
    ) -> str:
        """``accumulate`` the terms of all values (and of the start) that pass a test, per cell."""
        name = ""
        start: Start = Neutral()
        parts: list[tuple[tuple[Expr, ...], Expr, isl.Set, Expr | None]] = []
        if not isinstance(self.start, Neutral):
            parts.append((tuple(index(z) for z in self.cells), self.start_value(False), self.box, None))
        parts.append((self.statement.target.indices, self.statement.value, self.points, self.condition))
        for number, (indices, value, points, condition) in enumerate(parts):
            name = self.program.declare(hint, dtype, self.target.shape)
            own = number == len(parts) - 1
            self.program.append(
                Statement(
                    Access(name, indices),
                    accumulate,
                    start,
                    term(value),
                    Domain.from_set(points),
                    both(condition, test(value)),
                    self.statement.oob if own else "check",
                    span=self.statement.span,
                )
            )
            start = Keep(name)
        return name

    def product_of_others(self, hint: str) -> Callable[[Expr, Callable[[str], Expr]], Expr]:
        """The derivative of a cell's product by one factor, given the factor and how to read a tensor at its cell.

        The product of the factors that are not zero, their number, and the sum of those that are: a sum that is zero,
        but whose derivative is not, which makes second derivatives exact too.
        """
        zero, one = constant(0, self.dtype), constant(1, self.dtype)
        vanishing = lambda value: apply("eq", value, zero)  # noqa: E731
        product = self.tally(
            f"{hint}_product", self.dtype, "multiply", lambda value: value, lambda v: apply("ne", v, zero)
        )
        count = self.tally(f"{hint}_zeros", "int64", "add", lambda value: integer(1), vanishing)
        zeros = self.tally(f"{hint}_zero", self.dtype, "add", lambda value: value, vanishing)
        del one

        def others(factor: Expr, read: Callable[[str], Expr]) -> Expr:
            rest, number, total = read(product), read(count), read(zeros)
            is_zero = apply("eq", factor, zero)
            exactly = [apply("eq", number, integer(k)) for k in range(3)]
            for_zero = apply(
                "where",
                exactly[1],
                rest,
                apply("where", exactly[2], apply("mul", apply("sub", total, factor), rest), zero),
            )
            quotient = apply("div", rest, factor)
            for_other = apply(
                "where", exactly[0], quotient, apply("where", exactly[1], apply("mul", total, quotient), zero)
            )
            return apply("where", is_zero, for_zero, for_other)

        return others

    def multiply(self) -> None:
        others = self.product_of_others(self.target.name)
        self.to_value(apply("mul", self.seed, others(self.value, self.at_target)))
        if self.start_is_wanted():
            seed = self.at_cell(self.adjoint.name)
            self.to_start(apply("mul", seed, others(self.value, self.at_cell)))

    def extremum(self) -> None:
        best = self.target.name

        def stored(value: Expr) -> Expr:
            # A float16 cell holds the rounded value.
            return value if self.target.dtype == self.dtype else cast(cast(value, self.target.dtype), self.dtype)

        ties = ""
        name = ""
        start: Start = Neutral()
        parts: list[tuple[tuple[Expr, ...], Expr, Read, isl.Set, Expr | None]] = []
        if not isinstance(self.start, Neutral):
            cell = tuple(index(z) for z in self.cells)
            parts.append((cell, self.start_value(False), self.at_cell(best), self.box, None))
        own = (self.statement.target.indices, self.statement.value, self.at_target(best), self.points, self.condition)
        for indices, value, winner, points, condition in [*parts, own]:
            name = self.program.declare(f"{best}_ties", "int64", self.target.shape)
            test = apply("eq", stored(value), winner)
            oob = self.statement.oob if indices is own[0] else "check"
            where = Domain.from_set(points)
            self.program.append(
                Statement(
                    Access(name, indices),
                    "add",
                    start,
                    integer(1),
                    where,
                    both(condition, test),
                    oob,
                    span=self.statement.span,
                )
            )
            start = Keep(name)
        ties = name
        shared = apply("div", self.seed, cast(self.at_target(ties), self.dtype))
        self.to_value(shared, (apply("eq", stored(self.value), self.at_target(best)),))
        if self.start_is_wanted():
            shared = apply("div", self.at_cell(self.adjoint.name), cast(self.at_cell(ties), self.dtype))
            self.to_start(shared, (apply("eq", stored(self.value), self.at_cell(best)),))

    def divide(self) -> None:
        quotient = apply("div", self.at_target(self.target.name), self.value)
        self.to_value(apply("neg", apply("mul", self.seed, quotient)))
        if self.start_is_wanted():
            always = lambda value: truth(True)  # noqa: E731
            whole = self.target.name
            product = self.divisors(whole, always)
            self.to_start(apply("div", self.at_cell(self.adjoint.name), self.at_cell(product)))

    def divisors(self, hint: str, test: Callable[[Expr], Expr]) -> str:
        """The product of the values of each cell, its start left out."""
        name = self.program.declare(f"{hint}_product", self.dtype, self.target.shape)
        self.program.append(
            Statement(
                Access(name, self.statement.target.indices),
                "multiply",
                Neutral(),
                self.statement.value,
                Domain.from_set(self.points),
                self.condition,
                self.statement.oob,
                span=self.statement.span,
            )
        )
        return name

    def power(self) -> None:
        if isinstance(self.start, Neutral):
            return
        without_start = _Statement(self.program, _restarted(self.statement), self.adjoint.name)
        others = without_start.product_of_others(self.target.name)
        zero = constant(0, self.dtype)

        def logarithm(base: Expr) -> Expr:
            return apply("where", apply("gt", base, zero), apply("log", base), zero)

        result = self.at_target(self.target.name)
        scale = apply("mul", apply("mul", self.seed, result), logarithm(self.start_value(True)))
        self.to_value(apply("mul", scale, others(self.value, self.at_target)))
        if self.start_is_wanted():
            exponent = self.at_cell(self.divisors(self.target.name, lambda value: truth(True)))
            base, result = self.value, self.at_cell(self.target.name)
            at_zero = parse_rule(
                "b * pow(a, b - 1) if b != 0 else 0", {"a": base, "b": exponent, "g": constant(0, self.dtype)}
            )
            slope = apply("where", apply("ne", base, zero), apply("div", apply("mul", exponent, result), base), at_zero)
            self.to_start(apply("mul", self.at_cell(self.adjoint.name), slope))

    def gate(self) -> None:
        """Only the last value of a cell passes, if every value before it opens the gate."""
        last = self.last_points()
        before = self.points.subtract(last)
        zero, one = constant(0, self.dtype), constant(1, self.dtype)

        def closed(value: Expr) -> Expr:
            opens = apply("gt", value, zero)
            if self.statement.accumulate == "sat01_gate":
                opens = apply("and_", opens, apply("lt", value, one))
            return apply("not_", opens)

        shut = self.program.declare(f"{self.target.name}_shut", "bool", self.target.shape)
        cells = tuple(index(z) for z in self.cells)
        initially = closed(self.start_value(False))
        everywhere = Domain.from_set(self.box)
        self.program.append(Statement(Access(shut, cells), "or", Neutral(), initially, everywhere))
        later = self.program.declare(f"{self.target.name}_shut", "bool", self.target.shape)
        target = Access(later, self.statement.target.indices)
        shutting = closed(self.statement.value)
        self.program.append(Statement(target, "or", Keep(shut), shutting, Domain.from_set(before)))
        written = self.named_image(self.points)
        self.points = last
        self.to_value(self.seed, (apply("not_", self.at_target(later)),))
        if self.start_is_wanted():
            self.to_start(self.at_cell(self.adjoint.name), cells=self.box.subtract(written))


def _restarted(statement: Statement) -> Statement:
    from dataclasses import replace

    return replace(statement, start=Neutral())


_REDUCING: dict[str, Callable[[_Statement], None]] = {
    "multiply": _Statement.multiply,
    "max": _Statement.extremum,
    "min": _Statement.extremum,
    "divide": _Statement.divide,
    "power": _Statement.power,
    "relu_gate": _Statement.gate,
    "sat01_gate": _Statement.gate,
}
