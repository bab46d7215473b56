"""Sizes that assertions fix are constants in loops, where a program has many: models have some for each variable.

isl takes cubic time in the number of sizes, and equal parts of a program are seen to be equal where no size of an array
tells them apart.
"""

from __future__ import annotations

import islpy as isl

from tcdsl.ir.domain import Domain
from tcdsl.ir.expressions import Apply, Constant, Expr, SizeValue, substitute
from tcdsl.ir.nodes import replace
from tcdsl.ir.program import Program, Statement, Tensor, map_statement

__all__ = ["constant_sizes", "declared_with", "with_constants", "without_sizes"]

# Fewer are shown by their names.
_MANY = 24


def constant_sizes(program: Program) -> dict[Expr, Expr]:
    """The sizes that a call has in any case, if there are many."""
    if len(program.sizes) <= _MANY:
        return {}
    found: dict[Expr, Expr] = {}
    for each in program.assertions:
        match each.condition:
            case Apply(primitive="eq", arguments=(SizeValue() as name, Constant() as value)):
                found.setdefault(name, value)
    return found


def with_constants(statement: Statement, known: dict[Expr, Expr]) -> Statement:
    """``statement`` with numbers for the sizes that are ``known``."""
    points = without_sizes(statement.domain.set, known)
    made = map_statement(statement, lambda each: substitute(each, known))
    return replace(made, domain=Domain.from_set(points)) if points is not statement.domain.set else made


def without_sizes(points: isl.Set, known: dict[Expr, Expr]) -> isl.Set:
    """A set, of parameters or of points, for the ``known`` sizes."""
    for name, value in known.items():
        assert isinstance(name, SizeValue)
        assert isinstance(value, Constant)
        position = points.find_dim_by_name(isl.dim_type.param, name.name)
        if position >= 0:
            points = points.fix_val(isl.dim_type.param, position, isl.Val(int(value.value)))
            points = points.project_out(isl.dim_type.param, position, 1)
    return points


def declared_with(tensor: Tensor, known: dict[Expr, Expr]) -> Tensor:
    """A declaration with numbers for the ``known`` sizes."""
    return replace(tensor, shape=tuple(substitute(each, known) for each in tensor.shape)) if known else tensor
