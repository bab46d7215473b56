"""The transposition of reductions that are not sums.

What value e of a cell receives when the cell Y has derivative g, if other values share the cell:

==========  ========================================================================================
multiply    g times the product of the other factors, exact with zeros among them
max, min    g divided by the number of ties, at the values that tie
divide      -g * Y / e
power       g * Y * log(start) times the product of the other exponents
relu_gate   g, for the last value of the cell, if all others (and the start) are positive
sat01_gate  g, for the last value of the cell, if all others (and the start) are between 0 and 1
==========  ========================================================================================

A start that is kept takes part like any other value.

Where cells go on from each other, as those of ``t[i] >>= x[j], j <= i``, the value of a term receives that of all cells
from the one on where the term joins. Totals along the cells say it, so that each term is visited once
(`tcdsl.autodiff.statement_derivatives.running_cells`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import MappingProxyType

import islpy as isl

from tcdsl.autodiff.statement_derivatives.running_cells import RunningCells
from tcdsl.autodiff.statement_derivatives.transposition import StatementTransposition
from tcdsl.ir.build import apply, cast, constant, index, integer, plain_read, truth
from tcdsl.ir.conjunctions import conjuncts
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, index_variables
from tcdsl.ir.program import Access, Keep, Neutral, Start, Statement
from tcdsl.polyhedra.spaces import arranged
from tcdsl.polyhedra.writes import both
from tcdsl.simplification.scans import scan_of

__all__ = ["REDUCTIONS", "running"]

_Test = Callable[[Expr], Expr]
_ReadAt = Callable[[str], Expr]


def _tally(
    this: StatementTransposition,
    name: str,
    dtype: str,
    accumulate: str,
    term: _Test,
    test: Callable[[Expr, _ReadAt], Expr],
) -> str:
    """A tensor that accumulates ``term(e)`` over all values e of each cell, its start included, that pass ``test``."""
    start: Start = Neutral()
    if not isinstance(this.start, Neutral):
        value = this.start_at(this.at_cell)
        made = this.program.declare(name, dtype, this.target.shape)
        this.filling(made, accumulate, start, term(value), test(value, this.at_cell))
        start = Keep(made)
    value = this.statement.value
    made = this.program.declare(name, dtype, this.target.shape)
    condition = both(this.condition, test(value, this.at_target))
    this.writing(made, accumulate, start, term(value), condition=condition)
    return made


@dataclass(frozen=True, slots=True)
class _Factors:
    """The factors of each cell's product: three tensors, and perhaps one that holds the whole product.

    The product of those that are not zero, in cells that have others if the whole is known; the number of those that
    are; and their sum, which is zero, but its derivative is not: with it second derivatives are exact too.
    """

    zero: Expr
    whole: str | None
    count: str
    product: str
    zeros: str

    @staticmethod
    def of(this: StatementTransposition, name: str, whole: str | None, line: RunningCells | None = None) -> _Factors:
        """The tensors, called after ``name``; along ``line`` the product of rows that have a zero."""
        zero = this.zero

        def vanishes(factor: Expr, _: _ReadAt) -> Expr:
            return apply("eq", factor, zero)

        count = _tally(this, f"{name}_zeros", "int64", "add", lambda _: integer(1), vanishes)
        in_row = None if whole is None or line is None else _row_has_zeros(this, name, line)

        def remains(factor: Expr, read: _ReadAt) -> Expr:
            nonzero = apply("ne", factor, zero)
            if whole is None:
                return nonzero
            return apply("and_", apply("gt", read(count), integer(0)) if in_row is None else in_row, nonzero)

        product = _tally(this, f"{name}_product", this.dtype, "multiply", _same, remains)
        zeros = _tally(this, f"{name}_zero", this.dtype, "add", _same, vanishes)
        return _Factors(zero, whole, count, product, zeros)

    def rest(self, read: _ReadAt) -> Expr:
        """The product of the factors of a cell that are not zero, given how to read a tensor at it."""
        if self.whole is None:
            return read(self.product)
        return apply("where", self.has(0, read), read(self.whole), read(self.product))

    def has(self, zeros: int, read: _ReadAt) -> Expr:
        """Whether so many factors of a cell are zero."""
        return apply("eq", read(self.count), integer(zeros))

    def share(self, factor: Expr, scaled: Expr, read: _ReadAt) -> Expr:
        """What one factor receives: ``scaled``, which is the seed times the rest, times the others that are zero."""
        total, zero = read(self.zeros), self.zero
        none, one, two = (self.has(k, read) for k in range(3))
        partner = apply("mul", apply("sub", total, factor), scaled)
        of_zero = apply("where", one, scaled, apply("where", two, partner, zero))
        quotient = apply("div", scaled, factor)
        of_other = apply("where", none, quotient, apply("where", one, apply("mul", total, quotient), zero))
        return apply("where", apply("eq", factor, zero), of_zero, of_other)


def _same(value: Expr) -> Expr:
    return value


def running(this: StatementTransposition, level: str | None = None) -> RunningCells | None:
    """The cells of the target, if they go on from each other; within runs of one ``level``, if that is given."""
    scan = scan_of(this.statement, this.target.shape)
    if scan is None:
        return None
    *_, other = this.program.cell_variables(len(this.cells) + 1)
    axis = this.statement.target.indices.index(index(scan.variable))
    return RunningCells(this.program, this.statement, scan, this.cells, other, axis, this.target.shape, level)


def _row_has_zeros(this: StatementTransposition, name: str, line: RunningCells) -> Expr:
    # Whether any factor of any cell along the line is zero, seen from a point.
    shape, start = this.target.shape, list[Statement]()

    def writes(cell: Sequence[Expr], points: isl.Set, value: Expr, condition: Expr | None) -> Expr:
        made = this.program.declare(f"{name}_any", "bool", _without(shape, line.axis))
        target = Access(made, _without(cell, line.axis))
        kept = Keep(start[-1].target.tensor) if start else Neutral()
        start.append(Statement(target, "or", kept, truth(True), Domain.from_set(points), both(condition, _is(value))))
        this.program.append(start[-1])
        return plain_read(made, target.indices, "bool")

    def _is(value: Expr) -> Expr:
        return apply("eq", value, this.zero)

    if not isinstance(this.start, Neutral):
        writes(tuple(map(index, this.cells)), this.box, this.start_at(this.at_cell), None)
    statement, along = this.statement, line.scan.variable
    # A term is the same in all cells. Those that data leave out of all of them may count too.
    others = [each for each in statement.domain.variables if each != along]
    tests = () if this.condition is None else conjuncts(this.condition)
    left = reduce(both, (each for each in tests if along not in index_variables(each)), None)
    return writes(statement.target.indices, arranged(this.points, others), statement.value, left)


def _without(items: Sequence[Expr], position: int) -> tuple[Expr, ...]:
    return (*items[:position], *items[position + 1 :])


def _multiply(this: StatementTransposition) -> None:
    line = running(this)
    exact = this.target.dtype == this.dtype
    factors = _Factors.of(this, this.target.name, this.target.name if exact else None, line)

    scaled = this.scaled(lambda seed: apply("mul", seed, factors.rest(this.at_cell)))
    if line is None:
        this.to_value(factors.share(this.value, this.at_target(scaled), this.at_target))
    else:
        _running_product(this, line, factors, scaled)
    if this.start_is_wanted():
        this.to_start(factors.share(this.value, this.at_cell(scaled), this.at_cell))


def _running_product(this: StatementTransposition, line: RunningCells, factors: _Factors, scaled: str) -> None:
    # What `_Factors.share` says, summed over all cells that a factor is in: those with no zeros, with one, with two.
    total = this.at_cell(factors.zeros)
    joining = apply("gt", this.at_cell(factors.count), integer(0))

    def sums(first: int, second: int | None, joining: Expr | None) -> Expr:
        # In cells with ``second`` zeros one more of them takes part in the product.
        condition, given = factors.has(first, this.at_cell), scaled
        if second is not None:
            alone = condition
            condition = apply("or_", alone, factors.has(second, this.at_cell))

            def share(seed: Expr) -> Expr:
                return apply("where", alone, seed, apply("mul", total, seed))

            given = this.program.scaled(scaled, this.box, share, condition)
        return this.at_target(this.program.accumulated(given, line, condition, joining))

    vanishes = apply("eq", this.value, this.zero)
    of_others, of_zeros, of_two = sums(0, 1, None), sums(1, 2, joining), sums(2, None, joining)
    for _ in this.joining(line):
        this.to_value(apply("div", of_others, this.value), (apply("not_", vanishes),))
        this.to_value(of_zeros, (vanishes,))
        this.to_value(apply("neg", apply("mul", this.value, of_two)), (vanishes,))


def _wins(this: StatementTransposition, best: str) -> Callable[[Expr, _ReadAt], Expr]:
    def wins(value: Expr, read: _ReadAt) -> Expr:
        # A float16 cell holds the rounded value.
        stored = value if this.target.dtype == this.dtype else cast(cast(value, this.target.dtype), this.dtype)
        return apply("eq", stored, read(best))

    return wins


def _extremum(this: StatementTransposition) -> None:
    best = this.target.name
    wins, line = _wins(this, best), running(this, best)
    if line is not None:
        _running_extremum(this, line)
        return
    ties = _tally(this, f"{best}_ties", "int64", "add", lambda _: integer(1), wins)

    def part(seed: Expr, read: _ReadAt) -> Expr:
        # Most cells have one winner, which takes all.
        shared = apply("div", seed, cast(read(ties), this.dtype))
        return apply("where", apply("gt", read(ties), integer(1)), shared, seed)

    this.to_value(part(this.seed, this.at_target), (wins(this.value, this.at_target),))
    if this.start_is_wanted():
        seed = part(this.at_cell(this.adjoint.name), this.at_cell)
        this.to_start(seed, (wins(this.value, this.at_cell),))


def _running_extremum(this: StatementTransposition, line: RunningCells) -> None:
    # A term that is best where it joins takes part in all cells up to the end of that one's run.
    best, accumulate = this.target.name, this.statement.accumulate
    started = not isinstance(this.start, Neutral)
    if started:
        # Without starts, which differ from cell to cell.
        line.level = this.program.declare(f"{best}_running", this.target.dtype, this.target.shape)
        this.writing(line.level, accumulate, Neutral(), this.statement.value, condition=this.condition)
    assert line.level is not None
    level, wins, one = line.level, _wins(this, line.level), integer(1)
    start: Start = Neutral()
    for _ in this.joining(line):
        joined = this.program.declare(f"{best}_joined", "int64", this.target.shape)
        condition = both(this.condition, wins(this.statement.value, this.at_target))
        this.writing(joined, "add", start, one, condition=condition)
        start = Keep(joined)
    ties = line.sums_so_far(joined, f"{best}_ties")
    number: Expr = this.at_cell(ties)
    stands = apply("eq", this.at_cell(level), this.at_cell(best))
    at_start = _wins(this, best)(this.start_at(this.at_cell), this.at_cell)
    if started:
        terms = [apply("where", test, each, integer(0)) for test, each in ((stands, number), (at_start, one))]
        number = apply("add", *terms)

    def part(seed: Expr) -> Expr:
        # Most cells have one winner, which takes all.
        return apply("where", apply("gt", number, one), apply("div", seed, cast(number, this.dtype)), seed)

    shared = this.scaled(part)
    onward = this.program.accumulated(shared, line, stands if started else None)
    for _ in this.joining(line):
        this.to_value(this.at_target(onward), (wins(this.value, this.at_target),))
    if this.start_is_wanted():
        this.to_start(this.at_cell(shared), (_wins(this, best)(this.value, this.at_cell),))


def _product_of_values(this: StatementTransposition) -> str:
    # The product of the values of each cell, its start left out.
    name = this.program.declare(f"{this.target.name}_product", this.dtype, this.target.shape)
    this.writing(name, "multiply", Neutral(), this.statement.value, condition=this.condition)
    return name


def _divide(this: StatementTransposition) -> None:
    scaled = this.scaled(lambda seed: apply("mul", seed, this.at_cell(this.target.name)))
    this.to_value(apply("neg", apply("div", this.at_target(scaled), this.value)))
    if this.start_is_wanted():
        product = _product_of_values(this)
        this.to_start(apply("div", this.at_cell(this.adjoint.name), this.at_cell(product)))


def _power(this: StatementTransposition) -> None:
    # (t ** a) ** b is t ** (a * b): a power whose exponent is a product.
    if isinstance(this.start, Neutral):
        return  # 1 ** e is 1
    statement = replace(this.statement, start=Neutral())
    exponents = StatementTransposition(this.program, statement, this.adjoint.name)
    factors = _Factors.of(exponents, this.target.name, None)
    zero = this.zero
    base = this.start_at(this.at_cell)
    logarithm = apply("where", apply("gt", base, zero), apply("log", base), zero)
    slope = apply("mul", this.at_cell(this.target.name), logarithm)
    factor = apply("mul", slope, factors.rest(this.at_cell))
    scaled = this.scaled(lambda seed: apply("mul", seed, factor))
    this.to_value(factors.share(this.value, this.at_target(scaled), this.at_target))
    if this.start_is_wanted():
        exponent = this.at_cell(_product_of_values(this))
        base, result = this.value, this.at_cell(this.target.name)
        lower = apply("pow", base, apply("sub", exponent, constant(1, this.dtype)))
        at_zero = apply("where", apply("ne", exponent, zero), apply("mul", exponent, lower), zero)
        slope = apply("div", apply("mul", exponent, result), base)
        slope = apply("where", apply("ne", base, zero), slope, at_zero)
        this.to_start(apply("mul", this.at_cell(this.adjoint.name), slope))


def _gate(this: StatementTransposition) -> None:
    last = this.last_points()
    one = constant(1, this.dtype)

    def shuts(value: Expr) -> Expr:
        opens = apply("gt", value, this.zero)
        if this.statement.accumulate == "sat01_gate":
            opens = apply("and_", opens, apply("lt", value, one))
        return apply("not_", opens)

    name = f"{this.target.name}_shut"
    at_first = this.program.declare(name, "bool", this.target.shape)
    this.filling(at_first, "or", Neutral(), shuts(this.start_at(this.at_cell)))
    shut = this.program.declare(name, "bool", this.target.shape)
    this.writing(shut, "or", Keep(at_first), shuts(this.statement.value), this.points.subtract(last))
    written = this.image(this.points)
    this.points = last
    this.to_value(this.seed, (apply("not_", this.at_target(shut)),))
    if this.start_is_wanted():
        this.to_start(this.at_cell(this.adjoint.name), cells=this.box.subtract(written))


REDUCTIONS: Mapping[str, Callable[[StatementTransposition], None]] = MappingProxyType(
    {
        "multiply": _multiply,
        "max": _extremum,
        "min": _extremum,
        "divide": _divide,
        "power": _power,
        "relu_gate": _gate,
        "sat01_gate": _gate,
    }
)
