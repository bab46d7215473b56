"""One name for extents that must agree: ``K == B_0`` makes every shape and bound speak of ``K``."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl

from tcdsl.ir.build import size
from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Expr, substitute
from tcdsl.ir.program import Program, Statement, Tensor, map_statement
from tcdsl.ir.sizes.known_sizes import equal_sizes

__all__ = ["with_equal_sizes", "with_own_sizes"]


def with_equal_sizes(program: Program, inputs: bool = True) -> Program:
    """One name for sizes that the assertions make equal, so that shapes and bounds do not need both.

    Without ``inputs`` the inputs keep the sizes that they define, and only the assertions tie them.
    """
    names = equal_sizes(program.sizes, program.assertions)
    if not names:
        return program
    replacements: dict[Expr, Expr] = {size(old): size(new) for old, new in names.items()}

    def rule(expr: Expr) -> Expr:
        return substitute(expr, replacements)

    def rewritten(statement: Statement) -> Statement:
        return replace(map_statement(statement, rule), domain=_with_sizes(statement.domain, names))

    return replace(
        program,
        inputs=tuple(_with_shape(tensor, replacements) for tensor in program.inputs) if inputs else program.inputs,
        tensors=tuple(_with_shape(tensor, replacements) for tensor in program.tensors),
        statements=tuple(rewritten(statement) for statement in program.statements),
        repeats=tuple(repeat.with_ends(rule) for repeat in program.repeats),
    )


def with_own_sizes(program: Program, original: Program) -> Program:
    """``program`` with the inputs that it shares with ``original``, its first ones, declared as they are there."""
    return replace(program, inputs=(*original.inputs, *program.inputs[len(original.inputs) :]))


def _with_shape(tensor: Tensor, replacements: dict[Expr, Expr]) -> Tensor:
    return replace(tensor, shape=tuple(substitute(extent, replacements) for extent in tensor.shape))


def _with_sizes(domain: Domain, names: dict[str, str]) -> Domain:
    points = domain.set
    for old, new in names.items():
        position = points.find_dim_by_name(isl.dim_type.param, old)
        if position < 0:
            continue
        other = points.find_dim_by_name(isl.dim_type.param, new)
        if other < 0:
            points = points.set_dim_name(isl.dim_type.param, position, new)
        else:
            points = points.equate(isl.dim_type.param, position, isl.dim_type.param, other)
            points = points.project_out(isl.dim_type.param, position, 1)
    return domain if points is domain.set else Domain.from_set(points)
