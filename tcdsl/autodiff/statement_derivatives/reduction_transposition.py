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
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType

from tcdsl.autodiff.statement_derivatives.transposition import StatementTransposition
from tcdsl.ir.build import apply, cast, constant, integer
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import Keep, Neutral, Start
from tcdsl.polyhedra.writes import both

__all__ = ["REDUCTIONS"]

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


def _product_of_others(
    this: StatementTransposition, name: str, whole: str | None
) -> tuple[Callable[[_ReadAt], Expr], Callable[[Expr, Expr, _ReadAt], Expr]]:
    """What the factors of each cell's product receive: the seed, times the product of the other factors.

    Two functions: the product of the factors that are not zero, given how to read a tensor at its cell; and what one
    factor receives, given the factor, the seed times that product, and how to read.

    ``whole`` is a tensor that holds the whole product, if there is one. Three tensors beside it: the product of the
    factors that are not zero, in cells that have others, the number of those that are, and their sum. The sum is zero,
    but its derivative is not: with it second derivatives are exact too.
    """
    zero = this.zero

    def vanishes(factor: Expr, _: _ReadAt) -> Expr:
        return apply("eq", factor, zero)

    count = _tally(this, f"{name}_zeros", "int64", "add", lambda _: integer(1), vanishes)

    def remains(factor: Expr, read: _ReadAt) -> Expr:
        nonzero = apply("ne", factor, zero)
        return nonzero if whole is None else apply("and_", apply("gt", read(count), integer(0)), nonzero)

    product = _tally(this, f"{name}_product", this.dtype, "multiply", _same, remains)
    zeros = _tally(this, f"{name}_zero", this.dtype, "add", _same, vanishes)

    def rest(read: _ReadAt) -> Expr:
        if whole is None:
            return read(product)
        return apply("where", apply("eq", read(count), integer(0)), read(whole), read(product))

    def share(factor: Expr, scaled: Expr, read: _ReadAt) -> Expr:
        number, total = read(count), read(zeros)
        none, one, two = (apply("eq", number, integer(k)) for k in range(3))
        partner = apply("mul", apply("sub", total, factor), scaled)
        of_zero = apply("where", one, scaled, apply("where", two, partner, zero))
        quotient = apply("div", scaled, factor)
        of_other = apply("where", none, quotient, apply("where", one, apply("mul", total, quotient), zero))
        return apply("where", apply("eq", factor, zero), of_zero, of_other)

    return rest, share


def _same(value: Expr) -> Expr:
    return value


def _multiply(this: StatementTransposition) -> None:
    exact = this.target.dtype == this.dtype
    rest, share = _product_of_others(this, this.target.name, this.target.name if exact else None)
    scaled = this.scaled(rest(this.at_cell))
    this.to_value(share(this.value, this.at_target(scaled), this.at_target))
    if this.start_is_wanted():
        this.to_start(share(this.value, this.at_cell(scaled), this.at_cell))


def _extremum(this: StatementTransposition) -> None:
    best = this.target.name

    def wins(value: Expr, read: _ReadAt) -> Expr:
        # A float16 cell holds the rounded value.
        stored = value if this.target.dtype == this.dtype else cast(cast(value, this.target.dtype), this.dtype)
        return apply("eq", stored, read(best))

    ties = _tally(this, f"{best}_ties", "int64", "add", lambda _: integer(1), wins)

    def part(seed: Expr, read: _ReadAt) -> Expr:
        # Most cells have one winner, which takes all.
        shared = apply("div", seed, cast(read(ties), this.dtype))
        return apply("where", apply("gt", read(ties), integer(1)), shared, seed)

    this.to_value(part(this.seed, this.at_target), (wins(this.value, this.at_target),))
    if this.start_is_wanted():
        seed = part(this.at_cell(this.adjoint.name), this.at_cell)
        this.to_start(seed, (wins(this.value, this.at_cell),))


def _product_of_values(this: StatementTransposition) -> str:
    # The product of the values of each cell, its start left out.
    name = this.program.declare(f"{this.target.name}_product", this.dtype, this.target.shape)
    this.writing(name, "multiply", Neutral(), this.statement.value, condition=this.condition)
    return name


def _divide(this: StatementTransposition) -> None:
    scaled = this.scaled(this.at_cell(this.target.name))
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
    rest, share = _product_of_others(exponents, this.target.name, None)
    zero = this.zero
    base = this.start_at(this.at_cell)
    logarithm = apply("where", apply("gt", base, zero), apply("log", base), zero)
    slope = apply("mul", this.at_cell(this.target.name), logarithm)
    scaled = this.scaled(apply("mul", slope, rest(this.at_cell)))
    this.to_value(share(this.value, this.at_target(scaled), this.at_target))
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
