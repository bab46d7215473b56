"""What is known of a program's sizes before any call: none is negative, definitions and assertions hold."""

from __future__ import annotations

import islpy as isl

from tcdsl.ir.build import apply, integer, size
from tcdsl.ir.equal_sizes import equal_sizes
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import AxisExtent, Program
from tcdsl.shapes.affine import knowing, universe
from tcdsl.shapes.linear import has_cases

__all__ = ["size_context"]


def size_context(program: Program) -> isl.Set:
    """A set of parameters: all sizes of ``program`` for which a call gets as far as its first statement.

    Of sizes that the assertions make equal it speaks of the first only.
    """
    names = [each.name for each in program.sizes]
    known = universe((), names)
    facts: list[Expr] = [apply("ge", size(name), integer(0)) for name in names]
    facts.extend(
        apply("eq", size(each.name), each.source) for each in program.sizes if not isinstance(each.source, AxisExtent)
    )
    facts.extend(assertion.condition for assertion in program.assertions)
    for fact in facts:
        if not has_cases(fact):
            known = knowing(known, fact)
    known = known.params()
    for name in equal_sizes(program):
        known = known.project_out(isl.dim_type.param, known.find_dim_by_name(isl.dim_type.param, name), 1)
    return known
