"""What is known of a program's sizes before any call: no extent is negative, definitions and assertions hold."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from tcdsl.ir.build import apply, integer, size
from tcdsl.ir.expressions import Expr, size_names, substitute
from tcdsl.ir.program import AxisExtent, Program
from tcdsl.ir.sizes.equal_sizes import equal_sizes
from tcdsl.ir.sizes.size_signs import never_negative_in
from tcdsl.polyhedra.affine import knowing, universe
from tcdsl.polyhedra.linear import has_cases

__all__ = ["size_context"]


def size_context(program: Program) -> isl.Set:
    """A set of parameters: all sizes of ``program`` for which a call gets as far as its first statement.

    Of sizes that the assertions make equal it speaks of the first only.
    """
    # isl takes cubic time in the number of sizes, so the others are never mentioned.
    equal = equal_sizes(program)
    known = universe((), [each.name for each in program.sizes if each.name not in equal])
    positive = never_negative_in(program)
    facts: list[Expr] = [apply("ge", size(each.name), integer(0)) for each in program.sizes if positive(each.name)]
    facts.extend(
        apply("eq", size(each.name), each.source) for each in program.sizes if not isinstance(each.source, AxisExtent)
    )
    facts.extend(assertion.condition for assertion in program.assertions)
    for fact in dict.fromkeys(_told(each, equal) for each in facts):
        if not has_cases(fact):
            known = knowing(known, fact)
    return known.params()


def _told(fact: Expr, equal: Mapping[str, str]) -> Expr:
    return substitute(fact, {size(name): size(equal[name]) for name in size_names(fact) & equal.keys()})
