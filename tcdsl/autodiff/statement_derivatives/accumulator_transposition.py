"""The transposition of accumulators: how the derivative of a statement's target reaches its values and its start.

Sums pass it on as it is, stores to the value that wrote the cell last. Where each cell is written at most once, any
accumulator is elementwise, ``new = primitive(old, value)``, and the primitive's rows of derivatives say it all. The
other reductions are in `tcdsl.autodiff.statement_derivatives.reduction_transposition`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tcdsl.autodiff.statement_derivatives.reduction_transposition import REDUCTIONS
from tcdsl.autodiff.statement_derivatives.transposition import StatementTransposition, Transposition
from tcdsl.ir.accumulators import ACCUMULATORS
from tcdsl.ir.build import apply, constant
from tcdsl.ir.expressions import Expr
from tcdsl.ir.primitives import PRIMITIVES
from tcdsl.ir.program import Fill, Keep, Neutral, Statement
from tcdsl.ir.text.rule_parser import parse_rule
from tcdsl.polyhedra.writes import affine_target, writes_each_cell_once

__all__ = ["holds_its_value", "old_and_new_shares", "transpose"]

# The result of these on their neutral element and a value is the value.
_PASSING = frozenset(("assign", "add", "multiply", "max", "min", "relu_gate", "sat01_gate"))


def transpose(program: Transposition, statement: Statement, adjoint: str) -> None:
    """Pass the derivative ``adjoint`` of a statement's target on to everything that the statement reads."""
    this = StatementTransposition(program, statement, adjoint)
    if statement.accumulate == "assign":
        _assign(this)
    elif statement.accumulate in ("add", "subtract"):
        seed = this.seed if statement.accumulate == "add" else apply("neg", this.seed)
        this.to_value(seed, result=_own_result(this))
        if this.start_is_wanted():
            this.all_to_start(this.adjoint.name)
    elif writes_each_cell_once(statement):
        _elementwise(this)
    else:
        REDUCTIONS[statement.accumulate](this)


def holds_its_value(statement: Statement) -> bool:
    """Whether every cell that a statement writes ends up with exactly the value that is written."""
    fresh = statement.accumulate in _PASSING and isinstance(statement.start, Neutral)
    return (fresh or statement.accumulate == "assign") and writes_each_cell_once(statement)


def _own_result(this: StatementTransposition) -> Expr | None:
    # The target itself at a point, unless storing it has rounded it.
    if this.target.dtype == this.dtype and holds_its_value(this.statement):
        return this.at_target(this.target.name)
    return None


def _assign(this: StatementTransposition) -> None:
    statement = this.statement
    if this.program.carries(statement.value) and not writes_each_cell_once(statement):
        this.points = this.last_points()
    this.to_value(this.seed, result=_own_result(this))
    if not this.start_is_wanted():
        return
    if affine_target(statement) and this.condition is None:
        rest = this.box.subtract(this.image(this.points))
        if rest.is_empty():
            return
        if isinstance(this.start, Fill):
            this.to_start(this.at_cell(this.adjoint.name), cells=rest)
            return
    this.all_to_start(_overwritten(this, this.zero))


def _overwritten(this: StatementTransposition, value: Expr) -> str:
    # The adjoint with another value in the cells that the statement writes.
    name = this.program.declare(this.adjoint.name, this.adjoint.dtype, this.adjoint.shape)
    this.writing(name, "assign", Keep(this.adjoint.name), value, condition=this.condition)
    return name


def old_and_new_shares(
    statement: Statement, bindings: Mapping[str, Expr], old_seed: Expr | None, new_seed: Expr | None
) -> tuple[Expr | None, Expr | None]:
    """For ``new = primitive(old, value)``, the rows by ``old`` and by ``value``, or ``None`` where they are zero.

    ``bindings`` has ``a`` (the old cell), ``b`` (the value) and ``y`` (the new cell); a seed that is ``None`` gives
    ``None``.
    """
    if isinstance(statement.start, Neutral) and statement.accumulate in _PASSING:
        return None, new_seed
    rows = PRIMITIVES[ACCUMULATORS[statement.accumulate].primitive].derivatives
    assert rows is not None
    first, second = (
        None if seed is None or row == "0" else parse_rule(row, {**bindings, "g": seed})
        for row, seed in zip(rows, (old_seed, new_seed), strict=True)
    )
    return first, second


def _elementwise(this: StatementTransposition) -> None:
    names = {"a": this.start_at(this.at_target), "b": this.value, "y": this.at_target(this.target.name)}
    _, share = old_and_new_shares(this.statement, names, None, this.seed)
    if share is not None:
        this.to_value(share)
    if this.start_is_wanted():
        names["b"] = this.statement.value
        kept, _ = old_and_new_shares(this.statement, names, this.seed, None)
        this.all_to_start(_overwritten(this, constant(0, this.dtype) if kept is None else kept))
