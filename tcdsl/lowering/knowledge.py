"""What is known of a program's sizes before any call: none is negative, definitions and assertions hold."""

from __future__ import annotations

import islpy as isl

from tcdsl.ir.build import apply, integer, size
from tcdsl.ir.expressions import Expr
from tcdsl.ir.program import AxisExtent, Program
from tcdsl.shapes.affine import NotAffine, condition_set, universe

__all__ = ["size_context"]


def size_context(program: Program) -> isl.Set:
    """A set of parameters: all sizes of ``program`` for which a call gets as far as its first statement."""
    names = [each.name for each in program.sizes]
    known = universe((), names)
    facts: list[Expr] = [apply("ge", size(name), integer(0)) for name in names]
    facts.extend(
        apply("eq", size(each.name), each.source) for each in program.sizes if not isinstance(each.source, AxisExtent)
    )
    facts.extend(assertion.condition for assertion in program.assertions)
    for fact in facts:
        try:
            known = known.intersect(condition_set(fact, known))
        except NotAffine:
            continue
    return known.params()
